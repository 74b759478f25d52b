"""At the start of a master: migrations that ended with the last one are brought to an end.

Nodes remember which instances were on their way. A job for each of them finds out where it is; so
it is seen in the list of jobs, holds its locks, and reports what it did. Nodes that do not answer
now are found by ``gnt-cluster verify``.
"""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, nanoseconds
from ganeti.jobs.queue import JobQueue
from ganeti.model.config import Config
from ganeti.model.names import InstanceUuid
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)

#: Seconds that nodes get to say what was on its way.
PATIENCE = 30.0
_REASON = "the former master did not finish a migration"


def settle(config: Config, rpc: NodeRpc, queue: JobQueue, *, clock: Clock = SYSTEM) -> list[int]:
    """Submit a clean-up for each instance that was on its way; returns the ids of the jobs."""
    answers = rpc.within(PATIENCE).many(config.online_nodes(), NodeCalls.run_rights, [])
    found: dict[InstanceUuid, None] = {}
    for answer in answers.values():
        if answer.error is not None:
            _LOG.warning("not asked for unfinished migrations: %s", errors.text(answer.error))
        found.update(dict.fromkeys(right.uuid for right in answer.value or ()))
    jobs: list[list[OpCode]] = [
        [
            OpInstanceMigrate(
                instance_name=config.instances[uuid].name,
                cleanup=True,
                reason=[("gnt:master", _REASON, nanoseconds(clock.now()))],
            )
        ]
        for uuid in found
        if uuid in config.instances
    ]
    if not jobs:
        return []
    try:
        ids = queue.submit(jobs, None, ignore_drain=True)
    except errors.GanetiError as err:
        _LOG.error("unfinished migrations are left as they are: %s", errors.text(err))
        return []
    _LOG.warning("unfinished migrations of %d instance(s) are settled by jobs %s", len(ids), ids)
    return ids
