"""Groups, disks, snapshots, exports and cloud-init: what is submitted and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti.cli import notices
from ganeti.cli.instance.change import choose

# groups ------------------------------------------------------------------------------------


def test_groups_are_added_and_changed(master: RecordingMaster, gnt: Run) -> None:
    assert gnt("gnt-group", "add", "--ipolicy-vcpu-ratio", "2", "rack1").code == 0
    assert gnt("gnt-group", "add", "rack2").code == 0
    master.results["OP_GROUP_SET_PARAMS"] = [["alloc_policy", "unallocable"]]
    ran = gnt("gnt-group", "modify", "--alloc-policy", "unallocable", "rack1")
    assert (ran.code, "alloc_policy -> unallocable" in ran.out) == (0, True)
    assert gnt("gnt-group", "assign-nodes", "rack1", "node1", "node2").code == 0
    first, second, change, assign = master.ops
    assert (first["ipolicy"], second.get("ipolicy")) == ({"vcpu-ratio": 2}, None)
    assert change["alloc_policy"] == "unallocable"
    assert assign["nodes"] == ["node1", "node2"]
    assert gnt("gnt-group", "modify", "rack1").code == 1


def test_jobs_of_a_new_group_are_waited_for(master: RecordingMaster, gnt: Run) -> None:
    master.jobs.append([{"OP_ID": "OP_CLUSTER_REDIST_CONF"}])
    master.results["OP_GROUP_ADD"] = {"jobs": [[True, 1]]}
    ran = gnt("gnt-group", "add", "rack1")
    assert (ran.code, "Waiting for job 1" in ran.out) == (0, True)
    master.results["OP_GROUP_ADD"] = {"jobs": [[False, "the queue is full"]]}
    assert gnt("gnt-group", "add", "rack1").code == 1


def test_a_group_is_emptied(master: RecordingMaster, gnt: Run) -> None:
    master.jobs.append([{"OP_ID": "OP_INSTANCE_CHANGE_GROUP"}])
    master.results["OP_GROUP_EVACUATE"] = {"jobs": [[True, 1]]}
    ran = gnt("gnt-group", "evacuate", "--to", "rack2", "rack1")
    assert (ran.code, "All instances were evacuated" in ran.out) == (0, True)
    master.results["OP_GROUP_EVACUATE"] = {"jobs": []}
    ran = gnt("gnt-group", "evacuate", "rack1")
    assert ran.out == "Node group rack1 has no instances to evacuate\n"
    plan = [{"instance": "web1", "operations": ["change-group"], "to": "rack2"}]
    master.results["OP_GROUP_EVACUATE"] = {"plan": plan}
    ran = gnt("gnt-group", "evacuate", "--dry-run", "rack1")
    assert ran.out == "web1: change-group to rack2\n"


# disks -------------------------------------------------------------------------------------


def test_a_disk_of_its_own(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_DISK_CREATE"] = "uuid-of-disk"
    words = ("-t", "plain", "-s", "10G", "-n", "node1", "-e", "vg=fast", "--name", "data")
    ran = gnt("gnt-disk", "add", *words)
    assert (ran.code, ran.out) == (0, "uuid-of-disk\n")
    assert master.op["disk"] == {"vg": "fast", "size": 10240, "name": "data"}
    for missing in (["-t", "plain"], ["-s", "10G"]):
        ran = gnt("gnt-disk", "add", *missing)
        assert ran.code == 1
        assert "Template and size of the disk are missing" in ran.err


def test_disks_are_removed_after_a_question(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "confirm", lambda *_args, **_more: False)
    assert gnt("gnt-disk", "remove", "d-1").code == 1
    assert master.jobs == []
    assert gnt("gnt-disk", "remove", "-f", "d-1", "d-2").code == 0
    assert [op["disk_name"] for op in master.ops] == ["d-1", "d-2"]


def test_disks_grow_change_and_move(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_DISK_SET_PARAMS"] = [["mode", "ro"]]
    master.results["OP_DISK_ATTACH"] = [["disk/1", "attached"]]
    master.results["OP_DISK_DETACH"] = [["disk/1", "detached"]]
    assert gnt("gnt-disk", "grow", "d-1", "2G").code == 0
    assert "mode -> ro" in gnt("gnt-disk", "modify", "--mode", "ro", "d-1").out
    assert gnt("gnt-disk", "attach", "d-1", "web1").out == " - disk/1 -> attached\n"
    assert gnt("gnt-disk", "detach", "d-1").out == " - disk/1 -> detached\n"
    grow, modify, attach, detach = master.ops
    assert (grow["amount"], modify["mode"]) == (2048, "ro")
    assert (attach["instance_name"], detach["disk_name"]) == ("web1", "d-1")
    ran = gnt("gnt-disk", "grow", "d-1", "much")
    assert ran.code == 1
    assert "much" in ran.err


# snapshots ---------------------------------------------------------------------------------


def test_snapshots_are_listed_and_removed(master: RecordingMaster, gnt: Run) -> None:
    snapshot = {
        "name": "before",
        "state": "ready",
        "created": 1700000000.0,
        "consistency": "clean",
        "size": 512,
        "description": None,
    }
    master.add_instance("web1", snapshots=[snapshot])
    master.add_instance("web2", snapshots=[])
    ran = gnt("gnt-instance", "snapshot", "list", "--no-headers", "--separator", "|")
    assert ran.out.startswith("web1|before|")
    assert "2023-11-14 22:13:20" in ran.out
    assert gnt("gnt-instance", "snapshot", "list", "--no-headers", "web2").out == ""
    ran = gnt("gnt-instance", "snapshot", "list", "web3")
    assert ran.code == 1
    assert gnt("gnt-instance", "snapshot", "remove", "web1", "a", "b").code == 0
    assert [op["snapshot_name"] for op in master.jobs[0]] == ["a", "b"]


# exports -----------------------------------------------------------------------------------


def test_exports_are_made_listed_and_imported(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = gnt("gnt-backup", "export", "web1")
    assert ran.code == 1
    assert "Instance web1: choose the node with --node" in ran.err
    monkeypatch.setattr(notices, "confirm", lambda *_args, **_more: False)
    assert gnt("gnt-backup", "export", "-n", "node2", "--remove-instance", "web1").code == 1
    assert master.jobs == []
    assert gnt("gnt-backup", "export", "-n", "node2", "web1").code == 0
    assert (master.op["target_node"], master.op["mode"]) == ("node2", "local")
    ran = gnt("gnt-backup", "import", "--no-nics", "web1")
    assert ran.code == 1
    assert "--no-nics makes no sense here" in ran.err
    assert gnt("gnt-backup", "import", "-n", "node1", "--src-node", "node2", "web1").code == 0
    op = master.ops[-1]
    assert (op["mode"], op["src_node"], op["pnode"]) == ("import", "node2", "node1")
    master.tables["export"] = [{"node": "node2", "export": "web1"}]
    ran = gnt("gnt-backup", "list", "--no-headers", "--separator", ":", "-n", "node2")
    assert ran.out == "node2:web1\n"
    assert "export" in gnt("gnt-backup", "list-fields").out


# reinstall ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "chosen"), [(["2"], "b"), (["9", "x", "1"], "a"), ([""], None), (["q"], None)]
)
def test_an_os_is_chosen_by_its_number(answers: list[str], chosen: str | None) -> None:
    written: list[str] = []
    assert choose(["a", "b"], read=lambda: answers.pop(0), write=written.append) == chosen
    assert "1 a" in " ".join("".join(written).split())


def test_an_os_is_named_once(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-instance", "reinstall", "--select-os", "-o", "debian", "web1")
    assert ran.code == 1
    assert "Give either --os-type or --select-os, not both" in ran.err
    master.add_instance("web1")
    master.results["OP_OS_DIAGNOSE"] = [["broken", [], False]]
    ran = gnt("gnt-instance", "reinstall", "--select-os", "web1")
    assert ran.code == 1
    assert "No OS can be installed on all nodes; see gnt-os diagnose" in ran.err


def test_a_new_name_is_told(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_INSTANCE_RENAME"] = "web2.example.com"
    ran = gnt("gnt-instance", "rename", "web1", "web2")
    assert ran.out == "Instance 'web1' has been renamed to 'web2.example.com'\n"


# cloud-init --------------------------------------------------------------------------------


def create(gnt: Run, *words: str) -> Any:
    usual = ("-t", "diskless", "-n", "node1", "-o", "noop", "--no-nics", "--no-name-check")
    return gnt("gnt-instance", "add", *usual, *words, "web1")


def test_files_for_cloud_init(master: RecordingMaster, gnt: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("#cloud-config\n")
    (tmp_path / "key.pub").write_text("# mine\nssh-ed25519 AAAA me\n\n")
    words = ("--user-data", f"{tmp_path}/data", "--ssh-key", f"{tmp_path}/key.pub")
    ran = create(gnt, *words)
    assert ran.code == 0, ran.err
    assert "ssh-ed25519 AAAA me" in str(master.op)
    assert "#cloud-config" in str(master.op)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"x" * (1024 * 1024 + 1), "is larger than 1 MiB"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", "is a private key; give the public one"),
        (b"# nothing\n", "has no SSH key"),
    ],
)
def test_files_that_cannot_be_used(
    master: RecordingMaster, gnt: Run, tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    ran = create(gnt, "--ssh-key", str(file))
    assert ran.code == 1
    assert said in ran.err
    assert master.jobs == []
