"""A running instance moves with its disks, and the master or a node is lost at every step.

Afterwards the instance runs on one node, with all that was on its disks, and nothing of it is on
another one. A node that was lost may have to come back before that, or be given up by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.opcodes.instance import OpInstanceStartup
from ganeti.opcodes.instance_move import OpInstanceFailover, OpInstanceMigrate, OpInstanceMove
from ganeti.opcodes.node import OpNodeSetParams
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import RightState

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("skip_fsync", "skip_patience")]

WEB = "web.example.com"
HOME, OTHER = "node2", "node3"


def move(_cluster: OneProcess) -> OpInstanceMove:
    return OpInstanceMove(instance_name=WEB, target_node=f"{OTHER}.example.com", live=True)


def clean_up(cluster: OneProcess) -> None:
    """What the next master does when a node has the migration on record."""
    if open_rights(cluster):
        cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))


def open_rights(cluster: OneProcess) -> list[str]:
    answers = cluster.call_many(cluster.config.online_nodes(), NodeCalls.run_rights, [])
    return [answer.node.name for answer in answers.values() if answer.value]


def primary(cluster: OneProcess) -> str:
    node = cluster.config.nodes[cluster.instance(WEB).primary_node]
    return node.name.partition(".")[0]


def check_whole(cluster: OneProcess, when: str) -> None:
    assert open_rights(cluster) == [], when
    assert cluster.running(WEB) == [primary(cluster)], when
    check_disks(cluster, [primary(cluster)], when)
    cluster.check_quiet(when)
    assert cluster.verify() == [], when


def check_disks(cluster: OneProcess, nodes: list[str], when: str) -> None:
    for uuid in cluster.instance(WEB).disks:
        assert cluster.marked(uuid), (when, "content was lost")
    found = {path.relative_to(cluster.root).parts[0] for path in cluster.images()}
    assert sorted(found) == nodes, when


def has_committed(cluster: OneProcess) -> bool:
    """Whether the target was told that it may run the instance."""
    uuid = cluster.instance(WEB).uuid
    return any(
        right.state is RightState.HERE
        for right in cluster.handlers[cluster.node(3).uuid].run_rights([uuid])
    )


def set_offline(cluster: OneProcess, node: str, offline: bool) -> None:
    cluster.run(OpNodeSetParams(node_name=f"{node}.example.com", offline=offline))


def test_the_master_dies_at_every_step(tmp_path: Path, running_tree: Path) -> None:
    ends = []
    for when, cluster in OneProcess.deaths(running_tree, tmp_path, move):
        assert len(cluster.running(WEB)) <= 1, when
        clean_up(cluster)
        check_whole(cluster, when)
        ends.append(primary(cluster))
    # First it stays, from some step on it has moved.
    assert ends == sorted(ends)
    assert set(ends) == {HOME, OTHER}


def lose_node(tmp_path: Path, running_tree: Path, node: str) -> Iterator[tuple[str, OneProcess]]:
    """The master dies at every step, and a node with it, which is marked offline."""
    for when, cluster in OneProcess.deaths(running_tree, tmp_path, move):
        for name in (WEB, f".away-{WEB}", f".awaited-{WEB}"):
            (cluster.paths[node].fake_hypervisor / name).unlink(missing_ok=True)
        set_offline(cluster, node, True)
        yield when, cluster


def test_the_master_and_the_target_are_lost(tmp_path: Path, running_tree: Path) -> None:
    """What the target alone has is never given up silently."""
    outcomes = set()
    for when, cluster in lose_node(tmp_path, running_tree, OTHER):
        may_have_run = primary(cluster) == OTHER
        try:
            cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))
            failed = ""
        except errors.OpExecError as err:
            failed = errors.text(err)
        assert bool(failed) == (may_have_run and bool(open_rights(cluster))), when
        outcomes.add(bool(failed))
        if failed:
            assert "node3.example.com is offline: its newest writes are only there" in failed, when
            assert cluster.running(WEB) == [], when
            assert open_rights(cluster) == ["node2.example.com"], when
        set_offline(cluster, OTHER, False)
        clean_up(cluster)
        if not cluster.running(WEB):
            # It had arrived before its node was lost; the watcher does this.
            assert primary(cluster) == OTHER, when
            cluster.run(OpInstanceStartup(instance_name=WEB))
        check_whole(cluster, when)
        assert primary(cluster) == (OTHER if has_committed(cluster) else HOME), when
    assert outcomes == {False, True}


def test_a_lost_target_is_given_up_by_name(tmp_path: Path, running_tree: Path) -> None:
    """Not when the source has lost a part of its disks already."""
    outcomes = set()
    for when, cluster in lose_node(tmp_path, running_tree, OTHER):
        if primary(cluster) != OTHER or not open_rights(cluster):
            continue
        complete = len([path for path in cluster.images() if HOME in path.parts]) == 2
        op = OpInstanceFailover(instance_name=WEB, cleanup=True, ignore_consistency=True)
        outcomes.add(complete)
        if not complete:
            with pytest.raises(errors.OpExecError, match=r"only node3\.example\.com has it"):
                cluster.run(op)
            continue
        cluster.run(op)
        assert cluster.running(WEB) == [primary(cluster)] == [HOME], when
        assert open_rights(cluster) == [], when
    assert outcomes == {False, True}


def test_the_master_and_the_source_are_lost(tmp_path: Path, running_tree: Path) -> None:
    for when, cluster in lose_node(tmp_path, running_tree, HOME):
        cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))
        # A guest that had not all arrived is down with its node.
        arrived = primary(cluster) == OTHER
        assert cluster.running(WEB) == ([OTHER] if arrived else []), when
        set_offline(cluster, HOME, False)
        clean_up(cluster)
        assert open_rights(cluster) == [], when
        reported = "\n".join(cluster.verify())
        for path in cluster.images():
            kept = primary(cluster) == HOME and OTHER in path.parts
            assert primary(cluster) in path.parts or (kept and path.name in reported), when
        for uuid in cluster.instance(WEB).disks:
            assert cluster.marked(uuid), when
