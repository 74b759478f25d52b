"""Values that must not be seen: private and secret parameters.

Both behave alike in memory: ``repr``, ``str`` and formatting give ``<redacted>``, and no JSON
writer accepts them, so that a value gets out only where :meth:`Hidden.reveal` is called. From there
it is plain, also in the arguments of a node call, which are never logged.
They differ in where the plain value may be written: a private one goes to job files and to the
configuration, a secret one only over the wire at submission and to the script that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ganeti.base.json_types import JsonObject

#: Text in place of a value.
REDACTED = "<redacted>"


class Hidden:
    """A value of any JSON type that does not show itself."""

    __slots__ = ("_value",)

    notation: ClassVar[str] = "hidden<any>"
    shape: ClassVar[Any] = Any

    def __init__(self, value: object) -> None:
        self._value = value

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Wrap a plain value; nothing is refused."""
        return cls(raw)

    def reveal(self) -> object:
        """The plain value; call it only where the value is used."""
        return self._value

    @property
    def lost(self) -> bool:
        """Whether only ``<redacted>`` is left of it, as when read back from a job file."""
        return bool(self._value == REDACTED)

    def __repr__(self) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(other._value == self._value)


class Private(Hidden):
    """Stored with the job and in the configuration, never in logs or lists."""

    __slots__ = ()

    notation: ClassVar[str] = "private<any>"


class Secret(Hidden):
    """Known to the running job only; stored nowhere."""

    __slots__ = ()

    notation: ClassVar[str] = "secret<any>"


def reveal_all(values: Mapping[str, object] | None) -> JsonObject:
    """The plain values of a mapping, some hidden; for callers of :meth:`Hidden.reveal`."""
    return {
        key: value.reveal() if isinstance(value, Hidden) else value
        for key, value in (values or {}).items()
    }
