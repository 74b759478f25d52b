"""Bodies and arguments that need more than another name to become opcode parameters.

Each function gets the call and the parameters so far, and returns the parameters. The check
that follows finds all other errors in them.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.enums import InstCreateMode, MigrationMode, RebootType
from ganeti.rapi import failures
from ganeti.rapi.route import Call

#: Names in the body of a creation.
CREATE_NAMES = {"os": "os_type", "name": "instance_name"}
#: The version of creation bodies.
_CREATE_VERSION = 1
#: Parameters of a node for each role that can be set.
ROLES: dict[str, JsonObject] = {
    "regular": {"master_candidate": False, "offline": False, "drained": False},
    "master-candidate": {"master_candidate": True},
    "drained": {"drained": True},
    "offline": {"offline": True},
}
#: Arguments of old clients that replace disks.
LEGACY_REPLACEMENT = ("remote_node", "mode", "disks", "iallocator")
#: Parameters that a reservation may leave open, as the opcode wants to see them.
_OPEN: JsonObject = {"mode": str(InstCreateMode.CREATE), "disks": [], "nics": []}


def rename_keys(body: JsonObject, names: dict[str, str]) -> JsonObject:
    """A body with the opcode's own names; both spellings of one parameter are refused."""
    result: JsonObject = {}
    for key, value in body.items():
        name = names.get(key, key)
        if name in result:
            other = next(old for old, new in names.items() if new == name)
            raise failures.make_bad_request(
                f"'{other}' and '{name}' are the same; name one of them"
            )
        result[name] = value
    return result


def creation(_call: Call, values: JsonObject) -> JsonObject:
    """A creation body says which version it has; a reservation may leave things open."""
    version = values.pop("__version__", None)
    if isinstance(version, bool) or version != _CREATE_VERSION:
        raise failures.make_bad_request(
            f'The body must contain "__version__": {_CREATE_VERSION}'
            + ("" if version is None else f"; version {version!r:.40} is not known")
        )
    if values.get("forthcoming") is True:
        values = {"instance_name": "", **_OPEN, **values}
    return usb_devices(_call, values)


def commit(call: Call, values: JsonObject) -> JsonObject:
    """A body that commits a reservation, which has all other parameters."""
    values.pop("__version__", None)
    return usb_devices(call, {**_OPEN, **values})


def creations(call: Call, values: JsonObject) -> JsonObject:
    """Several creation bodies, without a version each."""
    bodies = values.get("instances", [])
    if not isinstance(bodies, list) or not all(isinstance(body, dict) for body in bodies):
        raise failures.make_bad_request("'instances' must be a list of objects")
    known = [
        usb_devices(
            call, rename_keys({k: v for k, v in body.items() if k != "__version__"}, CREATE_NAMES)
        )
        for body in bodies
    ]
    return {**values, "instances": [{"OP_ID": "OP_INSTANCE_CREATE", **body} for body in known]}


def reservations(call: Call, values: JsonObject) -> JsonObject:
    """Several creation bodies that may leave anything open, without a version each."""
    whole = creations(call, values)
    for body in whole["instances"]:
        for name, value in {"instance_name": "", **_OPEN, "forthcoming": True}.items():
            body.setdefault(name, value)
    return whole


def usb_devices(_call: Call, values: JsonObject) -> JsonObject:
    """Old clients separate USB devices by spaces; the parameter has commas."""
    hvparams = values.get("hvparams")
    devices = hvparams.get("usb_devices") if isinstance(hvparams, dict) else None
    if isinstance(hvparams, dict) and isinstance(devices, str):
        hvparams = {**hvparams, "usb_devices": devices.replace(" ", ",")}
        return {**values, "hvparams": hvparams}
    return values


def growth(_call: Call, values: JsonObject) -> JsonObject:
    """Convert ``amount`` from text with a unit to MiB."""
    amount = values.get("amount")
    if isinstance(amount, str):
        try:
            values = {**values, "amount": units.parse_size(amount)}
        except errors.UnitParseError as err:
            raise failures.make_bad_request(f"parameter amount: {errors.text(err)}") from err
    return values


def reboot(_call: Call, values: JsonObject) -> JsonObject:
    return {"reboot_type": str(RebootType.HARD), **values}


def replacement(call: Call, values: JsonObject) -> JsonObject:
    """Disks may be text with commas; everything may be in the query string instead."""
    legacy = {name: call.query[name] for name in LEGACY_REPLACEMENT if name in call.query}
    if legacy and call.body:
        raise failures.make_bad_request(
            f"'{min(legacy)}' is given in the query string: then there must be no body"
        )
    values = {**values, **legacy}
    disks = values.get("disks")
    if isinstance(disks, str):
        try:
            values = {**values, "disks": [int(part) for part in disks.split(",") if part.strip()]}
        except ValueError:
            raise failures.make_bad_request(
                f"parameter disks: expected numbers with commas, got '{disks[:60]}'"
            ) from None
    return values


def migration(call: Call, values: JsonObject) -> JsonObject:
    """``live`` and ``mode`` in the query string come from old clients and rule out a body."""
    legacy = [name for name in ("live", "mode") if name in call.query]
    if not legacy:
        return values
    mode = call.query.get("mode")
    if "live" in call.query:
        mode = str(MigrationMode.LIVE if call.flag("live") else MigrationMode.NON_LIVE)
    return {"node_name": values["node_name"], "mode": mode}


def role(call: Call, values: JsonObject) -> JsonObject:
    """The body is the name of a role."""
    if not isinstance(call.body, str) or call.body not in ROLES:
        shown = call.body if isinstance(call.body, str) else "something else"
        raise failures.make_bad_request(
            f"The body must be the JSON text of a role ({', '.join(ROLES)}), not {shown:.60}"
        )
    return {**values, **ROLES[call.body]}


def storage_changes(call: Call, values: JsonObject) -> JsonObject:
    values.pop("allocatable", None)
    given = {"allocatable": call.flag("allocatable")} if "allocatable" in call.query else {}
    return {**values, "changes": given}
