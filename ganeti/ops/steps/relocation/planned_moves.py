"""Jobs that carry out a plan, a job for each move.

Each job begins with a check of its move against the cluster as it is then. Moves that share a node
wait for each other, so a node takes part in one at a time; others run side by side, up to a limit.
Everything is in the jobs, so a plan continues after a failover of the master.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import FinalStatus, ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.opcodes.instance_move import OpInstanceFailover, OpInstanceMigrate
from ganeti.opcodes.placement import OpInstanceCheckMove
from ganeti.opcodes.values import JobDep
from ganeti.ops.operation import Context
from ganeti.ops.steps.nodes import departures
from ganeti.placement.agenda import Entry
from ganeti.placement.relocate import Step, Verb


@dataclass(frozen=True)
class Manner:
    """How moves are carried out."""

    allow_failover: bool
    #: how many run at the same time
    max_parallel: int
    #: by group or plan: the nodes that must be there until the last move
    present: tuple[str, ...] = ()
    #: a move waits for the success of those before it, and for a better balance
    strict: bool = False


def submit(
    ctx: Context,
    op: OpCode,
    plans: Sequence[tuple[Sequence[Entry], Manner]],
    first: Sequence[list[OpCode]] = (),
) -> list[int]:
    """Submit the moves of plans; the id of the job of each, in their order.

    All moves wait for the success of the jobs ``first``, whose ids are before theirs.
    """
    jobs: list[list[OpCode]] = list(first)
    for entries, manner in plans:
        for number, entry in enumerate(entries):
            before = [
                JobDep(other - len(jobs), [FinalStatus.SUCCESS]) for other in range(len(first))
            ]
            jobs.append(_job(ctx, entry, number, manner, before))
    done = departures.submit_all(ctx, op, jobs)
    return [job_id for _ok, job_id in done["jobs"]]


def _job(
    ctx: Context, entry: Entry, number: int, manner: Manner, before: list[JobDep]
) -> list[OpCode]:
    ends = [FinalStatus.SUCCESS] if manner.strict else []
    before = before + [JobDep(other - number, ends) for other in entry.waits_for]
    check = OpInstanceCheckMove(
        instance_name=entry.instance,
        from_nodes=list(entry.before),
        to_nodes=list(entry.after),
        present=list(manner.present),
        must_gain=manner.strict,
        depends=before or None,
        reason=[_limit(ctx, manner)],
    )
    return [check, *(_opcode(entry, step, manner) for step in entry.steps)]


def _limit(ctx: Context, manner: Manner) -> tuple[str, str, int]:
    """An entry of the reason that lets only so many of these jobs run at a time."""
    text = f"rate-limit:{manner.max_parallel}:moves of job {ctx.job.job_id}"
    return ("gnt:opcode:placement", text, int(ctx.clock.now() * 1e9))


def _opcode(entry: Entry, step: Step, manner: Manner) -> OpCode:
    name, node = entry.instance, step.node or None
    if step.verb is Verb.REPLACE_SECONDARY:
        return OpInstanceReplaceDisks(
            instance_name=name, disks=[], mode=ReplaceDisksMode.NEW_SECONDARY, remote_node=node
        )
    if _verb(entry, step) is Verb.FAILOVER:
        return OpInstanceFailover(instance_name=name, target_node=node)
    return OpInstanceMigrate(
        instance_name=name,
        target_node=node,
        allow_failover=manner.allow_failover,
        allow_runtime_changes=False,
    )


def describe(entry: Entry, job_id: int | None = None, *, explain: bool = False) -> JsonObject:
    """A move in the result of an operation; ``explain``: with its reasons."""
    found: JsonObject = {
        "instance": entry.instance,
        "from": list(entry.before),
        "to": list(entry.after),
        "steps": [f"{_verb(entry, step)} {step.node}".rstrip() for step in entry.steps],
        "gain": round(entry.gain, 8),
        "score": round(entry.score, 8),
        "copied": entry.copied,
        "after": list(entry.waits_for),
        "job": job_id,
    }
    return found | {"reasons": list(entry.reasons)} if explain else found


def _verb(entry: Entry, step: Step) -> Verb:
    stopped = step.verb is Verb.MIGRATE and not entry.runs
    return Verb.FAILOVER if stopped else step.verb
