"""The next update for one master candidate, and the thread that sends it.

What came while a call was on its way goes out together with the next one, so a slow candidate
costs memory for the newest state of each file only. A candidate that failed, or is new, is brought
up to date as a whole first; until then what changes in job files is not kept for it. A failed
channel counts as failed at once until it works again.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.file_parts import Contents
from ganeti.master.copy_round import CopyRound, Failure
from ganeti.model.node import Node
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.replica import ReplicaUpdate
from ganeti.rpc.wire import encode_content

_LOG = logging.getLogger(__name__)

#: Seconds between two tries to reach a failed candidate when nothing else happens.
RETRY_AFTER = 5.0
#: Seconds that a failed candidate is left alone even if there is news for it.
SHORTEST_RETRY = 1.0
#: Seconds that a caller who asks about a failed candidate waits for another try.
RETRY_PATIENCE = 10.0
#: Seconds after which an idle candidate gets an empty update: it tells whether it can be reached,
#: and a master that was replaced learns of it.
HEARTBEAT = 5.0
#: Journal lines kept for a failed candidate; older ones are in every snapshot by then.
KEPT_LINES = 1000
#: Bytes of job files in one call when a candidate is brought up to date.
PART = 4 * 1024 * 1024


@dataclass
class Snapshot:
    """The whole state, for a candidate that has to be brought up to date."""

    serial: int
    #: text of ``config.data``
    config: str
    #: queue file -> content; empty when only the configuration was requested
    files: dict[str, bytes]
    drained: bool


@dataclass
class State:
    """Reads the whole state; may block for the disk."""

    #: all of it; with True the files of the queue too
    snapshot: Callable[[bool], Snapshot]
    #: files of archived jobs, by the names they had in the queue
    archived: Callable[[Iterable[str]], dict[str, bytes]]
    #: seconds of silence after which a candidate may take the place of this master; 0: never
    failover_after: Callable[[], int] = lambda: 0
    #: called after a candidate has answered; must not block
    on_contact: Callable[[], None] = lambda: None


@dataclass
class Pending:
    """The next update of a channel."""

    #: number of the last write that is in here or was sent before
    sequence: int = 0
    base: int = 0
    lines: list[str] = field(default_factory=list)
    files: Contents = field(default_factory=Contents)
    archive: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    drained: bool | None = None
    rounds: list[CopyRound] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.lines or self.files or self.archive or self.remove or self.drained is not None
        )

    def add_lines(self, base: int, lines: Sequence[str]) -> None:
        """Journal lines that follow serial ``base``; very old ones are in every snapshot."""
        if base != self.base + len(self.lines):  # the last ones were taken back
            self.lines = self.lines[: max(0, base - self.base)]
        if not self.lines:
            self.base = base
        self.lines = [*self.lines, *lines]
        if len(self.lines) > 2 * KEPT_LINES:
            self.skip_to(self.base + len(self.lines) - KEPT_LINES)

    def skip_to(self, serial: int) -> None:
        """Forget the lines up to a serial."""
        self.lines = self.lines[max(0, serial - self.base) :]
        self.base = max(serial, self.base)

    def put_before(self, newer: Pending) -> Pending:
        """This and what came after it; the rounds stay where they are."""
        both = Pending(
            base=self.base,
            lines=list(self.lines),
            files=self.files,
            archive=[*self.archive, *newer.archive],
            remove=[*self.remove, *newer.remove],
            drained=self.drained if newer.drained is None else newer.drained,
            rounds=newer.rounds,
        )
        both.files.update(newer.files)
        if newer.lines:
            both.add_lines(newer.base, newer.lines)
        both.files.forget(newer.remove)
        return both

    def update(self, epoch: int) -> ReplicaUpdate:
        return ReplicaUpdate(
            epoch=epoch,
            sequence=self.sequence,
            base=self.base,
            serial=self.base + len(self.lines),
            records=self.lines,
            files=_texts(self.files.whole),
            parts=self.files.parts,
            archive=self.archive,
            remove=self.remove,
            drained=self.drained,
        )


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Contents for the wire. A damaged file is left out: what the candidate has of it is better."""
    found: dict[str, str] = {}
    for name, data in contents.items():
        try:
            found[name] = data.decode("utf-8")
        except UnicodeDecodeError as err:
            _LOG.error("%s is damaged and is not copied: %s", name, err)
    return found


