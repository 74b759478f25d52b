"""Commands that reach other servers by the remote shell, which is a script here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti.net import certs

Shell = Callable[[str], None]
NODES = ("node1.example.com", "node2.example.com", "node3.example.com")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Let a script be the remote shell; $1 is the node and $2 the command."""

    def use(text: str) -> None:
        script = tmp_path / "remote-shell"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        monkeypatch.setenv("GANETI_REMOTE_SHELL", shlex.quote(str(script)))

    return use


@pytest.fixture
def cluster(master: RecordingMaster) -> RecordingMaster:
    for name in NODES:
        master.add_node(name, offline=name.startswith("node3"))
    return master


# command -----------------------------------------------------------------------------------


def test_a_command_runs_on_all_nodes_and_on_the_master_last(
    cluster: RecordingMaster, gnt: Run, shell: Shell
) -> None:
    shell('echo "$2 on $1"; exit $(test "$1" = node2.example.com && echo 3 || echo 0)')
    ran = gnt("gnt-cluster", "command", "ls", "-l")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "-" * 48,
        "node: node2.example.com",
        "/bin/sh -c 'ls -l' on node2.example.com",
        "",
        "return code = 3",
        "-" * 48,
        "node: node1.example.com",
        "/bin/sh -c 'ls -l' on node1.example.com",
        "",
        "return code = 0",
    ]


def test_only_failures_and_with_names_of_nodes(
    cluster: RecordingMaster, gnt: Run, shell: Shell
) -> None:
    shell('echo out; echo err >&2; test "$1" = node1.example.com')
    ran = gnt("gnt-cluster", "command", "-M", "--failure-only", "true")
    assert ran.out.splitlines() == [
        "-" * 48,
        "node2.example.com: out",
        "node2.example.com: err",
        "return code = 1",
    ]


# copyfile ----------------------------------------------------------------------------------


def test_a_file_arrives_with_its_mode(
    cluster: RecordingMaster, gnt: Run, shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "there" / "key"
    file.parent.mkdir()
    file.write_bytes(b"secret")
    file.chmod(0o640)
    # what the other node would have is beside the file
    shell(f'echo "$1" >> {tmp_path}/nodes; eval "$(echo "$2" | sed s,/there/,/copy/,g)"')
    (tmp_path / "copy").mkdir()
    assert gnt("gnt-cluster", "copyfile", str(file)).code == 0
    copy = tmp_path / "copy" / "key"
    assert (copy.read_bytes(), copy.stat().st_mode & 0o777) == (b"secret", 0o640)
    assert (tmp_path / "nodes").read_text().split() == ["node2.example.com"]
    assert list(copy.parent.iterdir()) == [copy]


def test_a_file_goes_by_the_other_network_when_that_is_wanted(
    cluster: RecordingMaster, gnt: Run, shell: Shell, tmp_path: Path
) -> None:
    cluster.where.ssconf("node_secondary_ips").write_text("node2.example.com=198.51.100.2\n")
    file = tmp_path / "file"
    file.write_bytes(b"x")
    shell('echo "no route to $1" >&2; exit 255')
    ran = gnt("gnt-cluster", "copyfile", "--use-replication-network", str(file))
    assert ran.code == 1
    assert ran.err == (
        f"Copy of file {file} to node node2.example.com failed: no route to 198.51.100.2\n"
    )
    ran = gnt("gnt-cluster", "copyfile", str(tmp_path / "none"))
    assert ran.code == 1
    assert f"File {tmp_path}/none cannot be read: No such file or directory" in ran.err


# node add ----------------------------------------------------------------------------------


@pytest.fixture
def joining(cluster: RecordingMaster, monkeypatch: pytest.MonkeyPatch) -> RecordingMaster:
    """The master of a cluster with an authority; node9 is a server that it can resolve."""
    authority = certs.create_ca("cluster.example.com")
    certs.write_authority(authority, cluster.where.ca_key, cluster.where.ca_cert)
    cluster.answers["QueryConfigValues"] = ["cluster.example.com"]
    monkeypatch.setattr("ganeti.net.resolve.address", lambda _name: "192.0.2.9")
    return cluster


def test_a_server_gets_its_certificates_and_is_recorded(
    joining: RecordingMaster, gnt: Run, shell: Shell, tmp_path: Path
) -> None:
    shell(f'cat > {tmp_path}/request; echo "its clock is late"')
    ran = gnt("gnt-node", "add", "-v", "-g", "rack1", "node9.example.com")
    assert ran.code == 0, ran.err
    assert "Preparing node9.example.com (192.0.2.9) with ganeti-node-setup" in ran.err
    assert "Warning: Node node9.example.com: its clock is late" in ran.err
    request: dict[str, Any] = json.loads((tmp_path / "request").read_text())
    assert (request["cluster_name"], request["node_name"]) == (
        "cluster.example.com",
        "node9.example.com",
    )
    assert "PRIVATE KEY" in request["server_pem"]
    assert "PRIVATE KEY" not in request["ca_pem"]
    assert request["ssconf"]["master_node"] == "node1.example.com\n"
    op = joining.op
    assert (op["node_name"], op["primary_ip"], op["group"]) == (
        "node9.example.com",
        "192.0.2.9",
        "rack1",
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no such user >&2; exit 255", "it cannot be reached over SSH as root: no such user"),
        ("exit 127", "ganeti-node-setup is not there; install version"),
        ("echo it is in another cluster; exit 1", "cannot be prepared: it is in another cluster"),
        ("exit 1", "cannot be prepared: "),
    ],
)
def test_a_server_that_cannot_be_prepared_is_not_recorded(
    joining: RecordingMaster, gnt: Run, shell: Shell, script: str, said: str
) -> None:
    shell(f"cat > /dev/null; {script}")
    ran = gnt("gnt-node", "add", "node9.example.com")
    assert ran.code != 0
    assert said in ran.err
    assert joining.jobs == []


