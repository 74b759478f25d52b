"""gnt-debug: check that jobs of a running cluster wait, run and end as they should."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

from ganeti import errors
from ganeti.cli import jobs
from ganeti.cli import options as o
from ganeti.cli.command import Call
from ganeti.cli.programs import DEBUG

#: Seconds that anything may take here.
_PATIENCE = 120.0
_FINAL = ("success", "error", "canceled")


@DEBUG.command("test-jobqueue", options=(o.PRIORITY,))
def test_jobqueue(call: Call) -> None:
    """Submit small jobs and check how they wait, run and end.

    They change nothing and take a few seconds, when the queue is not drained and has room.
    """
    for title, check in _CHECKS.items():
        print(f"{title} ...", flush=True)
        check(call)
    print("All tests passed")


def _expect(what: str, wanted: object, found: object) -> None:
    if found != wanted:
        raise errors.OpExecError(f"{what}: expected {wanted}, found {found}")


def _delay(call: Call, seconds: float = 0.0, **more: object) -> jobs.WireOp:
    return jobs.build(call, "OP_TEST_DELAY", duration=seconds, **more)


def _end(call: Call, job_id: int) -> str:
    """Wait for the end of a job; its status."""
    return _follow(call, job_id, lambda _entry: None)


def _follow(call: Call, job_id: int, show: Callable[[list[object]], None]) -> str:
    """Report each log entry of a job until it has ended; its status."""
    values: list[object] | None = None
    serial = 0
    end = call.clock.monotonic() + _PATIENCE
    while call.clock.monotonic() < end:
        change = call.client.wait_for_job_change(job_id, ["status"], values, serial, 10)
        if change is None:
            continue
        values = change.values
        for entry in change.log:
            serial = entry[0]
            show(entry)
        if values[0] in _FINAL:
            return str(values[0])
    raise errors.OpExecError(f"Job {job_id} has not ended after {_PATIENCE:g} s")


def _statuses(call: Call, job_id: int) -> tuple[str, list[str]]:
    [[status, each]] = call.client.query_jobs([job_id], ["status", "opstatus"])
    return str(status), list(each)


# checks ------------------------------------------------------------------------------------------


def _submission(call: Call) -> None:
    """One job, many, and one that must be refused."""
    one = call.client.submit_job([_delay(call), _delay(call)])
    _expect("a job of two opcodes", "success", _end(call, one))
    many = call.client.submit_many_jobs([[_delay(call)] for _ in range(5)])
    ends = [_end(call, item.job_id) for item in many if item.job_id is not None]
    _expect("five jobs at once", ["success"] * 5, ends)
    try:
        found: object = call.client.submit_job([{"OP_ID": "OP_NO_SUCH"}])
    except errors.RequestError:
        found = None
    _expect("an unknown opcode", None, found)


def _dependencies(call: Call) -> None:
    """A job waits for others, and fails when they end in another way than it needs."""
    submitted = call.client.submit_many_jobs(
        [
            [_delay(call, 0.2)],
            [_delay(call, depends=[[-1, ["success"]]])],
            [_delay(call, depends=[[-2, ["error"]]])],
            [_delay(call, depends=[[-3, []], [-2, []]])],
        ]
    )
    ends = [_end(call, item.job_id or 0) for item in submitted]
    _expect("jobs with dependencies", ["success", "success", "error", "success"], ends)


def _check_waiting_job(call: Call) -> None:
    """A job that waits can get another priority and can be canceled; a running delay, too."""
    long = call.client.submit_job([_delay(call, _PATIENCE)])
    waits = call.client.submit_job([_delay(call, depends=[[long, []]])])
    try:
        done, text = call.client.change_job_priority(waits, 7)
        _expect(f"another priority ({text})", True, done)
        [[priority]] = call.client.query_jobs([waits], ["priority"])
        _expect("the priority", 7, priority)
        done, text = call.client.cancel_job(waits)
        _expect(f"cancel of a waiting job ({text})", True, done)
        _expect("a canceled job", "canceled", _end(call, waits))
    finally:
        call.client.cancel_job(long)
    _expect("a canceled delay", "canceled", _end(call, long))


def _places(call: Call, op: jobs.WireOp, then: Sequence[jobs.WireOp] = ()) -> Any:
    """Run a job that stops at places: what was seen at each, its messages and its end."""
    job_id = call.client.submit_job([op, *then])
    seen: list[tuple[str, str]] = []
    texts: list[str] = []

    def keep_text(entry: list[Any]) -> None:
        _serial, _time, kind, message = entry
        if kind != "jqueue-test":
            texts.append(str(message))
            return
        path, place, _argument = message
        seen.append((str(place), _statuses(call, job_id)[0]))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(path)

    end = _follow(call, job_id, keep_text)
    return seen, texts, end, _statuses(call, job_id)[1]


def _life(call: Call) -> None:
    """The status of a job at known places, and the order of its messages."""
    messages = [f"message {number}" for number in range(4)]
    op = jobs.build(
        call, "OP_TEST_JQUEUE", notify_waitlock=True, notify_exec=True, log_messages=messages
    )
    seen, texts, end, _each = _places(call, op)
    running = ["exec", "startmsg", *["logmsg"] * len(messages)]
    wanted = [("expandnames", "waiting"), *((place, "running") for place in running)]
    _expect("the status at each place", wanted, seen)
    _expect("the messages", [f"TESTMSG={text}" for text in messages], texts)
    _expect("the job", "success", end)


def _failure(call: Call) -> None:
    """An opcode that fails ends its job; those behind it are not run."""
    op = jobs.build(call, "OP_TEST_JQUEUE", notify_exec=True, fail=True)
    seen, _texts, end, each = _places(call, op, [_delay(call)])
    _expect("the status at each place", [("exec", "running")], seen)
    _expect("the job", "error", end)
    _expect("its opcodes", ["error", "error"], each)


_CHECKS: dict[str, Callable[[Call], None]] = {
    "Submission": _submission,
    "Dependencies": _dependencies,
    "Waiting jobs": _check_waiting_job,
    "Status and messages of a running job": _life,
    "Failures": _failure,
}
