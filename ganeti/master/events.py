"""Events of the cluster, numbered, which clients can follow.

The job queue and the configuration report their changes; nothing is polled.
Only the latest events are kept, in memory: who was away for too long, or finds another run of the
master, is told that events are missing and has to read the current state once.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.base.ring import Ring
from ganeti.config.changes import STAMPS
from ganeti.jobs.queue import JobQueue
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.job import JobRecord
from ganeti.query.kinds.job import op_summary

#: Events that are kept, and their bytes; a busy cluster makes some twenty a second.
KEPT = 10_000
KEPT_BYTES = 16 * 1024 * 1024
#: Opcodes from which on the events of a job tell of the one that it is at only.
LONG_JOB = 100
#: Characters of a log message in an event; the whole is in the job.
LONGEST_MESSAGE = 4096
#: Most events of one answer.
BATCH = 1000
#: Key of the waits for events (see :class:`~ganeti.master.waiting.Waiting`).
KEY = "events"

#: Kind of event by container of the configuration.
_KINDS = {
    "instances": "instance",
    "nodes": "node",
    "nodegroups": "group",
    "networks": "network",
    "filters": "filter",
    "disks": "disk",
    "images": "image",
}
KINDS = ("job", "cluster", *_KINDS.values())
#: Values that are shown with an event, as they are what most clients wait for.
_SHOWN = {
    "instance": ("admin_state", "primary_node"),
    "node": ("offline", "drained", "master_candidate", "group"),
}
_NAMES = ("instance_name", "node_name", "group_name", "network_name", "image_name", "name")


@dataclass(frozen=True)
class Event:
    """One event; ``objects`` are the words by which filters find it, ``text`` is its JSON."""

    number: int
    kind: str
    objects: tuple[str, ...]
    text: bytes


@dataclass
class _Seen:
    """The facts of a job in its last event."""

    status: str = ""
    serial: int = 0
    objects: tuple[str, ...] = ()
    #: None for a long job
    summary: list[str] | None = None


@dataclass(frozen=True)
class Filter:
    """Which events a client wants; nothing given wants all."""

    kinds: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()

    @classmethod
    def from_wire(cls, raw: object) -> Filter:
        """Of ``{"kind": [..], "object": [..]}`` or null.

        Raises:
            RequestError: something else.
        """
        if raw is None:
            return cls()
        try:
            found = typed.convert(raw, dict[str, list[str] | None])
        except msgspec.ValidationError as err:
            raise errors.RequestError(f"the filter of events has lists of names: {err}") from err
        return cls(frozenset(found.get("kind") or ()), frozenset(found.get("object") or ()))

    def passes(self, event: Event) -> bool:
        return (not self.kinds or event.kind in self.kinds) and (
            not self.objects or not self.objects.isdisjoint(event.objects)
        )


class Events:
    """The latest events of this run of the master. Thread-safe; listeners never block long."""

    def __init__(self, queue: JobQueue, clock: Clock = SYSTEM, kept: int = KEPT) -> None:
        self.run = secrets.token_hex(4)
        self._queue = queue
        self._clock = clock
        self._ring: Ring[Event] = Ring(kept, KEPT_BYTES)
        self._last = 0
        self._jobs: dict[int, _Seen] = {}
        # Innermost of all locks: nothing else is requested while it is held.
        self._mutex = threading.Lock()
        #: is told each event; must not block nor ask for anything here
        self.on_event: Callable[[JsonObject], None] = lambda _event: None

    # being told

    def job_changed(self, job_id: int) -> None:
        """A job has changed (called by the queue)."""
        try:
            # Inside the view, so that events keep the order of the changes.
            self._queue.view(self._note_job, job_id)
        except errors.JobLost:
            with self._mutex:
                seen = self._jobs.pop(job_id, None)
                if seen is not None:
                    self._add("job", "archived", seen.objects, {"status": seen.status})

    def _note_job(self, record: JobRecord) -> None:
        with self._mutex:
            seen = self._jobs.get(record.id)
            if seen is None:
                seen = self._jobs[record.id] = _Seen()
                if len(record.ops) < LONG_JOB:
                    inputs = [op.input for op in record.ops]
                    seen.objects = _objects_of(record.id, inputs)
                    seen.summary = [*map(op_summary, inputs)]
            if seen.summary is None:
                seen.objects = _objects_of(record.id, _find_current_input(record))
            if record.log_serial() > seen.serial:
                self._add_messages(record, seen)
            if record.status != seen.status:
                seen.status = record.status.value
                self._add("job", "status", seen.objects, _describe_event(record, seen))

    def _add_messages(self, record: JobRecord, seen: _Seen) -> None:
        for index, (serial, time, kind, message) in record.log_after(seen.serial):
            entry = {"op": index, "serial": serial, "time": time, "type": kind}
            self._add("job", "message", seen.objects, {**entry, "message": _shorten(message)})
        seen.serial = record.log_serial()

    def config_changed(self, before: Config, after: Config) -> None:
        """The configuration has changed (called by its store)."""
        with self._mutex:
            for container, kind in _KINDS.items():
                old, new = getattr(before.data, container), getattr(after.data, container)
                if old is not new:
                    self._compare(kind, old, new)
            if before.cluster is not after.cluster:
                keys = _differences(before.cluster, after.cluster)
                data = {"keys": keys, "serial_no": after.cluster.serial_no}
                self._add("cluster", "changed", (after.cluster.cluster_name,), data)

    def guest_ended(self, instance: Instance, node: str, status: str) -> None:
        """The guest of an instance ended by itself; ``status`` is what it was then."""
        with self._mutex:
            self._add("instance", "ended", _words(instance), {"node": node, "status": status})

    def console_used(self, instance: Instance, data: Mapping[str, str]) -> None:
        """Somebody opened or closed a console of an instance."""
        with self._mutex:
            self._add("instance", "console", _words(instance), dict(data))

    def condition_changed(self, data: Mapping[str, Any]) -> None:
        """Something that is wrong began or ended; ``data`` has its event, kind and object."""
        with self._mutex:
            self._add(data["kind"], "condition", (data["object"],), dict(data))

    def _compare(self, kind: str, old: Mapping[str, object], new: Mapping[str, object]) -> None:
        for uuid, obj in new.items():
            former = old.get(uuid)
            if former is obj:
                continue
            data = {name: _plain(getattr(obj, name)) for name in _SHOWN.get(kind, ())}
            if former is not None:
                data["keys"] = _differences(former, obj)
            self._add(kind, "added" if former is None else "changed", _words(obj), data)
        for uuid in old.keys() - new.keys():
            self._add(kind, "removed", _words(old[uuid]), {})

    def _add(self, kind: str, change: str, objects: tuple[str, ...], data: object) -> None:
        self._last += 1
        event = {
            "id": f"{self.run}-{self._last}",
            "time": self._clock.now(),
            "kind": kind,
            "change": change,
            "object": objects[0],
            "objects": list(objects),
            "data": data,
        }
        text = jsonio.answer_bytes(event)
        self._ring.append(Event(self._last, kind, objects, text), len(text))
        self.on_event(event)

    # telling

    def read_after(self, position: object, wanted: Filter) -> JsonObject:
        """Events after a position (``<run>-<number>``); with null none, and the current position.

        ``{"events": [..], "last": position, "lost": whether events are missing before these}``;
        the events are JSON texts (``msgspec.Raw``).

        Raises:
            RequestError: the position is none.
        """
        run, number = _position(position) if position is not None else (self.run, None)
        with self._mutex:
            last, ring = self._last, self._ring
            lost = run != self.run or (number is not None and number > last)
            if number is None:
                number = last
            elif lost:
                number = 0
            found: list[Event] = []
            if number < last and ring:
                lost = lost or ring[0].number > number + 1
                start = max(0, len(ring) - (last - number))
                found = [ring[i] for i in range(start, min(len(ring), start + BATCH))]
        if found:
            last = found[-1].number
        shown = [msgspec.Raw(event.text) for event in found if wanted.passes(event)]
        return {"events": shown, "last": f"{self.run}-{last}", "lost": lost}


def _position(text: object) -> tuple[str, int]:
    run, _, number = text.rpartition("-") if isinstance(text, str) else ("", "", "")
    if not (run and number.isascii() and number.isdigit() and len(number) < 16):
        raise errors.RequestError(
            f"'{text!s:.40}' is not a position in the events (<run>-<number>)"
        )
    return run, int(number)


def _objects_of(job_id: int, inputs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The job and the objects that its opcodes name."""
    names = [op[key] for op in inputs for key in _NAMES if isinstance(op.get(key), str)]
    return (str(job_id), *dict.fromkeys(name for name in names if name))


