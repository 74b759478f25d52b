"""On the master node: what other nodes tell of their guests goes to the watcher at once.

The caller is known by its certificate, and only instances with that primary node are looked at.
What is to be done is the watcher's to decide (:mod:`ganeti.watcher.ended`): it knows of pauses,
jobs and earlier attempts.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection, Mapping, Sequence

from ganeti import constants, errors
from ganeti.base import process, services
from ganeti.node.context import NodeContext, check_name
from ganeti.node.errands import Errands
from ganeti.rpc.calls.guest_ends import GuestEndCalls
from ganeti.rpc.server import CALLER

log = logging.getLogger(__name__)

#: Seconds for one look of the watcher.
_LOOK = 120.0
#: Seconds for all attempts to start an instance; later it is up to the regular watcher.
_PATIENCE = 900.0
#: Instances of one call.
_MOST = 10_000
#: Exit codes of the watcher after which another look is of no use.
_DONE = (constants.EXIT_SUCCESS, constants.EXIT_NOTMASTER, constants.EXIT_NOTCLUSTER)

#: A node and an instance.
_Ended = tuple[str, str]


class GuestEnds(GuestEndCalls):
    """Collects the instances and runs the watcher for them, one process at a time."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._errands: Errands[_Ended] = Errands(
            "look at guests", self._run_watcher, patience=_PATIENCE
        )
        self.stop = self._errands.stop

    def guests_ended(self, instances: list[str]) -> None:
        """Take note and return.

        Raises:
            RpcError: another node is the master.
        """
        node = self._demand_master()
        if len(instances) > _MOST:
            raise errors.ParameterError(f"{len(instances)} instances are too many for one call")
        log.info("guests ended on node %s: %s", node, ", ".join(map(check_name, instances)))
        self._errands.add((node, name) for name in instances)

    def host_stops(self, migrate: bool) -> list[str]:
        """Submit jobs for all guests of the caller; they need not have ended.

        Raises:
            RpcError: another node is the master, or its daemon does not answer.
        """
        node = self._demand_master()
        log.info("node %s is being shut down", node)
        try:
            done = self._run([f"--{'move' if migrate else 'stop'}-guests={node}"])
        except (errors.CommandError, errors.ConfigurationError) as err:
            raise errors.RpcError(errors.text(err)) from err
        if not done.ok:
            raise errors.RpcError(done.explain())
        return done.stdout.split()

    def _demand_master(self) -> str:
        """The node that calls; RpcError when this one is not the master."""
        master = self._context.read_master()
        if master != self._context.name:
            raise errors.RpcError(f"{master or 'another node'} is the master")
        return CALLER.get()

    def _run(self, words: Sequence[str]) -> process.Result:
        options = services.read_words("WATCHER_ARGS", self._context.paths) or ()
        argv = [sys.executable, "-m", "ganeti.watcher.program", *options, *words]
        return process.run(argv, timeout=_LOOK, env=dict(os.environ))

    def _run_watcher(self, ended: Mapping[_Ended, int]) -> Collection[_Ended]:
        """Run the watcher; what it wants to see again later."""
        words = [
            f"--ended-{'again' if attempts else 'now'}={node}:{name}"
            for (node, name), attempts in ended.items()
        ]
        try:
            done = self._run(words)
        except (errors.CommandError, errors.ConfigurationError) as err:
            log.error("%s", errors.text(err))
            return ended
        if done.code not in _DONE:
            log.warning("%s", done.explain())
            return ended
        left = set(done.stdout.splitlines())
        return [(node, name) for node, name in ended if f"{node}:{name}" in left]
