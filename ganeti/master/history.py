"""Answers to questions about the past of the configuration. Reads only, contains no secrets.

QueryHistory takes a filter: an object with any of ``object`` (name or uuid, also of what is gone;
``cluster``), ``kind``, ``since`` and ``until`` (seconds since the epoch), ``job`` and ``limit``.
The answer is an object:

``changes``
    Oldest first. Each has ``serial``, ``time``, ``name``, ``job``, ``user``, ``reason``, the
    ``objects`` that it touched and were asked for (see ``config/differences.py``), and ``others``:
    how many more it touched.
``more``
    Whether older changes were left out because of the limit.
``missing``
    ``[from, to]`` serials of changes that were made while another node was the master and that
    this one does not know, if they would be among the changes shown.
``begins``
    ``{"serial", "time"}`` from which on nothing is missing.
``names``
    uuid -> name of objects that values refer to.

QueryConfigDiff takes two times and answers ``from`` and ``to`` (``{"serial", "time"}``: the state
at that time), ``objects`` and ``names``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.text import nearest
from ganeti.config import differences
from ganeti.config.differences import KINDS, Difference, Touch
from ganeti.config.history import History, Line
from ganeti.model.config import Config

#: Changes in one answer; further ones can be asked for with ``until``.
MOST = 10_000

_FILTER_KEYS = ("object", "kind", "since", "until", "job", "limit")
_CONTAINERS = {kind: container for container, kind in KINDS.items()}
_ALIASES = {"nodegroup": "group"}


def query(config: Config, history: History, wanted: Any) -> dict[str, Any]:
    """The answer of QueryHistory; blocks for as long as reading takes (a second for 500 MB).

    Raises:
        OpPrereqError: an unknown object, or a filter that makes no sense.
        ConfigurationError: the history is damaged.
    """
    return _Query(config, history, _checked(wanted)).answer()


def diff(config: Config, history: History, begin: float, end: float) -> dict[str, Any]:
    """The answer of QueryConfigDiff; blocks like :func:`query`.

    Raises:
        OpPrereqError: the times are in the wrong order, or the first one is before the history.
        ConfigurationError: the history is damaged.
    """
    if begin > end:
        raise _wrong(f"{_moment(begin)} is after {_moment(end)}: give the earlier time first")
    upto, born = config.data.serial_no, config.cluster.ctime
    since = _begin(config, history)
    if begin < since["time"]:
        raise errors.OpPrereqError(
            f"nothing is recorded of {_moment(begin)}: the history on this node begins at"
            f" {_moment(since['time'])} (change {since['serial']})",
            errors.ErrorCode.NOENT,
        )
    chosen: list[Line] = []
    first = last = Line(since["serial"], since["time"], b"")
    for line in history.newest_first(upto, born):
        if line.time <= begin or line.serial <= since["serial"]:
            first = line
            break
        if line.time <= end or chosen:
            chosen.append(line)
    last = chosen[0] if chosen else first
    objects = differences.between(line.record() for line in reversed(chosen))
    names = _Names(config)
    return {
        "from": {"serial": first.serial, "time": begin},
        "to": {"serial": last.serial, "time": end},
        "objects": [names.described(item) for item in sorted(objects, key=_order)],
        "names": names.found,
    }


def _order(item: Difference) -> tuple[int, str, str]:
    return list(KINDS.values()).index(item["kind"]), item["name"], item["uuid"]


def _begin(config: Config, history: History) -> dict[str, Any]:
    """From when on every change is known."""
    data = config.data
    line = history.beginning(data.serial_no, config.cluster.ctime)
    if line is None:
        return {"serial": data.serial_no, "time": data.mtime}
    if line.serial <= 2:  # a cluster is made with serial 1
        return {"serial": 1, "time": min(config.cluster.ctime, line.time)}
    return {"serial": line.serial, "time": line.time}


def _moment(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return f"{seconds:.30}"


def _wrong(text: str) -> errors.OpPrereqError:
    return errors.OpPrereqError(text, errors.ErrorCode.INVAL)


# the filter --------------------------------------------------------------------------------------


def _checked(wanted: Any) -> dict[str, Any]:
    """The keys of a filter that are set."""
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        raise _wrong("a filter of the history must be an object")
    for key in wanted:
        if key not in _FILTER_KEYS:
            raise _wrong(
                f"the history has no filter '{key:.60}'{nearest(str(key), _FILTER_KEYS)};"
                f" known are {', '.join(_FILTER_KEYS)}"
            )
    found = {key: value for key, value in wanted.items() if value is not None}
    for key in ("since", "until"):
        if key in found:
            found[key] = moment(found[key], key)
    for key in ("job", "limit"):
        value = found.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _wrong(f"{key} must be a number above 0, not {value!r:.60}")
    if not isinstance(found.get("object", ""), str):
        raise _wrong("object must be a name or a uuid")
    if "kind" in found:
        found["kind"] = _kind(found["kind"])
    if "since" in found and found["since"] > found.get("until", found["since"]):
        raise _wrong(f"{_moment(found['since'])} is after {_moment(found['until'])}")
    return found


def moment(value: Any, what: str) -> float:
    """Seconds since the epoch; OpPrereqError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(f"{what} must be a time in seconds since 1970, not {value!r:.60}")
    try:
        return float(value)
    except OverflowError:
        raise _wrong(f"{what} is a number that is no time") from None


