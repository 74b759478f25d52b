"""Job filter rules: adding, replacing and deleting them; no job is needed for it."""

from __future__ import annotations

import msgspec

from ganeti.base.clock import SYSTEM, nanoseconds
from ganeti.base.json_types import JsonObject
from ganeti.luxi.requests import FilterSettings
from ganeti.rapi import failures, schemas
from ganeti.rapi.route import Call, Route
from ganeti.rapi.writes import handler_name, user_of

_DEFAULTS: JsonObject = {**msgspec.structs.asdict(FilterSettings()), "reason": []}


def _replace(call: Call) -> str:
    """The new rule's uuid."""
    body = {} if call.body is None else call.body
    if not isinstance(body, dict):
        raise failures.make_bad_request("The body must be a JSON object")
    for name in body:
        if name not in _DEFAULTS:
            raise failures.make_bad_request(f"unknown parameter '{name[:60]}'")
    values = {**_DEFAULTS, **body}
    for name in ("predicates", "reason"):
        if not isinstance(values[name], list):
            raise failures.make_bad_request(f"parameter {name}: expected a list")
    if isinstance(values["priority"], bool) or not isinstance(values["priority"], int):
        raise failures.make_bad_request("parameter priority: expected an integer")
    source = f"gnt:library:rlib2:{handler_name(call.route.path)}"
    trail = [*values["reason"], [source, call.identity.name, nanoseconds(SYSTEM.now())]]
    rule = (values["priority"], values["predicates"], values["action"], trail)
    return call.luxi.replace_filter(call.path.get("uuid"), *rule, user=user_of(call))


def _delete(call: Call) -> None:
    call.luxi.delete_filter(call.path["uuid"], user=user_of(call))


ROUTES = (
    Route(
        "POST",
        "/2/filters",
        "Add a filter rule",
        _replace,
        access=("write",),
        body=lambda: schemas.FILTER_BODY,
        answer=schemas.TEXT,
    ),
    Route(
        "PUT",
        "/2/filters/{uuid}",
        "Replace a filter rule",
        _replace,
        access=("write",),
        body=lambda: schemas.FILTER_BODY,
        answer=schemas.TEXT,
    ),
    Route(
        "DELETE",
        "/2/filters/{uuid}",
        "Delete a filter rule",
        _delete,
        access=("write",),
        answer=schemas.NULL,
        statuses=(404,),
    ),
)
