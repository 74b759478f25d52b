"""Measurements of nodes, asked in the background, so that no reader of them calls a node.

One thread asks all nodes for their newest samples every ten seconds. Another one asks for storage
and computes what still fits: minutes apart, and only while somebody reads it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.config.store import Store
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.samples import LatestSamples

_LOG = logging.getLogger(__name__)

#: Seconds between two rounds, and for an answer.
PERIOD = 10.0
PATIENCE = 5.0
#: Seconds between two looks at storage and room, and after which nobody reads them any more.
LOOK = 120.0
INTEREST = 900.0
_STOP_WAIT = 1.0


@dataclass(frozen=True)
class NodeState:
    """The state of a node that is not offline."""

    reachable: bool
    #: Unix time of the last change of that
    since: float
    #: Unix time of its last answer, 0 without one
    answered: float
    samples: LatestSamples
    #: why it does not answer
    problem: str = ""


@dataclass(frozen=True)
class Room:
    """Storage of nodes by name (size and free space in MiB), and what still fits."""

    time: float = 0.0
    storage: Mapping[str, tuple[int | None, int | None]] | None = None
    #: as of ``gnt-cluster capacity``; None: it could not be computed
    groups: list[JsonObject] | None = None


class Survey:
    """:attr:`nodes` and :attr:`room` are replaced as a whole; read by any thread."""

    def __init__(
        self, store: Store, rpc: NodeRpc, look: Callable[[], Room], clock: Clock = SYSTEM
    ) -> None:
        """``look`` asks and computes; it may block for a minute."""
        self._store = store
        self._rpc = rpc
        self._look = look
        self._clock = clock
        self.nodes: Mapping[NodeUuid, NodeState] = {}
        self.room = Room()
        #: names of instances that changed, old to new; empty: it is gone
        self._renamed: list[tuple[str, str]] = []
        self._wanted = float("-inf")
        #: called after each round
        self.on_round: Callable[[], None] = lambda: None
        self._changed = threading.Condition()
        self._stopped = False
        self._threads = [
            threading.Thread(target=self._loop, name="survey", daemon=True),
            threading.Thread(target=self._loop_looks, name="survey-room", daemon=True),
        ]
        store.add_listener(self._follow_change)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads; a node that hangs is not waited for. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_STOP_WAIT)

    def note_interest(self) -> None:
        """Somebody reads: storage and room are computed for the next quarter of an hour."""
        with self._changed:
            now = self._clock.monotonic()
            asleep = now - self._wanted > INTEREST
            self._wanted = now
            if asleep:
                self._changed.notify_all()

    def _loop(self) -> None:
        while True:
            try:
                self.ask()
            except Exception:  # noqa: BLE001 - told to the log; the next round may succeed
                _LOG.exception("nodes were not asked for samples, by a bug")
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped, PERIOD):
                    return

    def ask(self) -> None:
        """One round to all nodes that are not offline."""
        config = self._store.current
        rpc = self._rpc.limit_time(PATIENCE)
        with self._changed:
            renamed, self._renamed = self._renamed, []
        online = config.online_nodes()
        if renamed:
            rpc.call_many(online, NodeCalls.samples_rename, renamed)
        answers = rpc.call_many(online, NodeCalls.samples_latest)
        now = self._clock.now()
        self.nodes = {
            uuid: judge(self.nodes.get(uuid), answer.value, answer.error, now)
            for uuid, answer in answers.items()
        }
        self.on_round()

    def _loop_looks(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(self._is_wanted, None) or self._stopped:
                    return
            try:
                self.room = self._look()
            except errors.GanetiError as err:
                _LOG.warning("what still fits is not known: %s", errors.text(err))
            except Exception:  # noqa: BLE001 - told to the log; the next round may succeed
                _LOG.exception("what still fits was not computed, by a bug")
            with self._changed:
                if self._changed.wait_for(lambda: self._stopped, LOOK):
                    return

    def _is_wanted(self) -> bool:
        return self._stopped or self._clock.monotonic() - self._wanted <= INTEREST

    def _follow_change(self, before: Config, after: Config) -> None:
        """Instances that were renamed or removed take their files along."""
        if before.instances is after.instances:
            return
        found = []
        for uuid, instance in before.instances.items():
            other = after.instances.get(uuid)
            if other is not instance and (other is None or other.name != instance.name):
                found.append((instance.name, "" if other is None else other.name))
        if found:
            with self._changed:
                self._renamed += found


def judge(
    before: NodeState | None,
    samples: LatestSamples | None,
    error: errors.GanetiError | None,
    now: float,
) -> NodeState:
    """The state of a node after a call. Pure."""
    reachable = error is None
    same = before is not None and before.reachable == reachable
    since = before.since if same and before is not None else now
    if reachable:
        return NodeState(True, since, now, samples or LatestSamples())
    answered = 0.0 if before is None else before.answered
    return NodeState(False, since, answered, LatestSamples(), errors.text(error) if error else "")
