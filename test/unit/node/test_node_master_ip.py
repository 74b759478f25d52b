"""The address of the cluster on a node, and a node that stops being a candidate."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from local_node import LocalNode

from ganeti import errors
from ganeti.base import files
from ganeti.node import master_ip
from ganeti.paths import Paths
from ganeti.rpc.objects import MasterNetwork

ADDRESS = MasterNetwork(uuid="u", ip="127.9.8.7", netmask=32, netdev="lo")


@pytest.fixture(autouse=True)
def rooted(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(paths.root))


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_below_a_root_the_state_is_only_recorded(node: LocalNode, paths: Paths) -> None:
    for _ in range(2):
        node.node_activate_master_ip(ADDRESS, False)
    assert paths.master_ip_state.read_text() == "127.9.8.7 32 lo\n"
    node.node_change_master_netmask(32, 24, "127.9.8.7", "lo")
    assert paths.master_ip_state.read_text() == "127.9.8.7 24 lo\n"
    for _ in range(2):
        node.node_deactivate_master_ip(ADDRESS, False)
    assert not paths.master_ip_state.exists()
    node.node_change_master_netmask(32, 24, "127.9.8.7", "lo")
    assert not paths.master_ip_state.exists()


def test_a_script_of_ones_own_gets_word_and_environment(node: LocalNode, paths: Paths) -> None:
    with pytest.raises(errors.GenericError, match="missing or not executable"):
        node.node_activate_master_ip(ADDRESS, True)
    script(paths.master_ip_script, f'echo "$1 $MASTER_IP" >>{paths.run}/said; env >{paths.run}/env')
    node.node_activate_master_ip(ADDRESS, True)
    node.node_deactivate_master_ip(ADDRESS, True)
    assert (paths.run / "said").read_text() == "start 127.9.8.7\nstop 127.9.8.7\n"
    seen = dict(line.split("=", 1) for line in (paths.run / "env").read_text().splitlines())
    assert seen["MASTER_NETDEV"] == "lo"
    assert seen["MASTER_NETMASK"] == "32"
    assert seen["CLUSTER_IP_VERSION"] == "4"


def test_a_script_that_fails_is_quoted(node: LocalNode, paths: Paths) -> None:
    script(paths.master_ip_script, "echo no such device >&2; exit 3")
    with pytest.raises(errors.CommandError, match="no such device"):
        node.node_activate_master_ip(ADDRESS, True)


def test_hooks_run_around_it_and_a_pre_hook_can_refuse(node: LocalNode, paths: Paths) -> None:
    said = paths.run / "said"
    for word in ("turnup", "turndown"):
        for phase in ("pre", "post"):
            script(
                paths.hooks / f"master-ip-{word}-{phase}.d" / "tell",
                f'echo "$GANETI_OP_CODE $GANETI_HOOKS_PHASE $GANETI_MASTER_IP" >>{said}',
            )
    node.node_activate_master_ip(ADDRESS, False)
    node.node_deactivate_master_ip(ADDRESS, False)
    assert said.read_text().splitlines() == [
        "OP_CLUSTER_IP_TURNUP pre 127.9.8.7",
        "OP_CLUSTER_IP_TURNUP post 127.9.8.7",
        "OP_CLUSTER_IP_TURNDOWN pre 127.9.8.7",
        "OP_CLUSTER_IP_TURNDOWN post 127.9.8.7",
    ]
    script(paths.hooks / "master-ip-turnup-pre.d" / "refuse", "exit 1")
    with pytest.raises(errors.HooksAbort):
        node.node_activate_master_ip(ADDRESS, False)
    assert not paths.master_ip_state.exists()


@pytest.mark.parametrize(
    "wrong", [{"ip": "host"}, {"netmask": 33}, {"netmask": 0}, {"netdev": ""}, {"netdev": "a b"}]
)
def test_nonsense_never_reaches_a_script(node: LocalNode, wrong: dict[str, object]) -> None:
    facts = {"uuid": "u", "ip": "127.9.8.7", "netmask": 32, "netdev": "lo", **wrong}
    with pytest.raises(errors.ParameterError):
        node.node_activate_master_ip(MasterNetwork(**facts), False)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [[], ["restart"], ["start", "stop"]])
def test_the_shipped_script_refuses_other_words(words: list[str]) -> None:
    result = subprocess.run(
        [str(master_ip.find_shipped_script()), *words],
        capture_output=True,
        check=False,
        env={},
        timeout=10,
    )
    assert result.returncode == 1
    assert b"start or stop" in result.stderr


class TestDemotion:
    def test_it_forgets_what_only_candidates_have(self, node: LocalNode, paths: Paths) -> None:
        paths.queue.mkdir()
        kept = (paths.hmac_key, paths.ca_cert, paths.ssconf("master_node"))
        gone = (paths.config_file, paths.journal_file, paths.ca_key, paths.queue / "job-7")
        for path in (*kept, *gone):
            files.write_atomic(path, "x\n")
        for _ in range(2):
            node.node_demote_from_mc()
        assert [path.exists() for path in gone] == [False] * len(gone)
        assert all(path.exists() for path in kept)

    def test_the_master_refuses(self, node: LocalNode, paths: Paths) -> None:
        paths.ssconf("master_node").write_text("node1.example.com\n")
        paths.config_file.write_text("{}")
        with pytest.raises(errors.GenericError, match="is the master"):
            node.node_demote_from_mc()
        assert paths.config_file.exists()
        assert os.path.getsize(paths.config_file) == 2
