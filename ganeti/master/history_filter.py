"""Filters of the history: what may be requested, and which changes are of one object."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.config.differences import KINDS, Touch
from ganeti.luxi.requests import HistoryFilter
from ganeti.model.config import CONTAINERS, Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node

_FILTER_KEYS = HistoryFilter.__struct_fields__
_CONTAINERS = {kind: container for container, kind in KINDS.items()}
_ALIASES = {"nodegroup": "group"}


def format_time(seconds: float) -> str:
    """A time for people."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return f"{seconds:.3g}"


def make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


def check_filter(wanted: object) -> JsonObject:
    """The keys of a filter that are set."""
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        raise make_error("a filter of the history must be an object")
    for key in wanted:
        if key not in _FILTER_KEYS:
            raise make_error(
                f"the history has no filter '{key:.60}'{nearest(str(key), _FILTER_KEYS)};"
                f" choose from {', '.join(_FILTER_KEYS)}"
            )
    found = {key: value for key, value in wanted.items() if value is not None}
    for key in ("since", "until"):
        if key in found:
            found[key] = moment(found[key], key)
    for key in ("job", "limit"):
        value = found.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise make_error(f"{key} must be a number above 0, not {value!r:.60}")
    if not isinstance(found.get("object", ""), str):
        raise make_error("object must be a name or a uuid")
    if "kind" in found:
        found["kind"] = _kind(found["kind"])
    if "since" in found and found["since"] > found.get("until", found["since"]):
        raise make_error(f"{format_time(found['since'])} is after {format_time(found['until'])}")
    return found


def moment(value: object, what: str) -> float:
    """Seconds since the epoch; OpPrereqError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise make_error(f"{what} must be a time in seconds since 1970, not {value!r:.60}")
    try:
        return float(value)
    except OverflowError:
        raise make_error(f"{what} is not a valid time") from None


def _kind(value: object) -> str:
    kind = _ALIASES.get(value, value) if isinstance(value, str) else ""
    if kind not in _CONTAINERS:
        hint = nearest(str(value), _CONTAINERS)
        raise make_error(f"unknown kind {value!r:.60}{hint}; choose from {', '.join(_CONTAINERS)}")
    return kind


class Wanted:
    """Finds the changes of one object, newest first: what it learns of it helps further back.

    A name stands for every object that had it; from a change of name backwards also for what the
    object was called before. The disks of an instance belong to it.
    """

    def __init__(self, config: Config, text: str, kind: str | None) -> None:
        """``text`` is a name or a uuid.

        Raises:
            OpPrereqError: a short name that several objects of today have.
        """
        self._container = _CONTAINERS[kind] if kind else None
        self._text = text
        self._uuids: set[str] = set()
        #: texts of which one is in every line that is worth reading
        self._marks: list[bytes] = []
        for container, uuid, obj in self._find_known(config):
            self._learn(container, uuid, {"disks": getattr(obj, "disks", ())})
        #: whether there is or was such an object
        self.found = bool(self._uuids)
        self._short = not self.found
        quoted = jsonio.dumps_bytes(self._text)
        self._marks += [quoted, quoted[:-1] + b"."] if self._short else [quoted]

    def _may_match_container(self, container: str) -> bool:
        return self._container in (None, container)

    def _find_known(self, config: Config) -> list[tuple[str, str, object]]:
        """Objects of today; a short name of a node or an instance becomes the whole name."""
        cluster = config.cluster
        exact: list[tuple[str, str, object]] = [
            (container, uuid, obj)
            for container in CONTAINERS
            if self._may_match_container(container)
            for uuid, obj in getattr(config.data, container).items()
            if self._text in (uuid, getattr(obj, "name", None))
        ]
        if self._may_match_container("cluster") and self._text in (
            "cluster",
            cluster.cluster_name,
            cluster.uuid,
        ):
            exact.append(("cluster", cluster.uuid, cluster))
        if exact or not self._text:
            return exact
        found: list[tuple[str, str, Any]] = []
        for container in ("instances", "nodes"):
            obj = (
                self._find_by_short_name(config, container)
                if self._may_match_container(container)
                else None
            )
            if obj is not None:
                found.append((container, obj.uuid, obj))
        if found:
            self._text = found[0][2].name
        return found

    def _find_by_short_name(self, config: Config, container: str) -> Instance | Node | None:
        try:
            if container == "instances":
                return config.instance(self._text)
            return config.node(self._text)
        except errors.OpPrereqError as err:
            if err.args[1] != errors.ErrorCode.NOENT:
                raise
            return None

    def _learn(self, container: str, uuid: str, values: Mapping[str, Any]) -> None:
        found = [uuid]
        if container == "instances":
            found += values.get("disks") or ()
        new = {uuid for uuid in found if uuid not in self._uuids}
        self._uuids |= new
        self._marks += [uuid.encode() for uuid in new]

    def may_match(self, raw: bytes) -> bool:
        """Whether a line is worth reading."""
        return any(mark in raw for mark in self._marks)

    def select(self, touches: list[Touch]) -> list[Touch]:
        """The objects of a record that the filter selects."""
        for touch in touches:
            if touch.uuid in self._uuids or self._is_meant(touch):
                self.found = True
                for values in (touch.new, touch.old):
                    self._learn(touch.container, touch.uuid, values or {})
        return [touch for touch in touches if touch.uuid in self._uuids]

    def _is_meant(self, touch: Touch) -> bool:
        if not self._may_match_container(touch.container):
            return False
        names = [] if touch.container == "disks" else touch.names
        return self._text in (touch.uuid, *names) or (
            self._short
            and touch.container in ("instances", "nodes")
            and any(name.startswith(f"{self._text}.") for name in names)
        )
