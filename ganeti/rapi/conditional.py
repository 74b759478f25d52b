"""ETags: answers that did not change are not sent again, stale changes are refused.

The ETag of an object of the configuration is ``"VERSION-HASH"``: the version counts its changes in
the configuration, the hash is that of the answer with its live values. ``If-None-Match`` compares
both, ``If-Match`` the version only, as live values are no reason to refuse a change.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

from ganeti import errors
from ganeti.base import jsonio
from ganeti.rapi import failures
from ganeti.rapi.route import Call, Ready, Route

#: Path of the object that a change of the cluster as a whole is compared with.
_CLUSTER = "/2/info"


def etag(data: bytes, version: str = "") -> str:
    """The ETag of an answer, with its quotes."""
    digest = hashlib.blake2b(data, digest_size=12).hexdigest()
    return f'"{version}-{digest}"' if version else f'"{digest}"'


def is_unchanged(tag: str, header: str | None) -> bool:
    """Whether ``If-None-Match`` names this ETag."""
    return header is not None and (header.strip() == "*" or tag in _tags(header))


def _tags(header: str) -> list[str]:
    return [part.strip().removeprefix("W/") for part in header.split(",")]


def target(route: Route, table: Mapping[str, Mapping[str, Route]]) -> Route | None:
    """The GET route whose answer a change is compared with: its own path, or the object above."""
    found = (methods.get("GET") for methods in table.values())
    readers = {_shape(reader.path): reader for reader in found if reader and _is_plain(reader)}
    parts = route.path.split("/")
    while len(parts) > 2:
        reader = readers.get(_shape("/".join(parts)))
        if reader is not None:
            return reader
        parts.pop()
    return readers.get(_CLUSTER)


def _is_plain(reader: Route) -> bool:
    """Whether its answer depends on nothing but the path."""
    return reader.reads and not reader.waits and not any(arg.required for arg in reader.query)


def _shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def check_match(call: Call, reader: Route | None, header: str) -> None:
    """Refuse a change whose ``If-Match`` names none of the current ETags.

    Raises:
        Refused: 412.
    """
    if reader is None or not _matches(call, reader, header):
        raise failures.Refused(
            412, "The object is not as it was when you read it: read it again, then decide"
        )


def _matches(call: Call, reader: Route, header: str) -> bool:
    values = dict(zip(reader.variables, call.path.values(), strict=False))
    asked = dataclasses.replace(call, route=reader, path=values, query={}, body=None)
    current = _current(asked, reader)
    if current is None:
        return False
    if header.strip() == "*":
        return True
    tags = [part.strip().strip('"') for part in header.split(",")]
    return current in tags or current in [tag.rpartition("-")[0] for tag in tags]


def _current(call: Call, reader: Route) -> str | None:
    """Version or, of what has none, hash of the answer; None when there is no such thing."""
    if reader.version is not None:
        return reader.version(call)
    try:
        answer = reader.handler(call)
    except errors.GanetiError as err:
        if failures.status_of(err) == 404:
            return None
        raise
    return etag(encode(answer).data).strip('"')


def encode(value: object) -> Ready:
    """An answer as JSON text that ends with a new line."""
    if isinstance(value, Ready):
        return dataclasses.replace(value, data=value.data + b"\n")
    return Ready(jsonio.answer_bytes(value) + b"\n")
