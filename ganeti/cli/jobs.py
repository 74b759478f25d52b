"""Submit jobs, wait for them, show what they say.

Results and job logs go to standard output, everything else to standard error. Ctrl-C while
waiting does not touch the job: the command says how to watch it and ends with exit code 130.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ganeti import errors
from ganeti.base.clock import nanoseconds
from ganeti.base.json_types import JsonObject
from ganeti.base.record import Record
from ganeti.cli import failures, notices
from ganeti.cli.command import Call
from ganeti.cli.failures import Exit
from ganeti.cli.options import PRIORITIES
from ganeti.luxi.client import Client, LogEntry
from ganeti.model.job_status import JOBS_FINALIZED

if TYPE_CHECKING:
    from ganeti.opcodes.base import OpCode

#: Seconds of one wait for news of a job; only how often a connection is used.
WAIT_SECONDS = 60
#: Exit code after Ctrl-C while waiting (128 and the number of SIGINT, as shells have it).
EXIT_DETACHED = 130

_STATES = {
    "queued": "is in the queue",
    "waiting": "waits for locks",
    "canceling": "is being canceled",
    "running": "is running",
}

WireOp = JsonObject
Feedback = Callable[[LogEntry], None]


def build(call: Call, op_id: str, **params: object) -> WireOp:
    """The wire form of an opcode with the parameters that are not None.

    Priority, dry run, debug level and reason come from the options of the command.

    Raises:
        OpPrereqError: wrong_input, naming the parameter that cannot be used.
    """
    from ganeti.opcodes import wire

    return wire.to_wire(_make(call, op_id, params))


def _make(call: Call, op_id: str, params: JsonObject) -> OpCode:
    from ganeti.opcodes import registry, wire

    raw = {key: value for key, value in params.items() if value is not None}
    return wire.decode(registry.find(op_id), raw | _common(call))


def _common(call: Call) -> WireOp:
    opts = call.opts
    result: WireOp = {"reason": reason_trail(call), "debug_level": opts.debug}
    if getattr(opts, "dry_run", False):
        result["dry_run"] = True
    if getattr(opts, "priority", None) is not None:
        result["priority"] = PRIORITIES[opts.priority]
    return result


def reason_trail(call: Call) -> list[list[object]]:
    """The reason of a job: the text of ``--reason`` if there is one, then program and command."""
    now = nanoseconds(call.clock.now())
    trail: list[list[object]] = []
    if call.opts.reason:
        trail.append(["gnt:user", call.opts.reason, now])
    return [*trail, [f"gnt:client:{call.program}", call.command, now]]


def build_own(call: Call, **changes: object) -> WireOp:
    """Like :func:`build` for the opcode of the command: its arguments and options, and changes."""
    return build(call, call.spec.op, **{**call.spec.parameters(call), **changes})


def run(call: Call, **changes: object) -> Any:
    """Like :func:`run_op` for the opcode of the command: its arguments and options, and changes."""
    return run_ops(call, [build_own(call, **changes)])[0]


def build_changes(call: Call, **more: object) -> WireOp:
    """Like :func:`build_own` for an opcode that changes settings.

    Raises:
        OpPrereqError: nothing is to change.
    """
    from ganeti.opcodes import base, wire

    op = _make(call, call.spec.op, {**call.spec.parameters(call), **more})
    if not base.changes(op):
        raise errors.make_invalid_error("Nothing to change: give at least one option")
    return wire.to_wire(op)


def run_changes(call: Call, **more: object) -> object:
    """Like :func:`run` for an opcode that changes settings; see :func:`build_changes`."""
    return run_ops(call, [build_changes(call, **more)])[0]


def run_op(call: Call, op_id: str, **params: object) -> Any:
    """Submit one opcode as a job, wait for it and return its result.

    With ``--submit`` the command ends here with success.

    Raises:
        GanetiError: why the job was refused, or why it failed.
    """
    return run_ops(call, [build(call, op_id, **params)])[0]


def run_for_result(call: Call, op_id: str, **params: object) -> Any:
    """Like :func:`run_op` for a command that prints the result: the log goes to stderr."""
    return run_ops(call, [build(call, op_id, **params)], feedback=report_entry)[0]


def run_ops(call: Call, ops: Sequence[WireOp], *, feedback: Feedback | None = None) -> list[Any]:
    """Like :func:`run_op` for one job of several opcodes; the result of each."""
    job_id = call.client.submit_job(ops)
    if getattr(call.opts, "print_jobid", False):
        print(job_id, flush=True)
    if getattr(call.opts, "submit_only", False):
        _say_submitted(job_id)
        raise Exit(0)
    return wait(call.client, job_id, feedback=feedback)


def wait(
    client: Client, job_id: int, *, quiet: bool = False, feedback: Feedback | None = None
) -> list[Any]:
    """Wait until a job has ended, showing its log; the results of its opcodes.

    Raises:
        GanetiError: the error of the opcode that failed.
        JobCanceled: the job was canceled.
        JobLost: there is no such job.
        Exit: Ctrl-C was pressed; the job continues.
    """
    try:
        _follow(client, job_id, _ignore if quiet else feedback or show_entry)
    except KeyboardInterrupt:
        notices.StatusLine.clear_current()
        notices.say(f"Detached; job {job_id} continues. Watch it with: gnt-job watch {job_id}")
        raise Exit(EXIT_DETACHED) from None
    except errors.LuxiError:
        notices.say(
            f"Connection to the master lost. Job {job_id} may have failed;"
            f" see gnt-job info {job_id}."
        )
        raise
    return _results(client, job_id)


def _follow(client: Client, job_id: int, feedback: Feedback) -> None:
    """Report the log of a job until it has ended."""
    line = notices.StatusLine()
    values: list[object] | None = None
    serial: int | None = None
    try:
        while True:
            try:
                change = client.wait_for_job_change(
                    job_id, ["status"], values, serial, WAIT_SECONDS
                )
            except errors.JobLost:
                if _replay_archived(client, job_id, serial, feedback):
                    return
                raise
            if change is None:
                continue
            values = change.values
            for entry in change.log:
                line.clear()
                feedback(entry)
                serial = max(serial or 0, entry[0])
            status = str(values[0]) if values else ""
            if status in JOBS_FINALIZED:
                return
            line.show(f"Job {job_id} {_STATES.get(status, status)} ...")
    finally:
        line.clear()


def _replay_archived(client: Client, job_id: int, serial: int | None, feedback: Feedback) -> bool:
    """Report the rest of the log of an archived job; False when there is no such job."""
    rows = client.query_jobs([job_id], ["status", "oplog", "archived"])
    if not rows or rows[0][0] is None:
        return False
    for entry in (entry for log in rows[0][1] or () for entry in log):
        if entry[0] > (serial or 0):
            feedback(entry)
    return True


def _ignore(_entry: LogEntry) -> None:
    """Feedback for those who only want to know when it is over."""


def show_entry(entry: LogEntry) -> None:
    """Print one log entry: local time in the form of ctime(3), then the message."""
    for line in _lines(entry):
        print(line, flush=True)


def report_entry(entry: LogEntry) -> None:
    """Like :func:`show_entry`, on stderr."""
    for line in _lines(entry):
        notices.say(line)


def _lines(entry: LogEntry) -> list[str]:
    _serial, when, kind, message = entry[:4]
    moment = time.ctime(when[0] + when[1] / 1_000_000)
    if not isinstance(message, str | list):
        return []  # data for programs, such as where another cluster shall send disks
    texts = message if kind == "message-list" and isinstance(message, list) else [message]
    return [f"{moment} {text}" for text in texts]


def _results(client: Client, job_id: int) -> list[object]:
    rows = client.query_jobs([job_id], ["status", "opstatus", "opresult", "archived"])
    if not rows or rows[0][0] is None:
        raise errors.JobLost(f"Job with id {job_id} lost")
    status, opstatus, opresult = rows[0][:3]
    if status == "success":
        return list(opresult)
    if status == "canceled":
        reasons = [errors.decode(result) for result in opresult]
        raise next(
            (err for err in reasons if err is not None), errors.JobCanceled("Job was canceled")
        )
    done = 0
    for index, (state, result) in enumerate(zip(opstatus, opresult, strict=True)):
        if state == "success":
            done += 1
        elif state == "error":
            failure = errors.decode(result)
            if failure is not None:
                raise failure
            if done:
                raise errors.OpExecError(f"partial failure (opcode {index}): {result}")
            raise errors.OpExecError(str(result))
    raise errors.OpExecError(f"Job {job_id} failed without a reason")


# several jobs


class Outcome(Record):
    """How one of several jobs ended: the result of its first opcode, or the failure as text."""

    name: str
    ok: bool
    result: Any


class Task(Record):
    """One of several jobs: a name for people, its id, or why it was not taken."""

    name: str
    job_id: int | None
    error: str = ""

    @property
    def for_name(self) -> str:
        return f" for {self.name}" if self.name else ""


def run_many(call: Call, work: Sequence[tuple[str, WireOp]], *, announce: bool) -> list[Outcome]:
    """One job for each opcode; waits for all of them.

    ``announce`` prints the ids first. With ``--submit`` they are printed with their names and
    the command ends, with a failure if one was refused.
    """
    submitted = call.client.submit_many_jobs([[op] for _, op in work])
    tasks = [
        Task(name, item.job_id, item.error) for (name, _), item in zip(work, submitted, strict=True)
    ]
    if getattr(call.opts, "print_jobid", False):
        for task in tasks:
            if task.job_id is not None:
                print(task.job_id, flush=True)
    if getattr(call.opts, "submit_only", False):
        raise Exit(_list_submitted(tasks))
    return wait_many(call, tasks, announce=announce)


def children(result: object, name: str = "") -> list[Task]:
    """Jobs that an opcode submitted (``{"jobs": [[ok, id or text]]}``)."""
    jobs = result.get("jobs", []) if isinstance(result, dict) else []
    return [Task(name, int(value)) if ok else Task(name, None, str(value)) for ok, value in jobs]


def _say_submitted(job_id: int, name: str = "") -> None:
    """The line of ``--submit``, the same for every job."""
    notices.say(f"JobID: {job_id}{f' ({name})' if name else ''}")


def _list_submitted(tasks: Iterable[Task]) -> int:
    """Say the ids; scripts also find ``id: name`` on standard output, as Ganeti has it."""
    code = 0
    for task in tasks:
        if task.job_id is None:
            notices.say(f"Failure for {task.name}: {task.error}")
            code = 1
        else:
            _say_submitted(task.job_id, task.name)
            if not sys.stdout.isatty():
                print(f"{task.job_id}: {task.name}")
    return code


def wait_many(
    call: Call,
    tasks: Sequence[Task],
    *,
    announce: bool,
    feedback: Feedback | None = None,
    quiet: bool = False,
) -> list[Outcome]:
    """Wait for several jobs, one after the other, showing the log of each.

    Failures are told on standard error as they are found and do not end the wait. With ``quiet``
    it is not told which job is waited for.
    """
    waiting = [task for task in tasks if task.job_id is not None]
    if announce and waiting:
        print(f"Submitted jobs {', '.join(str(task.job_id) for task in waiting)}", flush=True)
    outcomes = []
    for task in tasks:
        if task.job_id is None:
            notices.say(f"Failed to submit job{task.for_name}: {task.error}")
            outcomes.append(Outcome(task.name, False, task.error))
        else:
            if not quiet:
                print(f"Waiting for job {task.job_id}{task.for_name} ...", flush=True)
            outcomes.append(_wait_one(call.client, task, task.job_id, waiting, feedback))
    return outcomes


def _wait_one(
    client: Client,
    task: Task,
    job_id: int,
    all_tasks: Sequence[Task],
    feedback: Feedback | None,
) -> Outcome:
    try:
        results = wait(client, job_id, feedback=feedback)
    except Exit:
        others = [str(other.job_id) for other in all_tasks if other.job_id != job_id]
        if others:
            notices.say(f"The other jobs continue: {', '.join(others)}")
        raise
    except errors.JobLost:
        notices.say(f"Job {job_id}{task.for_name} has been archived, its result cannot be checked")
        return Outcome(task.name, False, "archived")
    except errors.LuxiError:
        raise
    except errors.GanetiError as err:
        text = "\n".join(failures.lines(err))
        notices.say(f"Job {job_id}{task.for_name} has failed: {text}")
        return Outcome(task.name, False, text)
    return Outcome(task.name, True, results[0] if results else None)


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """0 when all went well, else 1."""
    return 0 if all(outcome.ok for outcome in outcomes) else 1
