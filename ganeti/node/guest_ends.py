"""On the master node: acts at once on reports of other nodes about their guests.

The caller is known by its certificate, and only instances of that node are considered.
As in each run of the watcher, :mod:`ganeti.upkeep` decides what to do: it knows of pauses, jobs and
earlier attempts.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping

from ganeti import constants, errors
from ganeti.base import files, services
from ganeti.base.clock import SYSTEM
from ganeti.luxi.client import Client
from ganeti.net.unix_socket import FramedClient
from ganeti.node.context import NodeContext, check_name
from ganeti.node.errands import Errands
from ganeti.rpc.calls.guest_ends import GuestEndCalls
from ganeti.rpc.server import CALLER
from ganeti.upkeep import emptying, ended
from ganeti.upkeep.ended import Ended, Report, Up
from ganeti.upkeep.round import Round, read_options

log = logging.getLogger(__name__)

#: Seconds to wait for the master daemon at a time; it may be starting.
_MASTER = 30.0
#: Seconds for all attempts to start an instance; later it is up to the regular watcher.
_PATIENCE = 900.0
#: Instances of one call.
_MOST = 10_000
#: Exit codes of errors that another attempt would repeat.
_DONE = (constants.EXIT_NOTMASTER, constants.EXIT_NOTCLUSTER)


class GuestEnds(GuestEndCalls):
    """Collects the instances; one thread asks the master about them and submits jobs."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._errands: Errands[Report] = Errands("check guests", self._treat, patience=_PATIENCE)
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
        self._errands.add(Ended(node, name) for name in instances)

    def host_starts(self) -> None:
        """Take note and return.

        Raises:
            RpcError: another node is the master.
        """
        node = self._demand_master()
        log.info("node %s is up", node)
        self._errands.add([Up(node)])

    def host_stops(self, migrate: bool) -> list[str]:
        """Submit jobs for all guests of the caller, also during a pause; they need not have ended.

        Raises:
            RpcError: another node is the master, or its daemon does not answer.
        """
        node = self._demand_master()
        log.info("node %s is being shut down", node)
        try:
            with self._open_round() as now:
                return emptying.run(now, node, move=migrate)
        except errors.GanetiError as err:
            raise errors.RpcError(errors.text(err)) from err

    def _demand_master(self) -> str:
        """The node that calls; RpcError when this one is not the master."""
        master = self._context.read_master()
        if master != self._context.name:
            raise errors.RpcError(f"{master or 'another node'} is the master")
        return CALLER.get()

    @contextlib.contextmanager
    def _open_round(self) -> Iterator[Round]:
        paths = self._context.paths
        options = read_options(services.read_words("WATCHER_ARGS", paths) or ())
        client = Client()
        try:
            yield Round(client, SYSTEM, paths, options)
        finally:
            client.close()

    def _treat(self, reports: Mapping[Report, int]) -> Collection[Report]:
        """Submit jobs as soon as the master serves; what is to be checked again later."""
        try:
            self._wait_for_master()
            with self._open_round() as now:
                if now.read_pause() is None:
                    return ended.run(now, reports)
                log.info("paused; left alone: %s", ", ".join(map(str, reports)))
                return ()
        except (errors.GanetiError, OSError) as err:
            failure = files.failure(err) if isinstance(err, OSError) else err
            log.warning("guests are not checked: %s", errors.text(failure))
            return () if failure.exit_code in _DONE else reports

    def _wait_for_master(self) -> None:
        """Until the master daemon serves, as it may be starting."""
        socket = self._context.paths.luxi_socket
        FramedClient(socket, connect_timeout=_MASTER, retry_connect=True).close()
