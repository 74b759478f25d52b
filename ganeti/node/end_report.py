"""Tells the node daemon of the master node that guests of this node ended, or that it is up.

The master is where the ssconf files say at that moment. While it does not answer, it is asked
again for some minutes; then the watcher finds what is down. The node daemon of a master that was
cut off or froze takes reports, and nobody acts on them. So the next master is told again of what
happened in the last minutes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.node.context import NodeContext
from ganeti.node.errands import Errands
from ganeti.node.master_calls import call_master
from ganeti.rpc.calls import NodeCalls

log = logging.getLogger(__name__)

#: Seconds for an answer, and after which the watcher will have found it.
_ANSWER = 20.0
_PATIENCE = 300.0


#: In the place of a name: this node is up.
_UP = ""


class EndReport:
    """Names of guests on their way to the master. Thread-safe."""

    def __init__(self, context: NodeContext, *, clock: Clock = SYSTEM) -> None:
        self._context = context
        self._clock = clock
        self._lock = threading.Lock()
        #: when a master was told of each name
        self._told: dict[str, float] = {}
        self._errands: Errands[str] = Errands("report of guests", self._deliver, patience=_PATIENCE)
        self.stop = self._errands.stop

    def send(self, name: str) -> None:
        """Tell the master soon that a guest ended."""
        self._errands.add([name])

    def send_start(self) -> None:
        """Tell the master soon that this node serves calls."""
        self._errands.add([_UP])

    def repeat(self) -> None:
        """Tell the master again what the last one was told lately; another node is the master."""
        now = self._clock.monotonic()
        with self._lock:
            self._told = {k: moment for k, moment in self._told.items() if now < moment + _PATIENCE}
            names = list(self._told)
        self._errands.add(names)

    def _deliver(self, names: Mapping[str, int]) -> Collection[str]:
        ended = sorted(set(names) - {_UP})
        try:
            if ended:
                call_master(self._context, _ANSWER, NodeCalls.guests_ended, ended)
            if _UP in names:
                call_master(self._context, _ANSWER, NodeCalls.host_starts)
        except (errors.GanetiError, OSError) as err:
            log.warning("the master was not told of ended guests: %s", err)
            return names
        with self._lock:
            self._told.update(dict.fromkeys(names, self._clock.monotonic()))
        return ()
