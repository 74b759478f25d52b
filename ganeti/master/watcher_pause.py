"""Pauses the watchers of all nodes."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base import files
from ganeti.master.core import Core
from ganeti.rpc.calls import NodeCalls

_LOG = logging.getLogger(__name__)


def write(core: Core, until: float | None) -> None:
    """Pause the watcher of this node; None ends a pause.

    Raises:
        GenericError: that time has passed.
    """
    if until is None:
        files.remove(core.paths.watcher_pause)
        return
    if until < core.clock.now():
        raise errors.GenericError("the watcher cannot be paused until a time in the past")
    files.write_atomic(core.paths.watcher_pause, f"{until!r}\n", mode=0o644)


def send(core: Core, until: float | None) -> None:
    """Have all other nodes do the same; the watcher of one that does not answer runs on."""
    config = core.store.current
    nodes = [
        node
        for node in config.nodes.values()
        if not node.offline and node.uuid != config.cluster.master_node
    ]
    for answer in core.rpc.call_many(nodes, NodeCalls.set_watcher_pause, until).values():
        if answer.error is not None:
            _LOG.warning(
                "node %s does not know of the pause of the watcher: %s",
                answer.node.name,
                errors.text(answer.error),
            )
