"""The changes in journal records, by object and key, without secrets. Pure.

A difference is ``{"kind", "uuid", "name", "change"}`` with ``change`` added, removed or changed.
A changed object has ``keys``: a list of ``{"key", "old", "new"}``, where the key of a nested value
is its path (``beparams/maxmem``) and null stands for no value. The others have ``values``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ganeti.base.journal import Record
from ganeti.base.json_types import JsonObject
from ganeti.config.redaction import redact

#: Container of the configuration (in records also ``cluster``) -> what its members are called.
KINDS = {
    "cluster": "cluster",
    "nodes": "node",
    "nodegroups": "group",
    "instances": "instance",
    "networks": "network",
    "disks": "disk",
    "filters": "filter",
    "images": "image",
}

_STAMPS = frozenset(("serial_no", "mtime", "ctime"))

Path = tuple[str, ...]
Difference = JsonObject


@dataclass(frozen=True, slots=True)
class Touch:
    """One object in one record; contains secrets."""

    container: str
    uuid: str
    #: former values: of the keys that differ, or all of them when it was deleted; None: it is new
    old: JsonObject | None
    #: all values after the change; None: it was deleted
    new: JsonObject | None

    @property
    def names(self) -> list[str]:
        """The name of the object after the change, and before it if that was different."""
        found = [name_of(self.container, values) for values in (self.new, self.old) if values]
        return list(dict.fromkeys(name for name in found if name))


def name_of(container: str, values: JsonObject) -> str:
    """Name of an object; disks often have none but their place in the instance."""
    if container == "cluster":
        return str(values.get("cluster_name") or "")
    if container == "disks":
        return str(values.get("name") or values.get("iv_name") or "")
    return str(values.get("name") or "")


def find_touched(record: Record) -> Iterator[Touch]:
    """The objects that a record changed."""
    old: dict[str, dict[str, JsonObject]] = record.get("old", {})
    if "cluster" in record:
        new: JsonObject = record["cluster"]
        yield Touch("cluster", str(new.get("uuid", "")), old.get("cluster", {}), new)
    for container, objects in record.get("put", {}).items():
        for uuid, values in objects.items():
            yield Touch(container, uuid, old.get(container, {}).get(uuid), values)
    for container, uuids in record.get("delete", {}).items():
        for uuid in uuids:
            yield Touch(container, uuid, old.get(container, {}).get(uuid, {}), None)


def describe(touch: Touch) -> Difference:
    """One object of one record as a difference."""
    head = _head(touch.container, touch.uuid, touch.names)
    if touch.new is None:
        return {**head, "change": "removed", "values": redact(touch.old or {})}
    if touch.old is None:
        return {**head, "change": "added", "values": redact(touch.new)}
    return {**head, "change": "changed", "keys": _keys(touch.old, touch.new, touch.old)}


def _head(container: str, uuid: str, names: list[str]) -> Difference:
    kind = KINDS.get(container, container)
    return {"kind": kind, "uuid": uuid, "name": names[0] if names else ""}


def _keys(old: JsonObject, new: JsonObject, names: Iterable[str]) -> list[JsonObject]:
    return [
        {"key": "/".join(path), "old": redact(before, path), "new": redact(after, path)}
        for name in names
        if name not in _STAMPS
        for path, before, after in leaves((name,), old.get(name), new.get(name))
    ]


def leaves(
    path: Path, old: object, new: object, *, exact: bool = False
) -> Iterator[tuple[Path, object, object]]:
    """Values that differ in two trees.

    Nothing, and an empty or false value, are the same unless they must be ``exact``.
    """
    if old == new or (not exact and not old and not new and (old is None or new is None)):
        return
    before, after = _branches(old, new), _branches(new, old)
    if before is None or after is None:
        yield path, old, new
        return
    for key in {**before, **after}:
        yield from leaves((*path, str(key)), before.get(key), after.get(key), exact=exact)


def _branches(value: object, other: object) -> JsonObject | None:
    """The parts of a value by key or index, if they are to be compared one by one."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple) and _is_structured(value, other):
        return {str(index): item for index, item in enumerate(value)}
    if value is None and isinstance(other, dict):
        return {}
    if value is None and isinstance(other, list | tuple) and _is_structured(other, None):
        return {}
    return None


def _is_structured(value: Any, other: Any) -> bool:
    """Whether two lists are lists of more than plain values."""
    both = [*value, *(other if isinstance(other, list | tuple) else ())]
    return any(isinstance(item, dict | list | tuple) for item in both)


# several records ---------------------------------------------------------------------------------


@dataclass
class _Story:
    """One object through several records, told from the last one backwards."""

    container: str
    uuid: str
    #: values at the end; None: not there
    end: JsonObject | None
    #: values at the beginning, as far as they are known to have differed; None: not there
    begin: JsonObject | None = None
    #: whether ``begin`` is the whole object
    whole: bool = False
    names: dict[str, None] = field(default_factory=dict)
    serials: list[int] = field(default_factory=list)
    jobs: dict[int, None] = field(default_factory=dict)

    def add(self, touch: Touch, record: Record) -> None:
        if touch.old is None:
            self.begin, self.whole = None, False
        elif touch.new is None:
            self.begin, self.whole = touch.old, True
        else:
            self.begin = {**(self.begin or {}), **touch.old}
        self.names.update(dict.fromkeys(touch.names))
        self.serials.append(record["serial"])
        if record.get("job"):
            self.jobs[record["job"]] = None

    def difference(self) -> Difference | None:
        head = {
            **_head(self.container, self.uuid, list(self.names)),
            "serials": self.serials[::-1],
            "jobs": list(self.jobs)[::-1],
        }
        if self.begin is None:
            if self.end is None:
                return None
            return {**head, "change": "added", "values": redact(self.end)}
        if self.end is None:
            return {**head, "change": "removed", "values": redact(self.begin)}
        names = {**self.begin, **self.end} if self.whole else self.begin
        keys = _keys(self.begin, self.end, names)
        return {**head, "change": "changed", "keys": keys} if keys else None


def merge_records(records: Iterable[Record]) -> list[Difference]:
    """Differences that several records, the newest first, make together, with serials and jobs.

    Objects that are as they were, and those that came and went, are left out.
    """
    stories: dict[tuple[str, str], _Story] = {}
    for record in records:
        for touch in find_touched(record):
            key = (touch.container, touch.uuid)
            if key not in stories:
                stories[key] = _Story(touch.container, touch.uuid, touch.new)
            stories[key].add(touch, record)
    found = (story.difference() for story in stories.values())
    return [difference for difference in found if difference is not None]


def order(item: Difference) -> tuple[int, str, str]:
    """Sort key: by kind, then by name."""
    kinds = [*KINDS.values()]
    number = kinds.index(item["kind"]) if item["kind"] in kinds else len(kinds)
    return number, item["name"], item["uuid"]
