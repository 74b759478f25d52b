"""Jobs that move instances off their nodes, as an allocator plans them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.base import OpCode
from ganeti.ops.allocator.answers import Moves
from ganeti.ops.operation import Context


@dataclass(frozen=True)
class Departure:
    """The job that moves an instance away."""

    instance: str
    #: its new place, for people: nodes, a group, or the program that chooses
    to: str
    #: one job
    steps: list[OpCode]

    def describe(self) -> JsonObject:
        """For the result of a dry run."""
        names = [step.op_id.removeprefix("OP_INSTANCE_") for step in self.steps]
        commands = [name.lower().replace("_", "-") for name in names]
        return {"instance": self.instance, "operations": commands, "to": self.to}


def departures(moves: Moves) -> list[Departure]:
    """The plan of an allocator, a job for each entry.

    Raises:
        OpExecError: some instances have no place.
    """
    if moves.failed:
        texts = [f"{name} ({reason or 'no reason given'})" for name, reason in moves.failed]
        raise errors.OpExecError(f"no place was found for {', '.join(texts)}")
    goals = {
        name: f"node(s) {', '.join(nodes)}" if nodes else f"group {group}"
        for name, group, nodes in moves.moved
    }
    found: list[Departure] = []
    for job in moves.jobs:
        names = ", ".join(dict.fromkeys(str(getattr(step, "instance_name", "")) for step in job))
        found.append(Departure(names, goals.get(names, "where the allocator says"), job))
    return found


def submit(
    ctx: Context, op: OpCode, planned: list[Departure], *, early_release: bool = False
) -> JsonObject:
    """Submit the planned jobs; ``{"jobs": [[true, id]]}``."""
    for item in planned:
        ctx.log(f"Moving {item.instance} to {item.to}")
    jobs = [item.steps for item in planned]
    done = submit_all(ctx, op, jobs, early_release=early_release)
    ids = [job_id for _accepted, job_id in done["jobs"]]
    ctx.boards.hand_over(ctx.job.job_id, dict(zip((item.instance for item in planned), ids)))
    return done


def submit_all(
    ctx: Context, op: OpCode, jobs: list[list[OpCode]], *, early_release: bool = False
) -> JsonObject:
    """Submit jobs with the priority and the reason of the operation that makes them."""
    finished = [
        [_adopt_attributes(step, op, early_release=early_release) for step in job] for job in jobs
    ]
    ids = ctx.job.submit(finished) if finished else []
    return {"jobs": [[True, job_id] for job_id in ids]}


def _adopt_attributes(step: OpCode, op: OpCode, *, early_release: bool) -> OpCode:
    values: JsonObject = {"priority": op.priority, "reason": [*op.reason, *step.reason]}
    if "early_release" in step.__struct_fields__:
        values["early_release"] = early_release
    return msgspec.structs.replace(step, **values)
