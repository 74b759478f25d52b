"""The history of the configuration: changes with user, time and job."""

from __future__ import annotations

from typing import get_args, get_type_hints

from ganeti.base.json_types import JsonObject
from ganeti.luxi.requests import HistoryFilter
from ganeti.opcodes import describe
from ganeti.rapi import failures, schemas
from ganeti.rapi.route import Arg, ArgKind, Call, Route

#: Changes of an answer that asks for no number, and the most.
USUAL, MOST = 100, 10_000
_NUMBERS: dict[str, type[float] | type[int]] = {
    "since": float,
    "until": float,
    "job": int,
    "limit": int,
}


def _history(call: Call) -> JsonObject:
    given: JsonObject = {"limit": USUAL}
    for name, text in call.query.items():
        given[name] = _number(name, text) if name in _NUMBERS else text
    given["limit"] = min(given["limit"], MOST)
    return call.luxi.query_history(**given)


def _number(name: str, text: str) -> float:
    found: float
    try:
        found = _NUMBERS[name](text)
    except ValueError:
        found = -1
    if not 0 <= found < 2**53:
        raise failures.make_bad_request(
            f"Query argument '{name}' must be a number from 0, not '{text[:60]}'"
        )
    return found


def _kinds() -> tuple[str, ...]:
    kind = get_type_hints(HistoryFilter)["kind"]
    return tuple(word for part in get_args(kind) for word in get_args(part))


def _arguments() -> tuple[Arg, ...]:
    return tuple(
        Arg(
            found.name,
            ArgKind.TEXT,
            found.description,
            choices=_kinds() if found.name == "kind" else (),
        )
        for found in describe.parameters(HistoryFilter)
    )


_ANSWER = {
    "type": "object",
    "required": ["changes", "more", "missing", "begins", "names"],
    "properties": {
        "changes": {
            "type": "array",
            "items": schemas.OBJECT,
            "description": "Oldest first, each with time, name, job, user, reason and objects",
        },
        "more": {"type": "boolean", "description": "Whether there are older ones"},
        "names": {"type": "object", "description": "Names of objects by uuid"},
    },
}

ROUTES = (
    Route(
        "GET",
        "/2/history",
        "Show who changed what in the configuration, when and in which job",
        _history,
        access=("read", "write"),
        query=_arguments(),
        answer=_ANSWER,
        statuses=(404,),
    ),
)
