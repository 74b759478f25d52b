"""By what a guest that was started from a copy shows that it works. Pure.

As text it is ``agent``, ``tcp:PORT``, or ``serial:TEXT`` with a part of a line of the console.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from enum import StrEnum

from ganeti import errors

#: Sign that most systems print on their serial console when they have started.
USUAL = "serial:login:"
#: Characters of a line that are looked at, and of a text that is looked for.
_LONGEST, _LONGEST_TEXT = 1000, 200


class Kind(StrEnum):
    AGENT = "agent"
    SERIAL = "serial"
    TCP = "tcp"


@dataclass(frozen=True)
class Sign:
    kind: Kind
    #: part of a line, in which ``*`` and ``?`` stand for others; or the number of a port
    value: str = ""

    @property
    def port(self) -> int:
        return int(self.value)

    def encode(self) -> str:
        """As :func:`parse` reads it."""
        return f"{self.kind}:{self.value}" if self.value else str(self.kind)

    @property
    def text(self) -> str:
        """Its name in messages."""
        match self.kind:
            case Kind.AGENT:
                return "the guest agent answers"
            case Kind.TCP:
                return f"TCP port {self.value} answers"
            case Kind.SERIAL:
                return f"the serial console shows '{self.value}'"

    def is_in(self, console: str) -> bool:
        """Whether a line of the console has the text."""
        wanted = f"*{self.value}*"
        return any(fnmatch.fnmatchcase(line[:_LONGEST], wanted) for line in console.splitlines())


def parse(text: str) -> Sign:
    """A sign; OpPrereqError for anything else."""
    kind, colon, value = text.partition(":")
    if kind == Kind.AGENT and not colon:
        return Sign(Kind.AGENT)
    if kind == Kind.TCP and value.isascii() and value.isdigit() and 0 < int(value) < 65536:
        return Sign(Kind.TCP, value)
    if kind == Kind.SERIAL and value and value.isprintable() and len(value) <= _LONGEST_TEXT:
        return Sign(Kind.SERIAL, value)
    raise errors.make_invalid_error(
        f"'{text[:80]}' is not a sign of life: give agent, tcp:PORT, or serial:TEXT with a part of"
        " a line that the serial console shows, such as serial:login:"
    )