def _kind(value: Any) -> str:
    kind = _ALIASES.get(value, value) if isinstance(value, str) else ""
    if kind not in _CONTAINERS:
        hint = nearest(str(value), _CONTAINERS)
        raise _wrong(f"there is no kind {value!r:.60}{hint}; known are {', '.join(_CONTAINERS)}")
    return kind


# which objects -----------------------------------------------------------------------------------


class _Wanted:
    """Finds the changes of one object, newest first: what it learns of it helps further back.

    A name stands for every object that had it; from a change of name backwards also for what the
    object was called before. The disks of an instance belong to it.
    """

    def __init__(self, config: Config, text: str, kind: str | None) -> None:
        self._container = _CONTAINERS[kind] if kind else None
        self._text, self._short = text, False
        self._cluster = text in ("cluster", config.cluster.cluster_name, config.cluster.uuid)
        self._uuids: set[str] = set()
        found = self._known(config)
        #: whether there is or was such an object
        self.found = self._cluster or bool(found)
        for container, uuid in found:
            self._learn(container, uuid, getattr(config.data, container)[uuid])
        self._short = not self.found

    def _known(self, config: Config) -> list[tuple[str, str]]:
        """Objects of today; a short name of a node or an instance becomes the whole name."""
        exact = [
            (container, uuid)
            for container in ("nodes", "nodegroups", "instances", "networks", "disks", "filters")
            if self._container in (None, container)
            for uuid, obj in getattr(config.data, container).items()
            if self._text in (uuid, getattr(obj, "name", None))
        ]
        if exact or self._cluster or not self._text:
            return exact
        found: list[tuple[str, str]] = []
        for container, find in (("instances", config.instance), ("nodes", config.node)):
            if self._container not in (None, container):
                continue
            try:
                obj = find(self._text)
            except errors.OpPrereqError as err:
                if err.args[1:] != (str(errors.ErrorCode.NOENT),):
                    raise
                continue
            found.append((container, obj.uuid))
            self._text = obj.name
        return found

    def _learn(self, container: str, uuid: str, obj: Any) -> None:
        self._uuids.add(uuid)
        if container == "instances":
            disks = obj.get("disks", ()) if isinstance(obj, dict) else obj.disks
            self._uuids.update(disks or ())

    def may_match(self, raw: bytes) -> bool:
        """Whether a line is worth reading."""
        if self._cluster and b'"cluster":{"' in raw:
            return True
        quoted = jsonio.dumps_bytes(self._text)
        return (
            quoted in raw
            or (self._short and quoted[:-1] + b"." in raw)
            or any(uuid.encode() in raw for uuid in self._uuids)
        )

    def select(self, touches: list[Touch]) -> list[Touch]:
        """Those of the objects that are meant."""
        for touch in touches:
            if touch.uuid in self._uuids or self._is_meant(touch):
                self.found = True
                for values in (touch.new, touch.old):
                    self._learn(touch.container, touch.uuid, values or {})
        return [
            touch
            for touch in touches
            if touch.uuid in self._uuids or (self._cluster and touch.container == "cluster")
        ]

    def _is_meant(self, touch: Touch) -> bool:
        if self._container not in (None, touch.container) or touch.container == "cluster":
            return False
        names = [] if touch.container == "disks" else touch.names
        return self._text in (touch.uuid, *names) or (
            self._short
            and touch.container in ("instances", "nodes")
            and any(name.startswith(f"{self._text}.") for name in names)
        )


