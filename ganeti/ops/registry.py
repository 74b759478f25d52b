"""Opcode -> operation, by name only.

``OP_INSTANCE_CREATE`` is ``InstanceCreate`` in ``ganeti/ops/instance/create.py``: adding an
operation needs no table. An opcode of one word (``OP_QUERY``) has its word as verb too.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import Any

from ganeti import errors
from ganeti.ops.operation import Operation


def module_name(op_id: str) -> str:
    """``ganeti.ops.<family>.<verb>`` of an OP_ID."""
    family, _, verb = op_id.removeprefix("OP_").lower().partition("_")
    return f"ganeti.ops.{family}.{verb or family}"


def class_name(op_id: str) -> str:
    return "".join(word.capitalize() for word in op_id.removeprefix("OP_").split("_"))


@cache
def is_built(op_id: str) -> bool:
    """Whether this version has an operation for the opcode (imports nothing but its package)."""
    try:
        return importlib.util.find_spec(module_name(op_id)) is not None
    except ModuleNotFoundError:
        return False


@cache
def find(op_id: str) -> type[Operation[Any, object]]:
    """The operation of an opcode.

    Raises:
        OpNotBuiltError: there is none.
    """
    if not is_built(op_id):
        raise errors.OpNotBuiltError(
            f"{op_id} is a known opcode, but this version cannot run it yet",
            errors.ErrorCode.INVAL,
        )
    module = importlib.import_module(module_name(op_id))
    found: type[Operation[Any, object]] = getattr(module, class_name(op_id))
    return found
