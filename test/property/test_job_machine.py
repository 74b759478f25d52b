"""The life of a job: every order of events, told by what must always be true of a job."""

from __future__ import annotations

import copy
import json
import re
from collections import deque
from itertools import count

import pytest
from examples import examples
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ganeti import errors
from ganeti.base import jsonio
from ganeti.jobs import machine as m
from ganeti.jobs.machine import Effect, Machine
from ganeti.model import job as job_model
from ganeti.model.job import JobRecord, OpRecord
from ganeti.model.job_status import JobStatus

ERROR = ["OpExecError", ["it broke"]]
CANCELED = ["JobCanceled", ["somebody said so"]]

#: What may happen to a job, by the status of the opcode it is at. Everything else is refused.
POSSIBLE = {
    "queued": {
        "Submitted",
        "Picked",
        "OpFailed",
        "Rejected",
        "CancelAsked",
        "PriorityChanged",
        "Restarted",
    },
    "waiting": {
        "LocksHeld",
        "Logged",
        "OpFailed",
        "CancelAsked",
        "PriorityChanged",
        "Restarted",
    },
    "running": {"Logged", "OpDone", "OpFailed", "CancelAsked", "PriorityChanged", "Restarted"},
    "canceling": {"Logged", "OpDone", "OpFailed", "CancelAsked", "CancelDone", "Restarted"},
    "canceled": set(),
    "error": set(),
    "success": set(),
}
EVENTS = sorted(set().union(*POSSIBLE.values()))

#: Done opcodes, then the one the job is at, then those that wait for their turn; or the end.
SHAPE = re.compile(r"s*([qwrc]q*|e+|x+)?")
LETTER = {
    "queued": "q",
    "waiting": "w",
    "running": "r",
    "canceling": "c",
    "canceled": "x",
    "success": "s",
    "error": "e",
}


def event(name: str, at: int, priority: int = 0) -> m.Event:
    stamp = [1000 + at, 5]
    more: dict[str, tuple[object, ...]] = {
        "OpDone": ({"n": at},),
        "OpFailed": (ERROR,),
        "Rejected": (CANCELED,),
        "Logged": ("message", f"line {at}"),
        "PriorityChanged": (priority,),
    }
    return getattr(m, name)(stamp, *more.get(name, ()))


def new_job(opcodes: int) -> JobRecord:
    ops = [OpRecord(input={"OP_ID": "OP_TEST_DUMMY", "priority": 0}) for _ in range(opcodes)]
    return JobRecord(id=17, ops=ops)


def shape(job: JobRecord) -> str:
    return "".join(LETTER[op.status] for op in job.ops)


def state(job: JobRecord) -> tuple[str, int]:
    """What decides what may come: the shape, and how many opcodes have begun."""
    return shape(job), sum(op.exec_timestamp is not None for op in job.ops)


def check(job: JobRecord) -> None:
    """What is true of every job at any time."""
    assert SHAPE.fullmatch(shape(job)), shape(job)
    current = job.current()
    ended = current is None
    assert ended == (job.status in ("success", "error", "canceled"))
    assert (job.end_timestamp is not None) == (ended and job.received_timestamp is not None)
    for index, op in enumerate(job.ops):
        over = op.status in ("success", "error", "canceled")
        assert (op.end_timestamp is not None) == over
        times = [t for t in (op.start_timestamp, op.exec_timestamp, op.end_timestamp) if t]
        assert times == sorted(times)
        if op.status == "error":
            assert op.result[0] == "OpExecError"
        if current is not None and index > current:
            assert op == OpRecord(input=op.input, priority=op.priority)
    serials = [entry[0] for op in job.ops for entry in op.log]
    assert serials == list(range(1, len(serials) + 1))
    assert job_model.from_wire(jsonio.loads(jsonio.dumps(job_model.to_wire(job)))) == job


def check_step(before: JobRecord, name: str, after: JobRecord, effect: Effect) -> None:
    """What is true of every step."""
    for old, new in zip(before.ops, after.ops):
        if old.status in ("success", "error", "canceled"):
            assert new == old  # what is done stays as it was
        assert new.log[: len(old.log)] == old.log
        assert new.input == old.input
    ended = before.current() is not None and after.current() is None
    if name != "Submitted":
        assert (Effect.FINALIZED in effect) == ended
    promised = name in ("Submitted", "CancelAsked", "PriorityChanged") and before != after
    if ended or (promised and before.status != "running"):
        assert Effect.PERSIST in effect  # the client will be told that it is done
    if shape(before) != shape(after) and name != "Restarted":
        assert Effect.NOTIFY in effect
    if after.status == "running" and before.status != "running":
        assert Effect.PERSIST in effect  # a restart must know that it may have changed something
    if Effect.ENQUEUE in effect:
        current = after.current()
        assert current is not None
        assert after.ops[current].status == "queued"
    assert (Effect.CANCEL_LOCKS in effect) == (
        before.status == "waiting" and after.status == "canceling"
    )


def test_every_order_of_events():
    """All states that can be reached with up to three opcodes, and all events in each."""
    steps = 0
    for opcodes in (1, 2, 3):
        job = new_job(opcodes)
        Machine(job).feed(event("Submitted", 0))
        todo, seen = deque([job]), {state(job)}
        while todo:
            before = todo.popleft()
            check(before)
            current = before.current()
            status = before.status if current is None else before.ops[current].status
            for name in EVENTS:
                after = copy.deepcopy(before)
                machine = Machine(after)
                steps += 1
                if name not in POSSIBLE[status] and (status, name) != ("success", "Submitted"):
                    with pytest.raises(errors.ProgrammerError, match=f"job 17: {name} cannot"):
                        machine.feed(event(name, steps))
                    assert after == before
                    continue
                effect = machine.feed(event(name, steps, priority=-7))
                if name == "Submitted":
                    continue
                check(after)
                check_step(before, name, after, effect)
                if state(after) not in seen:
                    seen.add(state(after))
                    todo.append(after)
        shapes = {one for one, _begun in seen}
        assert {"s" * opcodes, "e" * opcodes, "x" * opcodes} <= shapes
    assert steps > 300