def test_without_a_remote_shell(
    joining: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_REMOTE_SHELL", "/nowhere/ssh")
    ran = gnt("gnt-node", "add", "node9.example.com")
    assert ran.code != 0
    assert "Node node9.example.com cannot be prepared: cannot run /nowhere/ssh" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["node2.example.com"], "is in the cluster already (--readd adds it after"),
        (["--readd", "node9.example.com"], "There is no node 'node9.example.com'"),
        (["--readd", "node1.example.com"], "is the master and cannot be added again"),
    ],
)
def test_refused_before_anything_is_changed_on_the_server(
    joining: RecordingMaster, gnt: Run, shell: Shell, tmp_path: Path, words: list[str], said: str
) -> None:
    shell(f"touch {tmp_path}/called")
    ran = gnt("gnt-node", "add", *words)
    assert ran.code == 1
    assert said in ran.err
    assert not (tmp_path / "called").exists()


def test_a_server_that_is_prepared_already_is_only_recorded(
    joining: RecordingMaster, gnt: Run, shell: Shell, tmp_path: Path
) -> None:
    shell(f"touch {tmp_path}/called")
    assert gnt("gnt-node", "add", "--no-node-setup", "node9.example.com").code == 0
    assert joining.op["node_name"] == "node9.example.com"
    assert not (tmp_path / "called").exists()


# auto-repair-storage -----------------------------------------------------------------------


def test_a_lost_disk_is_removed_once(master: RecordingMaster, gnt: Run) -> None:
    for name in NODES:
        master.add_node(name, vm_capable=True)
    good = [[name, "/dev/sda1"] for name in NODES]
    master.results["OP_NODE_QUERY_STORAGE"] = good
    master.answers["QueryClusterInfo"] = {"volume_group_name": "xenvg"}
    ran = gnt("gnt-node", "auto-repair-storage")
    assert ran.out == "lvm-self-repair: all volume groups are consistent\n"
    master.results["OP_NODE_QUERY_STORAGE"] = [*good, ["node2.example.com", "[unknown]"]]
    ran = gnt("gnt-node", "auto-repair-storage")
    assert ran.out.splitlines() == [
        "lvm-self-repair: node node2.example.com lost a disk",
        "lvm-self-repair: node=node2.example.com vg=xenvg action=vgreduce",
        "lvm-self-repair: node=node2.example.com vg=xenvg result=consistent",
    ]
    assert [op["name"] for op in master.ops if op["OP_ID"] == "OP_REPAIR_NODE_STORAGE"] == ["xenvg"]
    ran = gnt("gnt-node", "auto-repair-storage")
    assert "was not known to be consistent" in ran.out
    master.results["OP_NODE_QUERY_STORAGE"] = good[:2]
    assert "no answer from node3.example.com" in gnt("gnt-node", "auto-repair-storage").out


def test_a_state_that_cannot_be_read_is_none(master: RecordingMaster, gnt: Run) -> None:
    master.add_node("node1.example.com", vm_capable=True)
    master.results["OP_NODE_QUERY_STORAGE"] = [["node1.example.com", "[unknown]"]]
    for text in ("{", "[]", "{}"):
        (master.where.data / "lvm-self-repair.json").write_text(text)
        ran = gnt("gnt-node", "auto-repair-storage")
        assert "was not known to be consistent" in ran.out
