"""Problems that last: when they and their ends become events. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.notify.notices import EVENTS


class Condition(msgspec.Struct, frozen=True):
    """Something that is wrong now; ``part`` tells two conditions of one object apart."""

    event: str
    #: kind and name of what it is about
    kind: str
    object: str
    text: str
    part: str = ""
    #: empty: that of the table of events
    severity: str = ""

    @property
    def key(self) -> str:
        return "/".join(filter(None, (self.event, self.object, self.part)))


class Watch:
    """Compares what is wrong from round to round."""

    def __init__(self, known: Mapping[str, Condition] | None = None) -> None:
        #: what was told, by key
        self.known: dict[str, Condition] = dict(known or {})
        #: since when something is there that was not told yet
        self._since: dict[str, float] = {}

    def follow(self, found: Iterable[Condition], now: float) -> list[JsonObject]:
        """Return the data of the events of a round; ``over`` says that a condition has ended.

        ``now`` is monotonic.
        """
        there = {condition.key: condition for condition in found}
        notices = [describe(old, over=True) for key, old in self.known.items() if key not in there]
        self.known = {key: old for key, old in self.known.items() if key in there}
        self._since = {key: self._since.get(key, now) for key in there if key not in self.known}
        for key, since in list(self._since.items()):
            condition = there[key]
            if now - since >= EVENTS[condition.event].hold:
                self.known[key] = condition
                del self._since[key]
                notices.append(describe(condition, over=False))
        return notices


def describe(condition: Condition, *, over: bool) -> JsonObject:
    """Data of the event that tells the begin or the end of a condition."""
    severity = condition.severity or EVENTS[condition.event].severity
    return {
        "event": condition.event,
        "key": condition.key,
        "kind": condition.kind,
        "object": condition.object,
        "over": over,
        "severity": "ok" if over else severity,
        "text": f"Over: {condition.text}" if over else condition.text,
    }
