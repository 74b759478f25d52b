"""Every opcode against its frozen copy, so that a change of the wire is seen in review.

After a wanted change: ``UPDATE_RECORDED=1 pytest test/unit/opcodes``, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ganeti.base import jsonio
from ganeti.opcodes import describe, registry
from ganeti.opcodes.base import OpCode

RECORDED = Path(__file__).parents[2] / "recorded" / "opcodes.json"


def parameter_text(parameter: describe.Parameter) -> str:
    """``type`` of a required parameter, ``type = default`` of any other."""
    default = "" if parameter.required else f" = {jsonio.dumps(parameter.default)}"
    return f"{parameter.type}{default}"


def current() -> dict[str, Any]:
    """What the frozen copy holds, made from the classes."""
    return {
        "common": {p.name: parameter_text(p) for p in describe.parameters(OpCode)},
        "opcodes": {
            op_id: {
                "params": {p.name: parameter_text(p) for p in describe.parameters(cls)},
                "summary": cls.summary_field,
                "result": cls.result_type,
                "exclusive_bgl": cls.exclusive_bgl,
                "rest": list(cls.rest),
            }
            for op_id, cls in registry.all_opcodes().items()
        },
    }


def frozen() -> Any:
    return jsonio.loads(RECORDED.read_bytes())


@pytest.fixture(scope="module", autouse=True)
def _update() -> None:
    if os.environ.get("UPDATE_RECORDED"):
        RECORDED.write_text(jsonio.format_pretty(current()) + "\n", encoding="utf-8")


HINT = "the wire changed; if that is wanted, run: UPDATE_RECORDED=1 pytest test/unit/opcodes"


def test_no_opcode_appeared_or_vanished() -> None:
    assert sorted(current()["opcodes"]) == sorted(frozen()["opcodes"]), HINT


def test_common_parameters_are_as_recorded() -> None:
    assert current()["common"] == frozen()["common"], HINT


@pytest.mark.parametrize("op_id", sorted(registry.all_opcodes()))
def test_opcode_is_as_recorded(op_id: str) -> None:
    assert current()["opcodes"][op_id] == frozen()["opcodes"].get(op_id), HINT


#: Opcodes about reservations, which Ganeti does not have.
RESERVATIONS = {"OP_RESERVATION_ADD", "OP_RESERVATION_EXPIRE", "OP_RESERVATION_SET_PARAMS"}
#: Opcodes that plan where instances are, which Ganeti leaves to other programs.
PLACEMENT = {
    "OP_CLUSTER_BALANCE",
    "OP_CLUSTER_CAPACITY",
    "OP_CLUSTER_CHECK",
    "OP_CLUSTER_PLACE",
    "OP_INSTANCE_CHECK_MOVE",
    "OP_NODE_MAINTENANCE",
}
#: Opcodes about incremental backups; Ganeti has exports only.
BACKUPS = {
    "OP_BACKUP_PRUNE",
    "OP_BACKUP_READ_FILES",
    "OP_BACKUP_RESTORE",
    "OP_BACKUP_RUN",
    "OP_BACKUP_SCHEDULE",
    "OP_BACKUP_VERIFY",
}
#: Opcodes that recover from the death of a node.
RECOVERY = {"OP_CLUSTER_PAUSE_RECOVERY", "OP_CLUSTER_PLAN_RECOVERY", "OP_NODE_FENCE"}


def test_there_are_76_opcodes_and_ours_and_8_lock_everything() -> None:
    opcodes = registry.all_opcodes()
    ours = [
        op_id
        for op_id in opcodes
        if op_id.startswith(("OP_DISK_", "OP_IMAGE_", "OP_NOTIFICATION_", "OP_SNAPSHOT_"))
    ]
    new = RESERVATIONS | PLACEMENT | RECOVERY | BACKUPS
    assert opcodes.keys() >= new
    opcodes = {key: opcodes[key] for key in opcodes.keys() - new}
    assert (len(ours), len(opcodes) - len(ours)) == (18, 76)
    assert sum(cls.exclusive_bgl for cls in opcodes.values()) == 8
