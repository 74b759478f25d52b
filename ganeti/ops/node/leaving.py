"""Jobs that bring instances away from where they are, as an allocator plans them."""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti import errors
from ganeti.opcodes.base import OpCode
from ganeti.ops.allocator.answers import Moves
from ganeti.ops.operation import Context


def submit(ctx: Context, op: OpCode, moves: Moves, *, early_release: bool) -> dict[str, Any]:
    """Submit the planned jobs; ``{"jobs": [[true, id]]}``.

    Raises:
        OpExecError: some instances have no place; then no job is submitted at all.
    """
    if moves.failed:
        texts = [f"{name} ({why or 'no reason given'})" for name, why in moves.failed]
        raise errors.OpExecError(f"no place was found for {', '.join(texts)}")
    for name, group, nodes in moves.moved:
        where = f"node(s) {', '.join(nodes)}" if nodes else f"group {group}"
        ctx.log(f"Moving {name} to {where}")
    return submit_all(ctx, op, moves.jobs, early_release=early_release)


def submit_all(
    ctx: Context, op: OpCode, jobs: list[list[OpCode]], *, early_release: bool = False
) -> dict[str, Any]:
    """Submit jobs with the priority and the reason of the operation that makes them."""
    finished = [[_own(step, op, early_release=early_release) for step in job] for job in jobs]
    ids = ctx.job.submit(finished) if finished else []
    return {"jobs": [[True, job_id] for job_id in ids]}


def _own(step: OpCode, op: OpCode, *, early_release: bool) -> OpCode:
    values: dict[str, Any] = {"priority": op.priority, "reason": [*op.reason, *step.reason]}
    if "early_release" in step.__struct_fields__:
        values["early_release"] = early_release
    return msgspec.structs.replace(step, **values)
