"""Answers QueryHistory and QueryConfigDiff: what changed in the configuration, when and why.

Answers contain no secrets, and nothing is changed here.

QueryHistory takes a filter, an object with any of these keys: ``object`` (a name or uuid, which may
be that of a removed object, or ``cluster``), ``kind``, ``since`` and ``until`` (seconds since
1970), ``job``, ``limit``. The answer is an object:

``changes``
    The changes, oldest first. Each has ``serial``, ``time``, ``name``, ``job``, ``user`` and
    ``reason``. ``objects`` are those objects that it changed and the filter selects (see
    ``config/differences.py``); ``others`` is the number of objects that it changed besides.
``more``
    Whether older changes match too, but are beyond the limit.
``missing``
    ``[first, last]`` serials of changes between the returned ones that this node does not have:
    another node was the master when they were made.
``begins``
    ``{"serial", "time"}`` of the change from which on this node has every change.
``names``
    The names of objects whose uuids are in the values: ``{uuid: name}``.

QueryConfigDiff takes two times. Its answer has ``from`` and ``to`` (``{"serial", "time"}`` of the
states that it compares), ``objects`` and ``names``. A disk has an ``owner``: the name of its
instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ganeti import errors
from ganeti.base.journal import Record
from ganeti.base.json_types import JsonObject
from ganeti.config import differences
from ganeti.config.differences import KINDS, Difference, Touch
from ganeti.config.history import History, Line
from ganeti.master.history_filter import Wanted, check_filter, format_time, make_error, moment
from ganeti.model.config import Config

#: Most changes in one answer; a client gets older ones with ``until``.
MOST = 10_000


def query(config: Config, history: History, wanted: object) -> JsonObject:
    """The answer of QueryHistory; blocks while it reads (some seconds for a full history).

    Raises:
        OpPrereqError: an unknown object, or a filter that makes no sense.
        ConfigurationError: the history is damaged.
    """
    return _Query(config, history, check_filter(wanted)).answer()


def diff(config: Config, history: History, t1: object, t2: object) -> JsonObject:
    """The answer of QueryConfigDiff; blocks like :func:`query`.

    Raises:
        OpPrereqError: the times are in the wrong order, or the first one is before the history.
        ConfigurationError: the history is damaged.
    """
    begin, end = moment(t1, "t1"), moment(t2, "t2")
    if begin > end:
        raise make_error(
            f"{format_time(begin)} is after {format_time(end)}: name the earlier time first"
        )
    known = _begin(config, history)
    if begin < known["time"]:
        raise errors.make_unknown_error(
            f"nothing is recorded of {format_time(begin)}: the history on this node begins at"
            f" {format_time(known['time'])} (change {known['serial']})",
        )
    names, span = _Names(config), _Span(known["serial"])
    objects = differences.merge_records(names.noted(span.records(config, history, begin, end)))
    return {
        "from": {"serial": span.first, "time": begin},
        "to": {"serial": span.last, "time": end},
        "objects": [names.add_owner(item) for item in sorted(objects, key=differences.order)],
        "names": names.found,
    }


class _Span:
    """The changes between two times, and the serials of the states at either end."""

    def __init__(self, known: int) -> None:
        self._known = known
        self.first = self.last = known

    def records(
        self, config: Config, history: History, begin: float, end: float
    ) -> Iterator[Record]:
        """Newest first; nothing from before the known history."""
        inside = False
        for line in history.read_newest_first(config.data.serial_no, config.cluster.ctime):
            if line.time > end and not inside:
                continue
            if not inside:
                self.last, inside = line.serial, True
            if line.time <= begin or line.serial <= self._known:
                self.first = line.serial
                return
            yield line.record()


def _begin(config: Config, history: History) -> JsonObject:
    """Serial and time of the change from which on this node has every change."""
    data = config.data
    line = history.beginning(data.serial_no, config.cluster.ctime)
    if line is None:
        return {"serial": data.serial_no, "time": data.mtime}
    if line.serial <= 2:  # a cluster is made with serial 1
        return {"serial": 1, "time": min(config.cluster.ctime, line.time)}
    return {"serial": line.serial, "time": line.time}


class _Names:
    """Finds the names of objects whose uuids are in values, and the instances of disks."""

    def __init__(self, config: Config) -> None:
        self.found: dict[str, str] = {}
        self._config = config
        self._owners: dict[str, str] | None = None
        #: names of removed objects, from the records of their changes
        self._gone: dict[str, str] = {}

    def add_owner(self, item: Difference) -> Difference:
        """The difference, with the owner of a disk."""
        self._resolve(item.get("values"))
        for key in item.get("keys", ()):
            self._resolve(key["key"].split("/"))
            self._resolve((key["old"], key["new"]))
        if item["kind"] == "disk":
            return {**item, "owner": self._owner(item["uuid"])}
        return item

    def _owner(self, disk: str) -> str | None:
        if self._owners is None:
            self._owners = {
                uuid: item.name for item in self._config.instances.values() for uuid in item.disks
            }
        return self._owners.get(disk) or self._gone.get(disk)

    def noted(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records; the names in them are remembered."""
        for record in records:
            self.note(differences.find_touched(record))
            yield record

    def note(self, touches: Iterable[Touch]) -> None:
        """Remember the names of the objects in a record."""
        for touch in touches:
            name = next(iter(touch.names), "")
            if touch.container == "instances":
                for values in (touch.new, touch.old):
                    for uuid in (values or {}).get("disks") or ():
                        self._gone.setdefault(uuid, name)
            elif touch.container != "disks" and name:
                self._gone.setdefault(touch.uuid, name)

    def _resolve(self, value: object) -> None:
        if isinstance(value, str):
            data = self._config.data
            containers: tuple[dict[Any, Any], ...] = (data.nodes, data.nodegroups, data.networks)
            for container in containers:
                if value in container:
                    self.found[value] = container[value].name
                    return
            if value in self._gone:
                self.found[value] = self._gone[value]
        elif isinstance(value, dict):
            for key, item in value.items():
                self._resolve(key)
                self._resolve(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self._resolve(item)


class _Query:
    def __init__(self, config: Config, history: History, wanted: JsonObject) -> None:
        self._config, self._history, self._filter = config, history, wanted
        self._kind: str | None = wanted.get("kind")
        text = wanted.get("object")
        self._wanted = None if text is None else Wanted(config, text, self._kind)
        self._names = _Names(config)
        self._missing: list[list[int]] = []

    def answer(self) -> JsonObject:
        limit = min(self._filter.get("limit", MOST), MOST)
        picked: list[JsonObject] = []
        more = False
        for change in self._matching():
            if len(picked) == limit:
                more = True
                break
            picked.append(change)
        begin = _begin(self._config, self._history)
        if self._wanted is not None and not self._wanted.found:
            raise self._make_unknown_error(begin)
        return {
            "changes": picked[::-1],
            "more": more,
            "missing": self._missing[::-1],
            "begins": begin,
            "names": self._names.found,
        }

    def _matching(self) -> Iterator[JsonObject]:
        """Changes that were requested, newest first."""
        until, job = self._filter.get("until"), self._filter.get("job")
        for line in self._lines():
            record = line.record()
            every = list(differences.find_touched(record))
            self._names.note(every)
            touches = self._select(every)
            if not touches or (until is not None and line.time > until):
                continue
            if job is None or record.get("job") == job:
                yield self._change(record, touches, others=len(every) - len(touches))

    def _select(self, touches: list[Touch]) -> list[Touch]:
        if self._wanted is not None:
            return self._wanted.select(touches)
        if self._kind is None:
            return touches
        return [touch for touch in touches if KINDS.get(touch.container) == self._kind]

    def _lines(self) -> Iterator[Line]:
        """Lines that may match.

        For one object these include newer ones than requested: only they have its name if it was
        removed or renamed since.
        """
        since, until = self._filter.get("since"), self._filter.get("until")
        job = b'"job":%d,' % self._filter["job"] if "job" in self._filter else b""
        expected = self._config.data.serial_no
        for line in self._history.read_newest_first(expected, self._config.cluster.ctime):
            if line.serial != expected:
                self._missing.append([line.serial + 1, expected])
            if since is not None and line.time < since:
                return
            expected = line.serial - 1
            if self._wanted is not None:
                if self._wanted.may_match(line.raw):
                    yield line
            elif job in line.raw and (until is None or line.time <= until):
                yield line

    def _change(self, record: Record, touches: list[Touch], *, others: int) -> JsonObject:
        objects = [self._names.add_owner(differences.describe(touch)) for touch in touches]
        return {
            "serial": record["serial"],
            "time": record["time"],
            "name": record["name"],
            "job": record.get("job"),
            "user": record.get("user", ""),
            "reason": record.get("reason", ""),
            "objects": sorted(objects, key=differences.order),
            "others": others,
        }

    def _make_unknown_error(self, begin: JsonObject) -> errors.OpPrereqError:
        since = max(self._filter.get("since", 0.0), begin["time"])
        return errors.make_unknown_error(
            f"{self._kind or 'object'} '{self._filter['object']:.200}' is not known, and no change"
            f" of it is recorded since {format_time(since)}",
        )
