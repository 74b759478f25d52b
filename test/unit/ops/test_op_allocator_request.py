"""What allocators are told."""

from __future__ import annotations

from op_samples import config

from ganeti.ops.allocator import request
from ganeti.ops.allocator.request import NodeFacts


def test_free_spindles_are_told_where_nodes_say_them() -> None:
    cluster = config()
    [node] = cluster.nodes.values()
    told = request.cluster(cluster, {node.uuid: NodeFacts(spindles=(6, 2))})["nodes"][node.name]
    assert (told["total_spindles"], told["free_spindles"]) == (6, 2)
    silent = request.cluster(cluster, {node.uuid: NodeFacts()})["nodes"][node.name]
    assert (silent["total_spindles"], silent["free_spindles"]) == (0, 0)
