"""Which operation does an opcode's work when it means a reservation.

A reservation is on record only, so most of what is done to an instance is another, small task
for it. Operations that are not in the table and need an instance that exists refuse with what the
reservation lacks (``ops/locks.py``).
"""

from __future__ import annotations

import importlib
from typing import Any

from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context, Operation

#: OP_ID -> module of this package and class.
_INSTEAD = {
    "OP_INSTANCE_CHANGE_GROUP": ("move", "ReservationChangeGroup"),
    "OP_INSTANCE_FAILOVER": ("move", "ReservationFailover"),
    "OP_INSTANCE_MIGRATE": ("move", "ReservationMigrate"),
    "OP_INSTANCE_MOVE": ("move", "ReservationMove"),
    "OP_INSTANCE_REMOVE": ("remove", "ReservationRemove"),
    "OP_INSTANCE_RENAME": ("rename", "ReservationRename"),
    "OP_INSTANCE_REPLACE_DISKS": ("move", "ReservationReplaceDisks"),
    "OP_INSTANCE_SET_PARAMS": ("modify", "ReservationModify"),
}


def find(op: OpCode, ctx: Context) -> type[Operation[Any, Any]] | None:
    """The operation for a reservation; None when the opcode means something else."""
    if isinstance(op, OpInstanceCreate):
        if op.commit:
            return _load("commit", "InstanceCommit")
        return _load("reserve", "InstanceReserve") if op.forthcoming else None
    known = _INSTEAD.get(op.op_id)
    if known is None:
        return None
    wanted = getattr(op, "instance_uuid", None) or getattr(op, "instance_name")  # noqa: B009
    found = ctx.config.find_instance(wanted)
    if found is None or not found.forthcoming or found.interrupted:
        return None
    return _load(*known)


def _load(module: str, name: str) -> type[Operation[Any, Any]]:
    found: type[Operation[Any, Any]] = getattr(
        importlib.import_module(f"ganeti.ops.variants.{module}"), name
    )
    return found
