"""gnt-job: wait for jobs, cancel and archive them, change their priority."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ganeti import errors
from ganeti.base import clock, units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.cli import info, jobs, listing, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, take_many, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.job.show import LIST_FIELDS, job_id
from ganeti.cli.option import switch
from ganeti.cli.options import PRIORITIES
from ganeti.cli.programs import JOB

_AUTO_ARCHIVE_SECONDS = 60

_KILL = switch("--kill", dest="kill", help="End a job that is running; needs --yes-do-it")


@JOB.command("why", take_one("job-id"), options=(o.INFO_FORMAT,))
def explain(call: Call) -> None:
    """Explain why a job waits: for what, who holds it, what would release it."""
    found = call.client.explain_job(job_id(call.args[0]))
    if call.opts.format != "text":
        info.show(call, found)
        return
    output.print_lines([line for job in (found, *found["chain"]) for line in _explain_wait(job)])


def _explain_wait(job: JsonObject) -> list[str]:
    waits = job["waits_for"]
    lines = [_capitalize(job["text"])]
    if waits is not None and waits["release"]:
        lines.append(f"    released by: {waits['release']}")
    if waits is not None and job["step"]:
        lines.append(f"    last message: {job['step']}")
    return lines


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


@JOB.command("logs", take_one("job-id"), options=(o.NODES, o.INFO_FORMAT))
def show_logs(call: Call) -> int:
    """Show what the daemons of all nodes logged about a job.

    Lines of the master daemon and of the node daemons, by time, also of a job that is archived. A
    node that does not answer is named on standard error, and the exit code is 1.
    """
    found = call.client.query_job_log(job_id(call.args[0]), call.opts.nodes)
    if call.opts.format == "text":
        output.print_lines([_log_line(*line) for line in found["lines"]])
    else:
        keys = ("time", "node", "program", "level", "text")
        info.show(call, [dict(zip(keys, line)) for line in found["lines"]])
    for node in found["cut"]:
        notices.say(f"Node {node}: older lines are left out")
    for node, reason in sorted(found["failed"].items()):
        notices.say(f"Node {node} told nothing: {reason}")
    return 1 if found["failed"] else 0


def _log_line(when: float, node: str, program: str, level: str, text: str) -> str:
    """A line; further lines of it are indented."""
    shown = text.replace("\n", "\n    ")
    return f"{output.stamp(clock.split(when))[:-3]} {node} {program} {level} {shown}"


@JOB.command("watch", take_one("job-id"))
def watch(call: Call) -> None:
    """Show the log of a job until it has ended; fails if the job fails."""
    number = job_id(call.args[0])
    call.client.connect()
    head = f"Output from job {number} follows"
    print(f"{head}\n{'-' * len(head)}", flush=True)
    jobs.wait(call.client, number)
    if sys.stdout.isatty():
        notices.say(f"Job {number} has ended: success")


@JOB.command("wait", take_one("job-id"))
def wait(call: Call) -> None:
    """Wait silently until a job has ended; fails if the job fails."""
    number = job_id(call.args[0])
    call.client.connect()
    jobs.wait(call.client, number, quiet=True)


_CHANGE = (o.FORCE, o.PENDING, o.QUEUED, o.WAITING)


@JOB.command(
    "cancel",
    take_many("job-id"),
    options=(*_CHANGE, _KILL, o.YES_DO_IT),
    usage="{--pending|--queued|--waiting | <job-id>...}",
)
def cancel(call: Call) -> int:
    """Cancel jobs that have not begun, and some kinds of running jobs.

    Of those that run, backups and their restore, imports, exports, migrations, fencing of nodes and
    the addition of images can be canceled; others are refused.

    Jobs are named by id, or selected by an option; selected ones are shown and confirmed first.
    """
    kill = call.opts.kill
    if kill and not call.opts.yes_do_it:
        raise errors.make_invalid_error(
            "--kill can leave work half done; add --yes-do-it if this is really wanted",
        )
    return _change_jobs(call, "Cancel", lambda number: call.client.cancel_job(number, kill=kill))


@JOB.command(
    "change-priority",
    take_many("job-id"),
    options=(*_CHANGE, o.PRIORITY),
    usage="--priority <priority> {--pending|--queued|--waiting | <job-id>...}",
)
def change_priority(call: Call) -> int:
    """Change the priority of jobs.

    Jobs are named by id, or selected by an option; selected ones are shown and confirmed first.
    """
    if call.opts.priority is None:
        raise errors.make_invalid_error(
            f"Give the new priority with --priority: {', '.join(PRIORITIES)}",
        )
    priority = PRIORITIES[call.opts.priority]
    return _change_jobs(
        call,
        "Change the priority of",
        lambda number: call.client.change_job_priority(number, priority),
    )


def _change_jobs(call: Call, verb: str, change: Callable[[int], tuple[bool, str]]) -> int:
    code = 0
    for number in _ids(call, verb):
        done, text = change(number)
        print(text, flush=True)
        if not done:
            code = 1
    return code


def _ids(call: Call, verb: str) -> Sequence[int]:
    """Ids of the jobs to act on; ends the command when a question is answered with no."""
    wanted = call.opts.status_filter
    if bool(call.args) == bool(wanted):
        raise errors.make_invalid_error(
            "Give either job ids or one of --pending, --queued and --waiting",
        )
    if not wanted:
        return [job_id(arg) for arg in call.args]
    result = call.client.query("job", LIST_FIELDS, listing.any_of("status", wanted))
    found = [int(row[0][1]) for row in result.data]
    if found and not call.opts.force:
        lines = output.query_table(result, formats={"summary": output.join_items})
        question = f"{verb} {plural(len(found), 'job')}?"
        if not notices.confirm(question, lines, option="-f"):
            raise Exit(1)
    return found


@JOB.command("archive", take_many("job-id", least=1))
def archive(call: Call) -> int:
    """Move ended jobs to the archive."""
    code = 0
    for number in [job_id(arg) for arg in call.args]:
        if not call.client.archive_job(number):
            notices.say(f"Job {number} was not archived: it has not ended or does not exist")
            code = 1
    return code


@JOB.command("autoarchive", Args("age", choices=("1d", "1w", "4w", "all")), usage="<age>|all")
def autoarchive(call: Call) -> None:
    """Archive jobs that ended long ago.

    The age is a number of seconds, or has a unit as in 30m, 6h, 1d or 2w; all is every ended job.
    """
    word = call.args[0]
    age = -1 if word == "all" else units.parse_timespec(word)
    archived, left = call.client.auto_archive_jobs(age, _AUTO_ARCHIVE_SECONDS)
    print(f"Archived {plural(archived, 'job')}, {left} left to look at")
