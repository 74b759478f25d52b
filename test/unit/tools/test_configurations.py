"""query-config, sanitize-config and fmtjson: configurations for people and for strangers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti.base import json_pointer
from ganeti.config import store, verify
from ganeti.model import base
from ganeti.model.config import Config, ConfigData
from ganeti.paths import Paths
from ganeti.tools import fmtjson, query_config, sanitize_config
from ganeti.tools.anonymize import HIDDEN, anonymize

RECORDED = Path(__file__).parents[2] / "recorded" / "config_3_0_2.json"


def read_recorded() -> dict[str, Any]:
    """A configuration of Ganeti 3.0.2, with more in it that tells whose it is."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    cluster = found["cluster"]
    cluster["osparams"] = {"noop": {"mirror": "http://mirror.corp.test/"}}
    cluster["osparams_private_cluster"] = {"noop": {"root": "hush"}}
    cluster["hvparams"]["kvm"]["kvm_extra"] = "-smbios type=1,serial=ds=nocloud;h=corp.test"
    cluster["diskparams"]["gluster"]["host"] = "gluster.corp.test"
    cluster["tags"] = ["customer-acme", "htools:iextags:acme"]
    cluster["hidden_os"] = ["acme-linux"]
    node = next(iter(found["nodes"].values()))
    node["tags"] = ["customer-acme"]
    disk = next(iter(found["disks"].values()))
    disk.update(dev_type="plain", logical_id=["xenvg", "acme-root"])
    return found


FOREIGN = (
    "acme", "corp", "hush", "http", "inst1", "inst2", "net1", "cluster.example.com.", "192.0.2.",
    "198.51.100.", "da:1c:f1", "52:33:D3", "noop",
)  # fmt: skip


def test_nothing_tells_whose_it_is() -> None:
    found = anonymize(read_recorded())
    text = json.dumps(found)
    assert [word for word in FOREIGN if word in text] == []
    assert found["cluster"]["cluster_name"] == "cluster.example.com"
    assert found["cluster"]["hvparams"]["kvm"]["kvm_extra"] == HIDDEN
    assert found["cluster"]["hvparams"]["kvm"]["kernel_path"] == "/boot/vmlinuz-3-kvmU"


def test_what_belongs_together_still_does() -> None:
    found = anonymize(read_recorded())
    [node] = found["nodes"].values()
    assert node["tags"] == [found["cluster"]["tags"][0]]
    assert found["cluster"]["tags"][1].startswith("htools:iextags:tag")
    [network] = found["networks"].values()
    items = {item["name"]: item for item in found["instances"].values()}
    second = next(item for item in items.values() if item["disks"])
    assert network["network"].endswith("/28")
    assert second["nics"][0]["ip"] == network["network"].replace("0/28", "2")
    assert network["gateway"] == network["network"].replace("0/28", "1")
    path = found["disks"][second["disks"][1]]["logical_id"][1]
    assert path.startswith(f"/srv/ganeti/file-storage/{second['name']}/")
    assert found["disks"][second["disks"][0]]["logical_id"] == ["xenvg", "volume1"]
    before = read_recorded()
    assert found["instances"].keys() == before["instances"].keys()
    assert anonymize(before) == found


def test_it_is_a_configuration_still(tmp_path: Path) -> None:
    paths = configuration(tmp_path)
    known = verify.problems(store.read_config(paths))
    data = sanitize_config.read(None)
    after = Config(base.from_wire(ConfigData, anonymize(data), "sanitized"))
    assert verify.problems(after) == known


def configuration(root: Path) -> Paths:
    from one_process import OneProcess

    cluster = OneProcess(root / "cluster", count=2)
    cluster.close()
    return cluster.paths["node1"]


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path / "cluster" / "node1"))


def test_parts_of_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration(tmp_path)
    assert query_config.main(["/cluster/cluster_name"]) == 0
    assert capsys.readouterr().out == '"c.example.com"\n'
    assert query_config.main([]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"]["mac_prefix"] == "aa:00:00"
    for words, text in (
        (["/cluster/nosuch"], "there is no 'nosuch' at /cluster/nosuch"),
        (["cluster"], "'cluster' does not begin with /"),
        (["--path", str(tmp_path / "nosuch")], "there is no file"),
        (["--path", __file__], "is damaged"),
    ):
        assert query_config.main(words) == 1
        assert text in capsys.readouterr().err


def test_secrets_are_shown_when_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.data"
    file.write_text(json.dumps(read_recorded()))
    words = ["--path", str(file), "/cluster/osparams_private_cluster/noop/root"]
    assert query_config.main(words) == 0
    assert capsys.readouterr().out == '"<redacted>"\n'
    assert query_config.main([*words, "--with-secrets"]) == 0
    assert capsys.readouterr().out == '"hush"\n'


def test_the_program_that_disguises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, copy = tmp_path / "config.data", tmp_path / "copy"
    file.write_text(json.dumps(read_recorded()))
    assert sanitize_config.main(["--path", str(file), "--output", str(copy)]) == 0
    assert json.loads(copy.read_text()) == anonymize(read_recorded())
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sanitize_config.main(["--path", str(file)]) == 0
    assert capsys.readouterr().out == copy.read_text()
    file.write_text("[]")
    assert sanitize_config.main(["--path", str(file)]) == 1
    assert "is not a cluster configuration" in capsys.readouterr().err
    assert sanitize_config.main([]) == 1
    assert "no configuration at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pointer", "found"),
    [("", {"a/b": [1, {"~": 2}]}), ("/a~1b/0", 1), ("/a~1b/1/~0", 2)],
)
def test_pointers(pointer: str, found: object) -> None:
    assert json_pointer.find({"a/b": [1, {"~": 2}]}, pointer) == found


@pytest.mark.parametrize("pointer", ["/", "/a", "/a~1b/2", "/a~1b/-1", "/a~1b/0/x", "/a~1b/²"])
def test_pointers_to_nothing(pointer: str) -> None:
    with pytest.raises(LookupError):
        json_pointer.find({"a/b": [1, {"~": 2}]}, pointer)


def test_json_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text('{"b":1,"a":[2]}')
    assert fmtjson.main([str(file)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].strip() == '"a": ['
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"b":1,"a":[2]}')))
    assert fmtjson.main([]) == 0
    assert capsys.readouterr().out == out
    file.write_text("{")
    assert fmtjson.main([str(file)]) == 1
    assert f"fmtjson: {file} is not JSON" in capsys.readouterr().err
    assert fmtjson.main([str(tmp_path / "nosuch")]) == 1
    assert "nosuch" in capsys.readouterr().err
