"""The OpenAPI document of the remote API, made of the table of routes; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from ganeti import constants
from ganeti.base.json_types import JsonObject
from ganeti.rapi import schemas
from ganeti.rapi.differences import difference
from ganeti.rapi.failures import REALM
from ganeti.rapi.identity import permission_of
from ganeti.rapi.route import ANYBODY, KNOWN, NUMBERS, Arg, ArgKind, Route
from ganeti.rapi.sessions import COOKIE

Document = JsonObject

#: Statuses that any request may get.
EVERY = (400, 401, 403, 404, 414, 429, 500, 502, 503, 504)
#: Further ones of requests that change something or may have a body.
_WITH_BODY = (413, 415)
_CHANGES = (409, 412, 501)

_PLACES = {
    "instance_name": "Name or uuid of an instance",
    "instances": "Name of an instance",
    "node_name": "Name of a node",
    "nodes": "Name of a node",
    "group_name": "Name of a node group",
    "network_name": "Name of a network",
    "image_name": "Name of an image",
    "notification_name": "Name of a notification",
    "name": "Name of the object",
    "uuid": "UUID of the object",
    "disk": "Index of the disk",
    "job_id": "Job id",
    "id": "Id of a session",
    "provider": "Name of an identity provider",
    "ticket": "Ticket of a console",
    "resource": "Kind of thing",
}
_KINDS: Mapping[ArgKind, Document] = {
    ArgKind.FLAG: {"type": "integer", "enum": [0, 1]},
    ArgKind.TEXT: {"type": "string"},
    ArgKind.LIST: {"type": "string"},
    ArgKind.REPEATED: {"type": "array", "items": {"type": "string"}},
}
_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "schema": {"type": "string"},
    "description": "ETag of the object; the change is refused when the object has changed since",
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
    "description": "A word of your choice: the same word never makes a second job",
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "schema": {"type": "string"},
    "description": "ETag of the answer you have; without a change the answer is 304",
}


def document(routes: Iterable[Route]) -> Document:
    """The whole document, version 3.1."""
    paths: Document = {}
    for route in routes:
        paths.setdefault(path_of(route), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ganeti remote API",
            "version": constants.RELEASE_VERSION,
            "description": "Requests that change something answer with the id of a job at once.",
            "license": {"name": "BSD-2-Clause", "identifier": "BSD-2-Clause"},
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Error": dict(schemas.ERROR)},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic", "description": REALM},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def path_of(route: Route) -> str:
    """The path; routes of one path must agree on the names in it."""
    return re.sub(r"\{(\w+)\}", lambda found: "{" + _name(found[1]) + "}", route.path)


def _name(variable: str) -> str:
    return {"instances": "instance_name", "nodes": "node_name"}.get(variable, variable)


def _operation(route: Route) -> Document:
    words = re.sub(r"[^A-Za-z0-9]+", " ", route.path.removeprefix("/2/")).split()
    operation: Document = {
        "operationId": "_".join([route.method.lower(), *(words or ["root"])]),
        "summary": route.summary,
        "tags": [tag(route.path)],
        "parameters": _parameters(route),
        "responses": _responses(route),
        "security": [*([] if route.access else [{}]), {"basic": []}, {"session": []}],
    }
    if route.opcode is not None:
        operation["x-ganeti-opcode"] = route.opcode.__struct_config__.tag
    if route.access:
        operation["x-ganeti-access"] = list(route.access)
    if route.access not in (ANYBODY, KNOWN):
        operation["x-ganeti-permission"] = permission_of(route.method, route.path)
    if route.body is not None:
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {"application/json": {"schema": dict(route.body())}},
        }
    return operation


def tag(path: str) -> str:
    """Which family of requests a path belongs to."""
    parts = path.split("/")
    known = ("instances", "nodes", "groups", "networks", "images", "jobs", "filters", "query")
    if len(parts) > 2 and parts[2] in known:
        return parts[2]
    return "instances" if "instances-multi-alloc" in path else "cluster"


def _parameters(route: Route) -> list[Document]:
    found = [_path_argument(name) for name in route.variables]
    found += [_argument(arg) for arg in route.query]
    if route.reads:
        found += [] if route.waits else [_IF_NONE_MATCH]
    else:
        found.append(_IF_MATCH)
        if route.opcode is not None:
            found.append(_KEY)
    return found


def names_in_body(route: Route) -> dict[str, str]:
    """Parameters that have another name in the body of a request, and that name."""
    renamed = difference(f"{route.method} {route.path}").rename
    return {new: old for old, new in renamed.items()}


def _path_argument(name: str) -> Document:
    schema = (
        {"type": "integer", "minimum": 0}
        if name in NUMBERS
        else {"type": "string", "pattern": r"^[A-Za-z0-9_.\-]+$"}
    )
    return {
        "name": _name(name),
        "in": "path",
        "required": True,
        "schema": schema,
        "description": _PLACES.get(name, name),
    }


def _argument(arg: Arg) -> Document:
    schema = dict(_KINDS[arg.kind])
    if arg.choices:
        schema["enum"] = list(arg.choices)
    return {
        "name": arg.name,
        "in": "query",
        "required": arg.required,
        "schema": schema,
        "description": arg.doc,
    }


def statuses(route: Route) -> list[int]:
    """Every status that a request of this route may be answered with, besides 200."""
    found = {*EVERY, *route.statuses}
    if not route.reads:
        found |= {*_CHANGES}
    elif not route.waits:
        found.add(304)
    if route.body is not None:
        found |= {*_WITH_BODY}
    return sorted(found)


def _responses(route: Route) -> Document:
    found: Document = {
        "200": {
            "description": "A job was submitted" if route.opcode else "The answer",
            "content": {route.content_type: {"schema": dict(route.answer)}},
        }
    }
    if route.reads and not route.waits:
        found["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
    for status in statuses(route):
        phrase = HTTPStatus(status).phrase
        found[str(status)] = {"description": phrase}
        if status not in (303, 304):
            found[str(status)]["content"] = {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
            }
    return found
