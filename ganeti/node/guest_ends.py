"""On the master node: what other nodes tell of their guests goes to the watcher at once.

The caller is known by its certificate, and only instances of that node are considered.
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
from ganeti.net.unix_socket import FramedClient
from ganeti.node.context import NodeContext, check_name
from ganeti.node.errands import Errands
from ganeti.rpc.calls.guest_ends import GuestEndCalls
from ganeti.rpc.server import CALLER

log = logging.getLogger(__name__)

#: Seconds to wait for the master daemon at a time; it may be starting.
_MASTER = 30.0
#: Seconds for one look of the watcher.
_LOOK = 120.0
#: Seconds for all attempts to start an instance; later it is up to the regular watcher.
_PATIENCE = 900.0
#: Instances of one call.
_MOST = 10_000
#: Exit codes of the watcher after which another look is of no use.
_DONE = (constants.EXIT_SUCCESS, constants.EXIT_NOTMASTER, constants.EXIT_NOTCLUSTER)

#: A node and an instance; no instance: the node itself, which is up now.
_Told = tuple[str, str]


class GuestEnds(GuestEndCalls):
    """Collects the instances and runs the watcher for them, one process at a time."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._errands: Errands[_Told] = Errands(
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

    def host_starts(self) -> None:
        """Take note and return.

        Raises:
            RpcError: another node is the master.
        """
        node = self._demand_master()
        log.info("node %s is up", node)
        self._errands.add([(node, "")])

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

    def _run_watcher(self, told: Mapping[_Told, int]) -> Collection[_Told]:
        """Run the watcher as soon as the master serves; what it wants to see again later."""
        try:
            FramedClient(
                self._context.paths.luxi_socket, connect_timeout=_MASTER, retry_connect=True
            ).close()
        except errors.GanetiError as err:
            log.info("the master daemon is waited for: %s", errors.text(err))
            return told
        words = [
            f"--ended-{'again' if attempts else 'now'}={node}:{name}" if name else f"--up={node}"
            for (node, name), attempts in told.items()
        ]
        try:
            done = self._run(words)
        except (errors.CommandError, errors.ConfigurationError) as err:
            log.error("%s", errors.text(err))
            return told
        if done.code not in _DONE:
            log.warning("%s", done.explain())
            return told
        left = set(done.stdout.splitlines())
        return [(node, name) for node, name in told if f"{node}:{name}" in left]
