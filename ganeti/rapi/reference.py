"""The reference page of the remote API, made of the table of routes; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import groupby
from typing import Any

from ganeti.opcodes import describe
from ganeti.opcodes.base import OpCode, id_of
from ganeti.rapi import openapi
from ganeti.rapi.differences import DRY_RUN
from ganeti.rapi.identity import permission_of
from ganeti.rapi.route import KNOWN, REASON, Route

_HEAD = """\
# Remote API

HTTPS and JSON on port 5080 of the master node, served by `ganeti-rapi`. The same facts for
programs are at `/openapi.json` (OpenAPI 3.1).

## Requests

- A request that changes something is answered with the id of a job at once, a plain number. What
  became of it is at `/2/jobs/ID`, or at `/2/jobs/ID/wait` when it has ended.
- A body is a JSON object and needs `Content-Type: application/json`. No body is the same as `{}`.
  Unknown parameters are refused by name, nothing is done then.
- Sizes are numbers of MiB or texts with a unit (`"20G"`). Times in answers are `[seconds,
  microseconds]` for jobs and seconds for objects.
- Every request that submits a job takes `reason=TEXT` (kept with the job) and, but for
  `reinstall`, `dry-run=1` (only check). In its body it also takes `depends`, `priority`
  (-10, 0, 10), `comment` and `debug_level`.
- Instances can also be named by their uuid.

## Answers

200 is the only status of success. Every error has the body
`{"code": STATUS, "message": "what was wrong", "explain": "what the status means"}`. Of 501 and
of 401 to 499, `message` is the phrase of HTTP ("Not Found") and `explain` says what was wrong.

| status | meaning |
|---|---|
| 303 | a browser goes on elsewhere (log-in by an identity provider) |
| 304 | the answer is the one you have (`If-None-Match`) |
| 400 | the request is wrong; the text names the parameter |
| 401, 403 | unknown user or password; not allowed |
| 404 | no such path or object |
| 409 | a job that has not ended uses the name, the address or the port; ask again when it has |
| 412 | the object has changed (`If-Match`) |
| 413, 414 | the body is larger than 10 MiB; the URL is too long |
| 415 | the body is not `application/json` |
| 429 | too many wrong passwords; `Retry-After` says how long to wait |
| 500 | the request failed; the text says why |
| 501 | no such method here (`Allow` lists those there are), or this version cannot do it |
| 503 | no master daemon, or the queue takes no jobs; `Retry-After` says when to ask again |
| 502, 504 | the master daemon gave no sense or no answer |

## Once only, and only if nothing changed

- `Idempotency-Key: WORD` (any request that submits a job): the same word of the same user never
  makes a second job; the answer is the id of the first one. Use it whenever a client may ask
  again. The body of the second request is not compared with that of the first.
- `ETag` comes with every answer to a GET. `If-None-Match: ETAG` saves sending an answer again.
- `If-Match: ETAG` of an object makes a change fail with 412 when the object's configuration has
  changed since. It is compared when the request comes in: what other jobs in the queue will
  change is not known yet.

## Permissions

A user has `read`, `write` or single permissions. Each request below names what it needs: one of
the listed is enough, `write` includes `read`. Requests without any can be asked by every user,
and without a password unless the daemon runs with `--require-authentication`.
"""

_TITLES = {
    "cluster": "Cluster",
    "instances": "Instances",
    "nodes": "Nodes",
    "groups": "Node groups",
    "networks": "Networks",
    "images": "Images",
    "notifications": "Notifications",
    "jobs": "Jobs",
    "filters": "Job filters",
    "query": "Queries",
}


def page(routes: Iterable[Route]) -> str:
    """The whole page, in Markdown."""
    order = list(_TITLES)
    known = sorted(routes, key=lambda r: (order.index(openapi.tag(r.path)), r.path, r.method))
    parts = [_HEAD]
    for tag, members in groupby(known, lambda route: openapi.tag(route.path)):
        parts.append(f"## {_TITLES[tag]}\n")
        parts += ["\n".join(_lines(route)) + "\n" for route in members]
    return "\n".join(parts)


def _lines(route: Route) -> Iterator[str]:
    yield f"### {route.method} {openapi.path_of(route)}"
    yield ""
    yield f"{route.summary}. {_rights(route)}"
    yield ""
    for arg in route.query:
        if route.opcode is not None and arg in (DRY_RUN, REASON):
            continue
        needed = ", required" if arg.required else ""
        choices = f": {', '.join(arg.choices)}" if arg.choices else ""
        yield f"- query `{arg.name}` ({arg.kind.value}{needed}): {arg.doc}{choices}"
    if route.body is not None:
        yield from _body(route, route.body())
    yield f"- answer: {_answer(route)}"


def _rights(route: Route) -> str:
    if not route.access:
        return "Needs no permission."
    if route.access == KNOWN:
        return "Needs no permission, but a user or a token."
    names = [*route.access, permission_of(route.method, route.path)]
    return f"Needs {' or '.join(f'`{name}`' for name in dict.fromkeys(names))}."


def _body(route: Route, schema: Mapping[str, Any]) -> Iterator[str]:
    needed = " (required)" if route.body_required else ""
    if "enum" in schema:
        yield f"- body{needed}: {_words(schema['enum'])}"
        return
    common = set(OpCode.__struct_fields__)
    types = _types(route)
    own = {name: part for name, part in schema["properties"].items() if name not in common}
    if not own:
        yield "- body: only what all requests take"
    for name, part in own.items():
        kind = types.get(name) or _plain_type(part)
        must = ", required" if name in schema.get("required", ()) else ""
        text = part.get("description") or _find_description(route, name)
        yield f"- body `{name}` ({kind}{must}){': ' if text else ''}{text}"


def _words(words: Iterable[str]) -> str:
    return " or ".join(f'`"{word}"`' for word in words)


def _types(route: Route) -> dict[str, str]:
    """Types of parameters by the names they have in the body."""
    if route.opcode is None:
        return {}
    outer = openapi.names_in_body(route)
    return {outer.get(p.name, p.name): p.type for p in describe.parameters(route.opcode)}


def _find_description(route: Route, name: str) -> str:
    if route.opcode is None:
        return ""
    outer = openapi.names_in_body(route)
    found = {outer.get(p.name, p.name): p.description for p in describe.parameters(route.opcode)}
    return found.get(name, "")


def _plain_type(part: Mapping[str, Any]) -> str:
    if "const" in part:
        return f"`{part['const']}`"
    kind = part.get("type", "any")
    return kind if isinstance(kind, str) else " or ".join(kind)


def _answer(route: Route) -> str:
    more = [f"{status} ({HTTPStatus(status).phrase})" for status in route.statuses]
    also = f"; also {', '.join(more)}" if more else ""
    if route.answer.get("description") == "Job id":
        cls = route.opcode
        done = "" if cls is None else f", result of `{id_of(cls)}`: `{cls.result_type}`"
        return f"job id{done}{also}"
    return f"{_shape(route.answer)}{also}"


def _shape(schema: Mapping[str, Any]) -> str:
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return ", or ".join(_shape(part) for part in schema[word])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return _words(schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"a list of {_shape(schema.get('items', {}))}"
    if kind == "object":
        names = [f"`{name}`" for name in schema.get("properties", ())]
        return f"object with {', '.join(names)}" if names else "object"
    return kind if isinstance(kind, str) else " or ".join(kind)