def _find_current_input(record: JobRecord) -> list[JsonObject]:
    """Input of the opcode that a job is at, of the last one when it has ended."""
    index = record.current()
    return [op.input for op in record.ops[-1 if index is None else index :][:1]]


def _describe_event(record: JobRecord, seen: _Seen) -> JsonObject:
    """The data of the event of a status."""
    if seen.summary is not None:
        opstatus = [op.status.value for op in record.ops]
        return {"status": seen.status, "opstatus": opstatus, "summary": seen.summary}
    summary = [op_summary(raw) for raw in _find_current_input(record)]
    count, index = len(record.ops), record.current()
    at = count - 1 if index is None else index
    return {"status": seen.status, "opcodes": count, "op": at, "summary": summary}


def _shorten(message: object) -> Any:
    """A message, or the begin of its text when it is long."""
    if not isinstance(message, str):
        text = jsonio.answer_bytes(message)
        if len(text) <= LONGEST_MESSAGE:
            return message
        message = text.decode("utf-8")
    return message[:LONGEST_MESSAGE]


def _words(obj: Any) -> tuple[str, ...]:
    """Name and uuid of an object; of what has no name the uuid."""
    name = getattr(obj, "name", None)
    return (name, obj.uuid) if name else (obj.uuid,)


def _differences(old: object, new: Any) -> list[str]:
    """Names of the attributes that differ, without those that always do."""
    names = new.__struct_fields__
    return [n for n in names if n not in STAMPS and getattr(old, n) != getattr(new, n)]


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str) else value
