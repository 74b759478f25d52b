"""What allocators are told."""

from __future__ import annotations

from op_samples import config

from ganeti.ops.allocator import request
from ganeti.ops.board.node_answers import Answers, NodeFacts


def test_free_spindles_are_told_where_nodes_say_them() -> None:
    cluster = config()
    [node] = cluster.nodes.values()
    facts = {node.uuid: NodeFacts(spindles=(6, 2))}
    told = request.cluster(cluster, Answers(cluster, facts))["nodes"][node.name]
    assert (told["total_spindles"], told["free_spindles"]) == (6, 2)
    facts = {node.uuid: NodeFacts()}
    silent = request.cluster(cluster, Answers(cluster, facts))["nodes"][node.name]
    assert (silent["total_spindles"], silent["free_spindles"]) == (0, 0)
