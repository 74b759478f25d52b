"""The programs as their users call them: output, exit codes, errors."""

import json
from pathlib import Path

import pytest
from clusters import POLICY, cluster

from ganeti.htools import hail, hbal, hcheck, hinfo, hroller, hspace, program, text
from ganeti.placement.choose import Wish, choose
from ganeti.placement.facts import Instance


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(cluster(1, 5, 40)))
    return str(path)


def test_hbal_prints_a_plan_and_a_second_run_is_empty(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save = str(tmp_path / "state")
    assert program.run(hbal.PROGRAM, ["-t", file, "-S", save, "-C"]) == 0
    out = capsys.readouterr().out
    assert "Selected node group: group1" in out
    assert "Solution length=" in out
    assert "gnt-instance " in out
    assert program.run(hbal.PROGRAM, ["-t", f"{save}.balanced"]) == 0
    assert "Solution length=0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "no cluster to read"),
        (["--nothing"], 2, "unknown option --nothing"),
        (["-t"], 1, "option --text-data needs a value"),
        (["-t", "/nowhere/x"], 1, "/nowhere/x: No such file or directory"),
        (["-t", "x", "-L"], 1, "give only one of"),
        (["-l", "many"], 1, "'many' is not a number"),
        (["more"], 1, "takes no arguments"),
    ],
)
def test_wrong_command_lines(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(hbal.PROGRAM, arguments) == code
    assert message in capsys.readouterr().err


def test_unknown_names_are_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(hbal.PROGRAM, ["-t", file, "-O", "node77"]) == 1
    assert "there is no node 'node77'" in capsys.readouterr().err
    assert program.run(hbal.PROGRAM, ["-t", file, "-G", "other"]) == 1
    assert "there is no group 'other'" in capsys.readouterr().err


def test_hspace_counts_what_fits(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--simulate", "p,4,1000000,65536,16", "--machine-readable"]
    assert program.run(hspace.PROGRAM, [*arguments, "--disk-template", "diskless"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # 4 nodes x 16 processors x 4, less one each for the nodes themselves
    assert "HTS_ALLOC_INSTANCES=252" in lines
    assert "HTS_ALLOC_FAIL_REASON=FAILCPU" in lines
    assert lines[-1] == "HTS_OK=1"


def test_hcheck_finds_a_node_that_cannot_take_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.data"
    path.write_text(
        "g|u|preferred||\n\n"
        "a|8192|0|4096|9000|9000|8|M|u\nb|4096|0|1024|9000|9000|8|N|u\n\n"
        "i1|4096|10|1|running|Y|a|b|drbd|\ni2|3072|10|1|running|Y|b||plain|\n\n\n"
    )
    assert program.run(hcheck.PROGRAM, ["-t", str(path), "--machine-readable"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "HCHECK_INIT_CLUSTER_N1_FAIL=1" in lines
    assert "HCHECK_INIT_CLUSTER_NEED_REBALANCE=1" in lines
    assert program.run(hcheck.PROGRAM, ["-t", str(path), "--no-simulation"]) == 0


def test_hinfo_and_hroller_read_the_same_file(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(hinfo.PROGRAM, ["-t", file]) == 0
    assert "Cluster score:" in capsys.readouterr().out
    assert program.run(hroller.PROGRAM, ["-t", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "'Node Reboot Groups'"
    assert sorted(",".join(lines[1:]).split(",")) == [f"node{i}" for i in range(1, 6)]
    assert lines[-1].endswith("node1"), "the master is last"


def test_a_refusal_names_what_each_node_lacks() -> None:
    made = cluster(1, 3, 10)
    item = Instance("big", 8192, 200_000_000, 1, "running", True, "", "", "drbd", disks=(204800,))
    choice = choose(made, Wish(item))
    assert choice.nodes == ()
    assert all(f"node{i} needs another" in choice.reason for i in (1, 2, 3))
    assert "MiB of disk" in choice.reason


def test_a_size_outside_the_policy_is_refused() -> None:
    item = Instance("big", 99999, 10240, 1, "running", True, "", "", "drbd", disks=(10240,))
    choice = choose(cluster(1, 3, 10), Wish(item))
    most = POLICY.bounds[0][1].memory
    assert choice.reason == f"group group1: memory 99999 is not between 128 and {most}"


def test_hail_refuses_what_is_no_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "request"
    for content, message in (
        ("{", "the request is not JSON"),
        ("[]", "the request is not an object"),
        (json.dumps({"request": {}}), "'type' is missing"),
    ):
        path.write_text(content)
        assert program.run(hail.PROGRAM, [str(path)]) == 1
        assert message in capsys.readouterr().err