class _Names:
    """Puts names beside the uuids that values refer to, and owners to disks."""

    def __init__(self, config: Config) -> None:
        self.found: dict[str, str] = {}
        self._config = config
        self._owners: dict[str, str] | None = None
        #: names of objects that are gone, from their records
        self.gone: dict[str, str] = {}

    def described(self, item: Difference) -> Difference:
        """The difference, with the owner of a disk."""
        self._look(item.get("values"))
        for key in item.get("keys", ()):
            self._look(key["key"].split("/"))
            self._look((key["old"], key["new"]))
        if item["kind"] == "disk":
            owner = self._owner(item["uuid"])
            return {**item, "owner": owner}
        return item

    def _owner(self, disk: str) -> str | None:
        if self._owners is None:
            self._owners = {
                uuid: item.name for item in self._config.instances.values() for uuid in item.disks
            }
        return self._owners.get(disk) or self.gone.get(disk)

    def note(self, touches: Iterable[Touch]) -> None:
        """Remember what objects of a record are called."""
        for touch in touches:
            name = next(iter(touch.names), "")
            if touch.container == "instances":
                for values in (touch.new, touch.old):
                    for uuid in (values or {}).get("disks") or ():
                        self.gone.setdefault(uuid, name)
            elif touch.container != "disks" and name:
                self.gone.setdefault(touch.uuid, name)

    def _look(self, value: Any) -> None:
        if isinstance(value, str):
            data = self._config.data
            for container in (data.nodes, data.nodegroups, data.networks):
                if value in container:
                    self.found[value] = container[value].name
                    return
            if value in self.gone:
                self.found[value] = self.gone[value]
        elif isinstance(value, dict):
            for key, item in value.items():
                self._look(key)
                self._look(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self._look(item)


# the answer --------------------------------------------------------------------------------------


class _Query:
    def __init__(self, config: Config, history: History, wanted: dict[str, Any]) -> None:
        self._config, self._history, self._filter = config, history, wanted
        self._kind: str | None = wanted.get("kind")
        text = wanted.get("object")
        self._wanted = None if text is None else _Wanted(config, text, self._kind)
        self._names = _Names(config)
        self._missing: list[list[int]] = []

    def answer(self) -> dict[str, Any]:
        limit = min(self._filter.get("limit", MOST), MOST)
        picked: list[tuple[dict[str, Any], list[Touch]]] = []
        more = False
        for record, touches in self._matching():
            if len(picked) == limit:
                more = True
                break
            others = sum(1 for _ in differences.touched(record)) - len(touches)
            picked.append(({**_head(record), "others": others}, touches))
        begin = _begin(self._config, self._history)
        if self._wanted is not None and not self._wanted.found:
            raise self._unknown(begin)
        return {
            "changes": [self._change(head, touches) for head, touches in reversed(picked)],
            "more": more,
            "missing": self._missing[::-1],
            "begins": begin,
            "names": self._names.found,
        }

    def _change(self, head: dict[str, Any], touches: list[Touch]) -> dict[str, Any]:
        objects = [self._names.described(differences.describe(touch)) for touch in touches]
        return {**head, "objects": sorted(objects, key=_order)}

    def _matching(self) -> Iterator[tuple[dict[str, Any], list[Touch]]]:
        """Records with the touches that were asked for, newest first."""
        for line in self._lines():
            record = line.record()
            if "job" in self._filter and record.get("job") != self._filter["job"]:
                continue
            touches = list(differences.touched(record))
            self._names.note(touches)
            if self._wanted is not None:
                touches = self._wanted.select(touches)
            elif self._kind is not None:
                touches = [t for t in touches if KINDS.get(t.container) == self._kind]
            if touches and line.time <= self._filter.get("until", line.time):
                yield record, touches

    def _lines(self) -> Iterator[Line]:
        """Lines worth reading. What is too new is read for what it tells of the object."""
        since, until = self._filter.get("since"), self._filter.get("until")
        job = b'"job":%d,' % self._filter["job"] if "job" in self._filter else b""
        expected = self._config.data.serial_no
        for line in self._history.newest_first(expected, self._config.cluster.ctime):
            if since is not None and line.time < since:
                return
            if line.serial != expected:
                self._missing.append([line.serial + 1, expected])
            expected = line.serial - 1
            if job and job not in line.raw:
                continue
            if self._wanted is None:
                if until is None or line.time <= until:
                    yield line
            elif self._wanted.may_match(line.raw):
                yield line

    def _unknown(self, begin: dict[str, Any]) -> errors.OpPrereqError:
        since = max(self._filter.get("since", 0.0), begin["time"])
        what = self._kind or "object"
        return errors.OpPrereqError(
            f"{what} '{self._filter['object']:.200}' is not known, and no change of it is recorded"
            f" since {_moment(since)}",
            errors.ErrorCode.NOENT,
        )


def _head(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "serial": record["serial"],
        "time": record["time"],
        "name": record["name"],
        "job": record.get("job"),
        "user": record.get("user", ""),
        "reason": record.get("reason", ""),
    }
