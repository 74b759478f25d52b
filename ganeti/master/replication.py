"""Sends the master's state to the other master candidates, each over a channel of its own."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from ganeti import errors
from ganeti.base import position
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.base.copies import Round
from ganeti.base.file_parts import Contents
from ganeti.master.channel import Channel, Pending, State
from ganeti.master.copy_round import CopyRound, count_needed_copies
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.rpc.client import NodeRpc

_LOG = logging.getLogger(__name__)


class Replication:
    """The copies of a running master; implements :class:`~ganeti.base.copies.Copies`."""

    def __init__(self, rpc: NodeRpc, clock: Clock = SYSTEM) -> None:
        self._rpc = rpc
        self._clock = clock
        self._lock = threading.Lock()
        self._channels: dict[NodeUuid, Channel] = {}
        #: number of the last write in this term
        self._sequence = 1
        self._position: int | None = None
        self._state: State | None = None
        #: acknowledge what only this node has (the administrator said so)
        self.alone = False

    def start(self, state: State, config: Config, position_file: Path, claimed: float) -> None:
        """Begin to send to the candidates, and to note in a file how new our own state is.

        ``claimed`` is when this master began to claim its term, by the monotonic clock: nothing
        later is known of the candidates.
        """
        self._state = state
        self._position = os.open(position_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._note_position()
        self.follow(config, contact=claimed)

    def _note_position(self) -> None:
        """Not flushed: after a boot nobody trusts the number (:class:`position.Known`).

        Always the same file, even when a later master has put another one in its place: then what
        is noted here does not count any more.
        """
        if self._position is not None:
            text = position.make_own_text((self._rpc.epoch, self._sequence))
            os.pwrite(self._position, text.encode("ascii"), 0)

    def follow(self, config: Config, *, contact: float | None = None) -> None:
        """Have one channel for each other candidate that is not offline.

        ``contact`` is when a new one was heard for the last time; None: now.
        """
        if self._state is None:
            return
        wanted = {
            node.uuid: node
            for node in config.nodes.values()
            if node.master_candidate and not node.offline and node is not config.master
        }
        with self._lock:
            ended = [
                self._channels.pop(uuid)
                for uuid, channel in list(self._channels.items())
                if uuid not in wanted or wanted[uuid].primary_ip != channel.node.primary_ip
            ]
            for uuid, node in wanted.items():
                if uuid not in self._channels:
                    self._channels[uuid] = Channel(
                        node,
                        self._rpc,
                        self._state,
                        self._sequence,
                        self._clock,
                        contact=contact,
                    )
        for channel in ended:
            threading.Thread(target=channel.stop, daemon=True, name="channel-end").start()

    def stop(self, timeout: float) -> None:
        """Let the candidates have everything, for at most ``timeout`` seconds, and end."""
        end = Deadline(timeout, self._clock)
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.flushed(end.left)
            channel.stop()
        if self._position is not None:
            os.close(self._position)
            self._position = None

    def find_contact(self) -> float:
        """When a majority of the candidates was last known to follow, by the monotonic clock.

        Always now when this node is a majority by itself, or must do without one.
        """
        with self._lock:
            contacts = sorted((c.contact for c in self._channels.values()), reverse=True)
        needed = count_needed_copies(len(contacts) + 1) - 1
        if self.alone or needed == 0:
            return self._clock.monotonic()
        return contacts[needed - 1]

    def failure_of(self, candidate: NodeUuid) -> str:
        """Why a candidate has no copy of the newest state, after another try; empty if it has."""
        with self._lock:
            channel = self._channels.get(candidate)
        failure = channel.retry() if channel else None
        return failure.text if failure else ""

    def _put(self, fill: Callable[[Pending], None], what: str = "") -> Round:
        # With the lock: in the same order for all. Of two copies one then has all of the other.
        with self._lock:
            channels = list(self._channels.values())
            others = [] if self.alone else [channel.node.name for channel in channels]
            round_ = CopyRound(others, what)
            self._sequence += 1
            self._note_position()
            for channel in channels:
                channel.put(fill, self._sequence, round_ if what and not self.alone else None)
        return round_

    # copies --------------------------------------------------------------------------------

    def change(self, base: int, serial: int, lines: bytes) -> Round:
        texts = [f"{line}\n" for line in lines.decode("utf-8").splitlines()]
        if len(texts) != serial - base:
            raise errors.ProgrammerError(f"{len(texts)} journal lines for {base} to {serial}")
        return self._put(lambda pending: pending.add_lines(base, texts), "the change")

    def take_back(self) -> None:
        with self._lock:
            for channel in self._channels.values():
                channel.take_back()

    def checkpoint(self) -> None:
        self._renew()

    def _renew(self) -> None:
        with self._lock:
            for channel in self._channels.values():
                channel.renew_config()

    def write_jobs(self, contents: Contents) -> Round:
        return self._put(lambda pending: pending.files.update(contents), "the job")

    def archive_jobs(self, names: Iterable[str]) -> None:
        moved = list(names)
        self._put(lambda pending: pending.archive.extend(moved))

    def remove_jobs(self, names: Iterable[str]) -> None:
        gone = list(names)

        def fill(pending: Pending) -> None:
            pending.files.forget(gone)
            pending.remove.extend(gone)

        self._put(fill)

    def drain(self, flag: bool) -> Round:
        def fill(pending: Pending) -> None:
            pending.drained = flag

        return self._put(fill, "the drain flag")
