"""Stops or moves the guests of a node that is being shut down, in the order of their tags.

Its instances stay recorded as running: they start again when the node is back.
"""

from __future__ import annotations

import logging

from ganeti.base.json_types import JsonObject
from ganeti.model.enums import InstanceStatus
from ganeti.model.start_order import get_order, limit_reason, sort, with_dependencies
from ganeti.placement.facts import MIRRORS, Mirror
from ganeti.upkeep import view
from ganeti.upkeep.instances import identify
from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)


def run(now: Round, node: str, *, move: bool) -> list[str]:
    """Submit the jobs; names of their instances.

    Raises:
        GanetiError: the master does not answer.
    """
    found = now.client.query("instance", ["name"], ["=", "pnode", node])
    names = [name for [(_status, name)] in found.data]
    groups = view.load(now.client, names) if names else []
    running = [
        item
        for group in groups
        for item in group.instances
        if item.primary == node and item.status in (InstanceStatus.RUNNING, InstanceStatus.ERROR_UP)
    ]
    items = sort(running, stop=True)
    limit = limit_reason("stops", node, now.options.parallel)
    reason = now.reason("the node is being shut down", limit)
    ops = [{**_make_opcode(item, move=move), "reason": reason} for item in items]
    orders = [get_order(item.tags) for item in items]
    done = []
    for item, submitted in zip(items, now.submit(with_dependencies(ops, orders))):
        if submitted.job_id is None:
            _LOG.error("%s is not stopped: %s", item.name, submitted.error)
            continue
        _LOG.info("%s leaves node %s: job %s", item.name, node, submitted.job_id)
        done.append(item.name)
    return done


def _make_opcode(item: view.Instance, *, move: bool) -> JsonObject:
    if move and MIRRORS.get(item.template, Mirror.NONE) is not Mirror.NONE:
        return {"OP_ID": "OP_INSTANCE_MIGRATE", **identify(item)}
    return {"OP_ID": "OP_INSTANCE_SHUTDOWN", **identify(item), "no_remember": True}
