"""Routes of the remote API, which are rows of the table in ``routes``, and requests for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ganeti.base import jsonio
from ganeti.luxi.client import Client
from ganeti.opcodes.base import OpCode
from ganeti.rapi import failures
from ganeti.rapi.identity import KNOWN as _KNOWN
from ganeti.rapi.identity import Identity
from ganeti.rapi.sessions import Session

VARIABLE = re.compile(r"\{(\w+)\}")
#: Access of a route that needs no permission: every user.
ANYBODY: tuple[str, ...] = ()
#: Access of a route that only asks who it is, because it is about that one.
KNOWN: tuple[str, ...] = (_KNOWN,)
#: Variables that stand for a number; all others for a name or a uuid.
NUMBERS = frozenset({"disk", "job_id"})


class ArgKind(Enum):
    """How the text of a query argument is read."""

    FLAG = "0 or 1"
    TEXT = "text"
    LIST = "names with commas between them"
    REPEATED = "text, may be given several times"


@dataclass(frozen=True)
class Arg:
    """One argument of the query string; ``parameter`` is the one of the opcode that it sets."""

    name: str
    kind: ArgKind
    doc: str
    parameter: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()

    def read(self, values: list[str]) -> object:
        """The value of the texts given for it; the last one counts unless it may be repeated.

        Raises:
            Refused: 400, the text cannot be used.
        """
        if self.kind is ArgKind.REPEATED:
            return values
        text = values[-1]
        if self.kind is ArgKind.FLAG:
            try:
                return bool(int(text))
            except ValueError:
                raise failures.make_bad_request(
                    f"Query argument '{self.name}' must be 0 or 1, not '{text[:60]}'"
                ) from None
        if self.kind is ArgKind.LIST:
            return [part.strip() for part in text.split(",") if part.strip()]
        if self.choices and text not in self.choices:
            raise failures.make_bad_request(
                f"Query argument '{self.name}' must be one of {', '.join(self.choices)},"
                f" not '{text[:60]}'"
            )
        return text


BULK = Arg("bulk", ArgKind.FLAG, "1 for all fields of every object instead of names only")
LOCK = Arg("lock", ArgKind.FLAG, "1 is refused, as queries take no locks")
REASON = Arg("reason", ArgKind.TEXT, "Why it is done; kept in the reason trail of the job")


@dataclass(frozen=True)
class Call:
    """One request that was understood, on its way to the handler of its route."""

    route: Route
    #: what the variables of the path stand for
    path: Mapping[str, str]
    #: the query arguments that were given, by their names on the wire
    query: Mapping[str, Any]
    #: the JSON value of the body, None without one
    body: Any
    identity: Identity
    luxi: Client
    #: the client's word for this request, unique for this user; see Idempotency-Key
    key: str | None = None
    #: WSGI environment, for what only few routes need
    environ: Mapping[str, Any] = field(default_factory=dict)
    #: the session of a browser that the request belongs to
    session: Session | None = None

    def flag(self, name: str) -> bool:
        """Whether a flag of the query string is set."""
        return bool(self.query.get(name, False))

    def name(self) -> str:
        """Return the value of the only or last variable of the path."""
        return list(self.path.values())[-1]


@dataclass(frozen=True)
class Ready:
    """An answer that is JSON text already."""

    data: bytes
    #: version of the object, when it has one; part of its ETag
    version: str = ""
    #: headers of its own
    headers: Mapping[str, str] = field(default_factory=dict)
    #: the whole answer by gzip, with the new line at its end; empty: it is never sent so
    packed: bytes = b""
    status: int = 200

    @classmethod
    def encode(cls, value: object, headers: Mapping[str, str]) -> Ready:
        """A value as JSON text, with headers."""
        return cls(jsonio.answer_bytes(value), headers=headers)


Handler = Callable[[Call], Any]


@dataclass(frozen=True)
class Route:
    """One method of one path.

    ``access`` names permissions of which one is needed (``read``, ``write``), or is ``ANYBODY``;
    it has no default, so that a forgotten one opens nothing. ``answer`` is the JSON schema of a
    successful answer, ``body`` gives that of the request's body (None: a body is ignored).
    The handler gives a value that is written as JSON, or :class:`Ready`.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    access: tuple[str, ...]
    query: tuple[Arg, ...] = ()
    body: Callable[[], Mapping[str, object]] | None = None
    body_required: bool = False
    answer: Mapping[str, object] = field(default_factory=dict)
    content_type: str = "application/json"
    opcode: type[OpCode] | None = None
    #: whether it answers those who have not said who they are in any case, as they log in by it
    before_login: bool = False
    #: whether it changes nothing although its method says otherwise
    safe: bool = False
    #: statuses of its own, besides those that every route may answer with
    statuses: tuple[int, ...] = ()
    #: version of the object as it is now (None: there is none), cheaper than the handler
    version: Callable[[Call], str | None] | None = None
    #: seconds it may block on purpose, 0 for an answer at once
    waits: float = 0.0

    @property
    def variables(self) -> list[str]:
        """Names in the path, in their order."""
        return VARIABLE.findall(self.path)

    @property
    def reads(self) -> bool:
        """Whether it answers with the state of something and changes nothing."""
        return self.safe or (self.method == "GET" and self.opcode is None)
