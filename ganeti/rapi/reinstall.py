"""Reinstallation: one job that stops the instance, installs the OS and starts it again."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.instance import OpInstanceReinstall
from ganeti.rapi import failures, schemas
from ganeti.rapi.route import REASON, Arg, ArgKind, Call, Route
from ganeti.rapi.writes import submit

_LEGACY = (
    Arg("os", ArgKind.TEXT, "OS to install, from old clients; not together with a body"),
    Arg("nostartup", ArgKind.FLAG, "1 to leave it stopped; not together with a body"),
)


def _wishes(call: Call) -> JsonObject:
    """``os``, ``start`` and ``osparams``, from the body or, of old clients, from the query."""
    legacy = [arg.name for arg in _LEGACY if arg.name in call.query]
    if call.body is not None and not isinstance(call.body, dict):
        raise failures.make_bad_request("The body must be a JSON object")
    if legacy and call.body:
        raise failures.make_bad_request(
            f"'{legacy[0]}' is given in the query string: then there must be no body"
        )
    if legacy:
        return {"os": call.query.get("os"), "start": not call.flag("nostartup")}
    known = schemas.REINSTALL_BODY["properties"]
    for name in call.body or {}:
        if name not in known:
            raise failures.make_bad_request(f"unknown parameter '{name[:60]}'")
    return dict(call.body or {})


def _reinstall(call: Call) -> int:
    wishes, target = _wishes(call), {"instance_name": call.path["instance_name"]}
    start = wishes.get("start", True)
    if not isinstance(start, bool):
        raise failures.make_bad_request("parameter start: expected true or false")
    given = {"os_type": wishes.get("os"), "osparams": wishes.get("osparams")}
    install = {name: value for name, value in given.items() if value is not None}
    ops: list[JsonObject] = [
        {"OP_ID": "OP_INSTANCE_SHUTDOWN", **target},
        {"OP_ID": "OP_INSTANCE_REINSTALL", **target, **install},
    ]
    if start:
        ops.append({"OP_ID": "OP_INSTANCE_STARTUP", **target, "force": False})
    return submit(call, ops)


ROUTES = (
    Route(
        "POST",
        "/2/instances/{instance_name}/reinstall",
        "Install the OS again",
        _reinstall,
        access=("write",),
        query=(*_LEGACY, REASON),
        body=lambda: schemas.REINSTALL_BODY,
        answer=schemas.JOB_ID,
        opcode=OpInstanceReinstall,
    ),
)
