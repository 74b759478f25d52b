"""Requests that submit a job: derived from the opcodes that name them in ``rest``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from ganeti.base import typed
from ganeti.base.clock import SYSTEM, nanoseconds
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.opcodes import describe, registry, wire
from ganeti.opcodes.base import OpCode, id_of
from ganeti.rapi import adapt, failures, schemas
from ganeti.rapi.differences import DRY_RUN, Difference, difference
from ganeti.rapi.route import NUMBERS, REASON, Arg, Call, Route

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Handlers whose name in reason trails does not follow from their path.
_HANDLERS = {"/2/modify": "cluster_modify", "/2/redistribute-config": "redist_config"}
#: Parameters that no body may contain.
_SET_BY_SERVER = frozenset({"OP_ID", "reason"})


def routes() -> Iterator[Route]:
    """A route for each request that an opcode names."""
    for cls in registry.all_opcodes().values():
        for request in cls.rest:
            yield _route(cls, request)


def _route(cls: type[OpCode], request: str) -> Route:
    method, _, path = request.partition(" ")
    own = difference(request)
    query = own.query if DRY_RUN in own.query else (*own.query, DRY_RUN)
    return Route(
        method,
        path,
        _summary(cls, path),
        partial(_submit_one, cls, own),
        access=own.access,
        query=(*query, REASON),
        body=partial(body_schema, cls, path, own),
        body_required=own.body_required,
        answer=schemas.JOB_ID,
        opcode=cls,
        statuses=(403,) if own.forbidden else (),
    )


def _summary(cls: type[OpCode], path: str) -> str:
    text = (cls.__doc__ or "").strip().splitlines()[0].rstrip(".")
    return f"{text} (its role)" if path.endswith("/role") else text


# submitting -----------------------------------------------------------------------------------


def _submit_one(cls: type[OpCode], own: Difference, call: Call) -> int:
    values = parameters(cls, own, call)
    return submit(call, [values])


def submit(call: Call, ops: list[JsonObject]) -> int:
    """Hand in one job with the reason and the user of the call; its id."""
    trail = reason_trail(call)
    ops = [{**op, "reason": trail} for op in ops]
    for op in ops:
        wire.decode(registry.find(op["OP_ID"]), op)
    user = user_of(call)
    key = None if call.key is None else f"{user}:{call.key}"
    return call.luxi.submit_job(ops, key, user=user)


def user_of(call: Call) -> str:
    """The user of a request, as the master records it."""
    return f"rapi:{call.identity.name or 'anonymous'}"


def reason_trail(call: Call) -> list[list[object]]:
    """User and reason, as entries of a job's reason trail."""
    now = nanoseconds(SYSTEM.now())
    given = call.query.get(REASON.name)
    source = f"gnt:library:rlib2:{handler_name(call.route.path)}"
    entry = [source, call.identity.name, now]
    return [entry] if given is None else [["gnt:user", given, now], entry]


def handler_name(path: str) -> str:
    """Name of a path in reason trails: ``instances_name_disk_grow``."""
    if path in _HANDLERS:
        return _HANDLERS[path]
    words = []
    for part in path.removeprefix("/2/").split("/"):
        if part == "{disk}":
            continue
        if part.startswith("{"):
            part = {"{job_id}": "id", "{uuid}": "uuid"}.get(part, "name")
        words.append(part.replace("-", "_"))
    return "_".join(words)


# the opcode -----------------------------------------------------------------------------------


def parameters(cls: type[OpCode], own: Difference, call: Call) -> JsonObject:
    """The opcode in wire form that a call asks for, not checked yet.

    Raises:
        Refused: the body is not an object, or has something in it that it may not set.
    """
    static = {**_read_path(cls, call.path), **_read_query(call), **own.fixed}
    body = _body(own, call)
    values = adapt.rename_keys(body, dict(own.rename))
    for name in values:
        _check_key(name, static, own)
    values = {**values, **static}
    if own.prepare is not None:
        values = own.prepare(call, values)
    _address_by_uuid(cls, call, values)
    return {"OP_ID": id_of(cls), **values}


def _read_path(cls: type[OpCode], path: Mapping[str, str]) -> JsonObject:
    kinds = {item.name: describe.type_text(item.type) for item in typed.fields(cls)}
    found: JsonObject = {}
    for name, text in path.items():
        value: object = int(text) if name in NUMBERS else text
        found[name] = [value] if kinds[name].startswith("[") else value
    return found


def _read_query(call: Call) -> JsonObject:
    return {
        arg.parameter: call.query[arg.name]
        for arg in call.route.query
        if arg.parameter and arg.name in call.query
    }


def _body(own: Difference, call: Call) -> JsonObject:
    body = call.body
    if own.body_ignored:
        depends = body.get("depends") if isinstance(body, dict) else None
        return {} if depends is None else {"depends": depends}
    if body is None or own.prepare is adapt.role:
        return {}
    if not isinstance(body, dict):
        raise failures.make_bad_request("The body must be a JSON object")
    return body


def _check_key(name: str, static: JsonObject, own: Difference) -> None:
    if name in own.forbidden:
        raise failures.Refused(403, f"parameter {name} cannot be set by the remote API")
    if name in _SET_BY_SERVER:
        raise failures.make_bad_request(f"unknown parameter '{name}'")
    arguments = {arg.parameter: arg.name for arg in own.query}
    if name in static or name in arguments:
        where = f"argument '{arguments[name]}' of the query" if name in arguments else "path"
        raise failures.make_bad_request(f"parameter {name} is set by the {where}, not by the body")


def _address_by_uuid(cls: type[OpCode], call: Call, values: JsonObject) -> None:
    """Let an instance be named by its uuid, as one without a name must be."""
    name = call.path.get("instance_name", "")
    if "instance_uuid" in cls.__struct_fields__ and _UUID.fullmatch(name):
        values.setdefault("instance_uuid", name)


# arguments ------------------------------------------------------------------------------------


def describe_unknown_argument(name: str, known: tuple[Arg, ...]) -> str:
    """Text for an argument that a request does not have."""
    names = [arg.name for arg in known]
    hint = nearest(name, names) or (f"; choose from {', '.join(names)}" if names else "")
    return f"Unknown query argument '{name[:60]}'{hint}"


# documentation --------------------------------------------------------------------------------


def body_schema(cls: type[OpCode], path: str, own: Difference) -> JsonObject:
    """JSON schema of the body of a request."""
    if own.prepare is adapt.role:
        return dict(schemas.ROLE)
    schema = describe.json_schema(cls)
    properties: JsonObject = dict(schema["properties"])
    if own.body_ignored:
        return {"type": "object", "properties": {"depends": properties["depends"]}}
    names = {new: old for old, new in own.rename.items()}
    hidden = {*_SET_BY_SERVER, *own.fixed, *own.forbidden, *(arg.parameter for arg in own.query)}
    hidden |= set(re.findall(r"\{(\w+)\}", path))
    required = [name for name in schema.get("required", ()) if name not in hidden]
    result: JsonObject = {
        "type": "object",
        "properties": {
            names.get(name, name): value for name, value in properties.items() if name not in hidden
        },
        "additionalProperties": False,
    }
    if own.prepare is adapt.creation:
        result["properties"]["__version__"] = {"const": 1}
        required.append("__version__")
    if own.prepare is adapt.commit:
        result["properties"]["__version__"] = {"const": 1}
        required = []
    if required:
        result["required"] = [names.get(name, name) for name in required]
    return result


ROUTES = tuple(routes())