def test_the_story_of_a_refused_event_is_told():
    machine = Machine(new_job(1))
    for name in ("Submitted", "Picked", "LocksHeld"):
        machine.feed(event(name, 1))
    with pytest.raises(errors.ProgrammerError, match="CancelDone cannot happen in state running"):
        machine.feed(event("CancelDone", 2))
    with pytest.raises(errors.ProgrammerError, match=r"queued\+Picked, waiting\+LocksHeld"):
        machine.feed(event("Picked", 3))


def test_a_job_without_opcodes_has_ended():
    job = new_job(0)
    effect = Machine(job).feed(event("Submitted", 1))
    assert Effect.FINALIZED in effect
    assert Effect.PERSIST in effect
    assert Effect.ENQUEUE not in effect
    assert job.finalized
    assert job.end_timestamp == [1001, 5]


def test_a_failure_reaches_the_following_opcodes_only():
    job = new_job(3)
    machine = Machine(job)
    for name in ("Submitted", "Picked", "LocksHeld", "OpDone", "Picked", "LocksHeld", "OpFailed"):
        machine.feed(event(name, 1))
    assert [str(op.status) for op in job.ops] == ["success", "error", "error"]
    assert job.ops[1].result == ERROR
    assert "opcode 1 of this job failed" in job.ops[2].result[1][0]
    assert job.status is JobStatus.ERROR


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "queued"),
        (["Picked"], "queued"),
        (["Picked", "LocksHeld"], "error"),
        (["Picked", "CancelAsked"], "canceled"),
        (["Picked", "LocksHeld", "OpDone"], "queued"),
        (["Picked", "LocksHeld", "CancelAsked"], "error"),
    ],
)
def test_a_restart_is_honest(events, status):
    """What may have been half done is an error, what had not begun continues."""
    job = new_job(2)
    machine = Machine(job)
    for name in ["Submitted", *events]:
        machine.feed(event(name, 1))
    reread = job_model.from_wire(json.loads(jsonio.dumps(job_model.to_wire(job))))
    effect = Machine(reread).feed(event("Restarted", 2))
    assert reread.status == status
    assert (Effect.ENQUEUE in effect) == (status == "queued")
    check(reread)


RUNNING = ("Submitted", "Picked", "LocksHeld")


@pytest.mark.parametrize(
    ("end", "statuses", "result"),
    [
        (m.OpFailed([9, 0], CANCELED), ["canceled", "canceled"], CANCELED),
        (m.OpFailed([9, 0], ERROR), ["error", "error"], ERROR),
        (m.OpDone([9, 0], "quick"), ["success", "canceled"], "quick"),
    ],
)
def test_a_running_job_that_is_asked_to_end(end, statuses, result):
    """What became of its opcode is told as it was, and nothing more of the job is begun."""
    job = new_job(2)
    machine = Machine(job)
    for name in (*RUNNING, "CancelAsked"):
        machine.feed(event(name, 1))
    effect = machine.feed(end)
    assert [str(op.status) for op in job.ops] == statuses
    assert job.ops[0].result == result
    assert Effect.FINALIZED in effect
    assert Effect.ENQUEUE not in effect


@examples(
    50,
    stateful_step_count=60,
    database=None,
    suppress_health_check=list(HealthCheck),
)
class JobLife(RuleBasedStateMachine):
    """Random lives, with the job read back from its file in between."""

    @initialize(opcodes=st.integers(1, 4))
    def submit(self, opcodes):
        self.clock = count(1)
        self.job = new_job(opcodes)
        self.machine = Machine(self.job)
        self.machine.feed(event("Submitted", 0))

    @rule(
        name=st.sampled_from([n for n in EVENTS if n != "Submitted"]), priority=st.integers(-20, 19)
    )
    def happen(self, name, priority):
        before = copy.deepcopy(self.job)
        current = before.current()
        status = before.status if current is None else before.ops[current].status
        if name not in POSSIBLE[status]:
            with pytest.raises(errors.ProgrammerError):
                self.machine.feed(event(name, next(self.clock)))
            assert self.job == before
            return
        effect = self.machine.feed(event(name, next(self.clock), priority))
        check_step(before, name, self.job, effect)
        if name == "PriorityChanged":
            for op, old in zip(self.job.ops, before.ops):
                over = old.status in ("success", "error", "canceled")
                assert op.priority == (old.priority if over else priority)
            assert self.job.priority == priority

    @rule()
    def reread(self):
        self.job = job_model.from_wire(jsonio.loads(jsonio.dumps(job_model.to_wire(self.job))))
        self.machine = Machine(self.job)

    @rule()
    def go_on(self):
        """The usual way forward, so that long jobs reach their end."""
        usual = {
            "queued": "Picked",
            "waiting": "LocksHeld",
            "running": "OpDone",
            "canceling": "CancelDone",
        }
        current = self.job.current()
        if current is not None:
            self.happen(usual[self.job.ops[current].status], 0)

    @invariant()
    def check_job(self):
        if hasattr(self, "job"):
            check(self.job)


TestJobLife = JobLife.TestCase
