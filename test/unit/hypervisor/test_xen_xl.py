"""What xl prints, by recorded output of Xen 4.17; and what the stand-in of it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.interface import NodeInfo
from ganeti.hypervisor.xen import xl

RECORDED = Path(__file__).parents[2] / "recorded" / "xen_xl.json"
CASES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]


def find_output(*words: str, number: int = 0) -> str:
    found = [case for case in CASES if case["argv"] == ["xl", *words]]
    return str(found[number]["stdout"])


def test_domains_of_a_list() -> None:
    nobody, starting = (
        xl.parse_list(find_output("list")),
        xl.parse_list(find_output("list", number=1)),
    )
    assert [domain.name for domain in nobody] == ["Domain-0"]
    assert starting[1] == xl.Domain("pv1.example.com", 1, 128, 1, frozenset(), 4.4)
    (paused,) = xl.parse_list(find_output("list", "pv1.example.com", number=1))
    assert paused.state == {"p"}
    assert not paused.ended


def test_a_domain_that_ended_by_itself() -> None:
    ended = xl.parse_list(find_output("list", number=2))[1]
    assert ended.state == {"p", "s"}
    assert ended.ended


@pytest.mark.parametrize(
    "text", ["", "nonsense", "Name  ID  Mem VCPUs  State  Time(s)\nweb1 x 128 1 r----- 1.0\n"]
)
def test_other_output_is_refused(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="xl list printed"):
        xl.parse_list(text)


def test_what_a_node_has() -> None:
    info = xl.parse_info(find_output("info"))
    assert xl.node_info(info, xl.parse_list(find_output("list"))) == NodeInfo(
        memory_total=1279,
        memory_free=622,
        memory_dom0=640,
        cpu_total=1,
        cpu_nodes=1,
        cpu_sockets=1,
        cpu_dom0=1,
        hv_version=(4, 17),
    )
    with pytest.raises(errors.HypervisorError, match="nr_cpus"):
        xl.node_info({}, [])


def test_debian_builds_xen_without_shadow_paging() -> None:
    info = xl.parse_info(find_output("info"))
    assert not xl.has_shadow(info)
    assert xl.has_shadow({**info, "virt_caps": f"{info['virt_caps']} shadow"})


def test_a_domain_that_is_not_there_is_told_from_other_failures() -> None:
    failures = {tuple(case["argv"][1:]): case["stderr"] for case in CASES if case["code"]}
    for words in (("destroy", "nosuch"), ("shutdown", "nosuch")):
        assert xl.is_unknown(errors.HypervisorError(failures[words]))
    taken = failures["create", "/tmp/pv1.example.com.cfg"]
    assert not xl.is_unknown(errors.HypervisorError(taken))


def test_a_node_without_xen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xl, "PROGRAM", str(tmp_path / "xl"))
    with pytest.raises(errors.HypervisorError, match="is this node booted into Xen"):
        xl.run(["list"])
