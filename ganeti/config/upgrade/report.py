"""A report of the changes in a configuration, for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

#: Longest text of a value that is shown.
_SHOWN = 60


class Kind(StrEnum):
    """The kind of change of a key."""

    ADDED = "added"
    CHANGED = "changed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Change:
    """One change; ``path`` has names where there are any: ``instances/web1/nics/0/vlan``."""

    kind: Kind
    path: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.path}{': ' if self.text else ''}{self.text}"


@dataclass
class Report:
    """All changes in their order, and what somebody should read before going on."""

    changes: list[Change] = field(default_factory=list)
    #: paths of keys that no version knows
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def added(self, path: str, value: object) -> None:
        self.changes.append(Change(Kind.ADDED, path, format_value(value)))

    def note_change(self, path: str, text: str) -> None:
        self.changes.append(Change(Kind.CHANGED, path, text))

    def note_drop(self, path: str, reason: str) -> None:
        self.changes.append(Change(Kind.DROPPED, path, reason))

    def note_unknown(self, path: str) -> None:
        """A key that no version knows; it is left out."""
        self.unknown.append(path)
        self.note_drop(path, "no version knows this key")

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def format_value(value: object) -> str:
    """A short text of a JSON value that is not a secret."""
    if isinstance(value, dict) and len(str(value)) > _SHOWN:
        return f"{len(value)} entries"
    text = str(value) if isinstance(value, int | float) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