class Channel:
    """One candidate: a thread that sends what is pending, in order."""

    def __init__(
        self,
        node: Node,
        rpc: NodeRpc,
        state: State,
        sequence: int,
        clock: Clock = SYSTEM,
        *,
        contact: float | None = None,
    ) -> None:
        """``sequence`` is the number of the last write; a snapshot taken from now on has it.

        ``contact``: when a call began that the candidate has answered before; None: now.
        """
        self.node = node
        self._clock = clock
        self._sequence = sequence
        self._rpc = rpc
        self._state = state
        self._cond = threading.Condition()
        self._pending = Pending()
        #: the candidate must get the configuration, or everything, again
        self._renew_config = self._renew_all = True
        #: how often lines were taken back
        self._taken_back = 0
        #: when a call began that the candidate has answered, by the monotonic clock
        self.contact = clock.monotonic() if contact is None else contact
        #: why it lags, None while it has what was sent
        self.failure: Failure | None = None
        #: a failed candidate answers again, and is being brought up to date
        self._catching_up = False
        self._failed_at = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name=f"to-{node.name}", daemon=True)
        self._thread.start()

    def put(
        self, fill: Callable[[Pending], None], sequence: int, round_: CopyRound | None = None
    ) -> None:
        """Add to the next update; a failed channel informs the round at once.

        A candidate that is being brought up to date takes part in the round: it may be needed for
        a majority.
        """
        with self._cond:
            fill(self._pending)
            if self._renew_all:
                self._pending.files = Contents()  # they come with the snapshot
            self._sequence = sequence
            if round_ is not None:
                if self.failure and not self._catching_up:
                    round_.note_failure(self.node.name, self.failure)
                else:
                    self._pending.rounds.append(round_)
            self._cond.notify()

    def renew_config(self) -> None:
        """Send the whole configuration next, as the copy of the candidate cannot be used."""
        with self._cond:
            self._renew_config = True
            self._cond.notify()

    def take_back(self) -> None:
        """Forget the lines that were not sent yet: they are not to be, or in the next snapshot."""
        with self._cond:
            self._taken_back += 1
            self._pending.lines = []
            self._renew_config = True
            self._cond.notify()

    def stop(self) -> None:
        """End the thread after what it is doing now. Idempotent."""
        with self._cond:
            self._stopping = True
            self._cond.notify()
        self._thread.join()

    def flushed(self, timeout: float) -> bool:
        """Wait until nothing is pending; False when the candidate fails or is too slow."""
        with self._cond:
            return (
                self._cond.wait_for(
                    lambda: self.failure is not None or not (self._work() or self._pending.rounds),
                    timeout,
                )
                and self.failure is None
            )

    def retry(self) -> Failure | None:
        """Try a failed candidate again; returns why it lags after that, None if it does not."""
        with self._cond:
            failed_at = self._failed_at

            def was_tried() -> bool:
                return self.failure is None or self._failed_at != failed_at

            rest = failed_at + SHORTEST_RETRY - self._clock.monotonic()
            if not self._cond.wait_for(was_tried, max(rest, 0)):
                self._cond.notify_all()
                self._cond.wait_for(was_tried, RETRY_PATIENCE)
            return self.failure

    def _work(self) -> bool:
        return bool(self._pending) or self._renew_config or self._renew_all

    def _needs_work(self) -> bool:
        # A failed candidate is tried again with the next update, but not in a busy loop.
        rested = self.failure is None or self._clock.monotonic() - self._failed_at >= SHORTEST_RETRY
        return self._stopping or (rested and self._work())

    def _loop(self) -> None:
        while True:
            with self._cond:
                self._cond.wait_for(self._needs_work, RETRY_AFTER if self.failure else HEARTBEAT)
                if self._stopping:
                    self._fail(
                        Failure("the master daemon stops", answered=True), self._pending.rounds
                    )
                    return
                renew_config, self._renew_config = self._renew_config, False
                renew_all, self._renew_all = self._renew_all, False
                batch, self._pending = self._pending, Pending()
                batch.sequence = self._sequence
                taken_back = self._taken_back
            try:
                self._send(batch, renew_config=renew_config or renew_all, renew_all=renew_all)
            except Exception as err:  # noqa: BLE001 - without its thread a candidate gets nothing
                if not isinstance(err, errors.GanetiError):
                    _LOG.exception("%s was not sent the newest state", self.node.name)
                with self._cond:
                    self._renew_config = self._renew_all = True
                    rounds = [*batch.rounds, *self._pending.rounds]
                    if self._taken_back != taken_back:
                        batch.lines = []
                    self._pending = batch.put_before(self._pending)
                    self._pending.files = Contents()
                    self._fail(_failure(err), rounds)
                continue
            with self._cond:
                if self.failure:
                    _LOG.info("%s has a copy of the state again", self.node.name)
                self.failure = None
                self._catching_up = False
                self._cond.notify_all()
            for round_ in batch.rounds:
                round_.note_success(self.node.name)

    def _fail(self, why: Failure, rounds: Iterable[CopyRound]) -> None:
        """Wake all waiting threads with the failure; later the whole state is sent."""
        if self.failure is None and not self._stopping:
            _LOG.error("%s has no copy of the newest state: %s", self.node.name, why.text)
        self.failure = why
        self._catching_up = False
        self._failed_at = self._clock.monotonic()
        self._pending.rounds = []
        for round_ in rounds:
            round_.note_failure(self.node.name, why)
        self._cond.notify_all()

    def _send(self, batch: Pending, *, renew_config: bool, renew_all: bool) -> None:
        epoch = self._rpc.epoch
        if not (batch or renew_config):
            self._call(ReplicaUpdate(epoch=epoch))
            return
        if renew_config:
            self._bring_up(batch, files=renew_all)
        if not self._call(batch.update(epoch)):
            self._bring_up(batch, files=True)
            if not self._call(batch.update(epoch)):
                raise errors.RpcError(f"node {self.node.name} did not take the changes in order")

    def _call(self, update: ReplicaUpdate) -> bool:
        if self._stopping:  # it may be no candidate any more
            raise errors.RpcError(f"node {self.node.name} is sent nothing more")
        update.failover_after = self._state.failover_after()
        began = self._clock.monotonic()
        done = self._rpc.call_one(self.node, NodeCalls.replica_update, update)
        self.contact = began
        self._state.on_contact()
        return done

    def _bring_up(self, batch: Pending, *, files: bool) -> None:
        """Send the configuration, and the job files that differ.

        ``batch`` has to follow, even an empty one: it marks the copy as complete.
        """
        epoch = self._rpc.epoch
        state = self._state.snapshot(files)
        config = encode_content(state.config)
        self._call(ReplicaUpdate(epoch=epoch, base=state.serial, checkpoint=config))
        with self._cond:
            self._catching_up = True
        batch.skip_to(state.serial)
        if not files:
            return
        with self._cond:  # a job is archived here before the next snapshot is taken
            archived = [*batch.archive, *self._pending.archive]
        contents = {**state.files, **self._state.archived(archived)}
        manifest = {name: zlib.crc32(data) for name, data in contents.items()}
        differing = self._rpc.call_one(self.node, NodeCalls.replica_differing, manifest)
        for part in _parts({name: contents[name] for name in differing}):
            self._call(ReplicaUpdate(epoch=epoch, files=_texts(part)))
        known = (*contents, *batch.files.names(), *batch.archive)
        live = [int(name[4:]) for name in known if name.startswith("job-")]
        self._call(ReplicaUpdate(epoch=epoch, keep=live, drained=state.drained))


def _failure(err: Exception) -> Failure:
    # Who cannot be reached says nothing; all else is what the node, or a defect here, tells.
    return Failure(errors.text(err), answered=not isinstance(err, errors.RpcError))


def _parts(contents: Mapping[str, bytes]) -> Iterable[dict[str, bytes]]:
    part: dict[str, bytes] = {}
    size = 0
    for name, data in contents.items():
        if part and size + len(data) > PART:
            yield part
            part, size = {}, 0
        part[name] = data
        size += len(data)
    if part:
        yield part
