"""From an OP_ID to its class, importing one family at most.

A class lives in the module called like the first word after ``OP_``, unless ``_ELSEWHERE`` says
otherwise, and is called like its OP_ID; so a new opcode in an existing family needs no entry here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ganeti import errors
from ganeti.opcodes.base import OpCode, class_name, id_of

#: Modules below ``ganeti.opcodes`` that define opcodes.
FAMILIES = (
    "backup",
    "cluster",
    "disk",
    "group",
    "image",
    "instance",
    "instance_create",
    "instance_disks",
    "instance_move",
    "network",
    "node",
    "node_storage",
    "notification",
    "os",
    "placement",
    "query",
    "reservation",
    "snapshot",
    "tags",
    "test",
)

_SHOWN_LENGTH = 60
#: How much alike (0 to 1) a name must be to be suggested.
_NEAR = 0.75

_ELSEWHERE = {
    "OP_CLUSTER_BALANCE": "placement",
    "OP_CLUSTER_CAPACITY": "placement",
    "OP_CLUSTER_CHECK": "placement",
    "OP_CLUSTER_PLACE": "placement",
    "OP_EXT_STORAGE_DIAGNOSE": "os",
    "OP_INSTANCE_ACTIVATE_DISKS": "instance_disks",
    "OP_INSTANCE_CHANGE_GROUP": "instance_move",
    "OP_INSTANCE_CHECK_MOVE": "placement",
    "OP_INSTANCE_CREATE": "instance_create",
    "OP_INSTANCE_DEACTIVATE_DISKS": "instance_disks",
    "OP_INSTANCE_FAILOVER": "instance_move",
    "OP_INSTANCE_GROW_DISK": "instance_disks",
    "OP_INSTANCE_MIGRATE": "instance_move",
    "OP_INSTANCE_MOVE": "instance_move",
    "OP_INSTANCE_MULTI_ALLOC": "instance_create",
    "OP_INSTANCE_RECREATE_DISKS": "instance_disks",
    "OP_INSTANCE_REPLACE_DISKS": "instance_disks",
    "OP_NODE_MAINTENANCE": "placement",
    "OP_NODE_MODIFY_STORAGE": "node_storage",
    "OP_NODE_QUERYVOLS": "node_storage",
    "OP_NODE_QUERY_STORAGE": "node_storage",
    "OP_OOB_COMMAND": "node",
    "OP_REPAIR_NODE_STORAGE": "node_storage",
    "OP_RESTRICTED_COMMAND": "node",
}


def family(op_id: str) -> str | None:
    """Module (below ``ganeti.opcodes``) that would define this opcode, if any."""
    words = op_id.split("_", 2)
    if len(words) < 2 or words[0] != "OP":
        return None
    name = _ELSEWHERE.get(op_id, words[1].lower())
    return name if name in FAMILIES else None


@cache
def find(op_id: str) -> type[OpCode]:
    """Class of an OP_ID.

    Raises OpCodeUnknown, naming the nearest known one (this imports all families).
    """
    name = family(op_id)
    if name is not None:
        cls = getattr(import_module(f"ganeti.opcodes.{name}"), class_name(op_id), None)
        if isinstance(cls, type) and issubclass(cls, OpCode) and id_of(cls) == op_id:
            return cls
    raise errors.OpCodeUnknown(_describe_unknown(op_id))


def all_opcodes() -> dict[str, type[OpCode]]:
    """All opcode classes by OP_ID, sorted; imports every family."""
    found: dict[str, type[OpCode]] = {}
    for name in FAMILIES:
        for cls in vars(import_module(f"ganeti.opcodes.{name}")).values():
            if isinstance(cls, type) and issubclass(cls, OpCode) and cls is not OpCode:
                found[id_of(cls)] = cls
    return dict(sorted(found.items()))


def _describe_unknown(op_id: str) -> str:
    from difflib import get_close_matches

    known = all_opcodes()
    shown = op_id if len(op_id) <= _SHOWN_LENGTH else f"{op_id[:_SHOWN_LENGTH]}..."
    near = get_close_matches(shown.upper(), known, n=1, cutoff=_NEAR)
    if not near:
        near = get_close_matches(f"OP_{shown.upper()}", known, n=1, cutoff=_NEAR)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"Unknown opcode {shown!r}{hint}"
