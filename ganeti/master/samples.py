"""Measurements of a node or an instance over a time, from the nodes that have some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.base.clock import Clock
from ganeti.base.json_types import JsonObject
from ganeti.config.store import Store
from ganeti.model.node import Node
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.samples import Samples

#: Seconds that a node gets to answer.
PATIENCE = 10.0
#: Ranges: how long it is and how far apart values are, in seconds.
RANGES = {"hour": (3600, 10), "day": (86400, 60), "month": (30 * 86400, 1800)}
UNITS = {
    "cpu": "cores",
    "memory": "bytes",
    "disk_read": "bytes/s",
    "disk_write": "bytes/s",
    "disk_read_ops": "operations/s",
    "disk_write_ops": "operations/s",
    "net_receive": "bytes/s",
    "net_send": "bytes/s",
}


def read(store: Store, rpc: NodeRpc, clock: Clock, kind: str, name: str, span: str) -> JsonObject:
    """The answer of QuerySamples; blocks until all nodes asked have answered.

    An instance that was moved has left samples on its former nodes, so all of its node group are
    asked. Samples from before it was made belong to another instance of that name.

    Raises:
        OpPrereqError: the object, its kind or the range is not known.
        RpcError: a node does not answer, or none of those with samples.
    """
    if kind not in ("node", "instance") or span not in RANGES:
        raise errors.make_invalid_error(
            f"no samples of a {kind:.40} for a {span:.40}; there are node and instance, and"
            f" {', '.join(RANGES)}",
        )
    config = store.current
    if kind == "node":
        wanted, nodes, since = "", [config.node(name)], None
    else:
        instance = config.instance(name)
        primary = config.nodes[instance.primary_node]
        wanted, since = instance.name, instance.ctime
        nodes = [node for node in config.group_nodes(primary.group) if not node.offline]
        nodes.sort(key=lambda node: node.uuid != primary.uuid)
    length, step = RANGES[span]
    end = int(clock.now()) // step * step
    begin = end - length + step
    found = _ask(rpc, nodes, (wanted, begin, end, step))
    count = length // step
    return {
        "start": begin,
        "step": step,
        "units": UNITS,
        "series": {key: merge(found, key, begin, step, count, since) for key in UNITS},
    }


def _ask(rpc: NodeRpc, nodes: Sequence[Node], question: tuple[Any, ...]) -> list[Samples]:
    answers = rpc.limit_time(PATIENCE).call_many(nodes, NodeCalls.samples_read, *question)
    found = [answer.get() for answer in answers.values() if answer.ok]
    first = answers[nodes[0].uuid] if nodes else None
    if not found and first is not None:
        first.get()
    return found


def merge(
    found: Sequence[Samples], key: str, begin: int, step: int, count: int, since: float | None
) -> list[float | None]:
    """One series of what several nodes have: the first value of each interval. Pure."""
    made: list[float | None] = [None] * count
    for samples in found:
        shift = (samples.start - begin) // step
        for index, value in enumerate(samples.series.get(key, ())):
            place = index + shift
            if value is None or not 0 <= place < count or made[place] is not None:
                continue
            if since is None or begin + (place + 1) * step > since:
                made[place] = value
    return made
