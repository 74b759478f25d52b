"""gnt-debug: test and inspect the cluster manager."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.cli import jobs, listing, notices, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.option import switch, value
from ganeti.cli.programs import DEBUG
from ganeti.luxi.client import QueryResult


@DEBUG.command(
    "delay",
    take_one("seconds", "duration"),
    op="OP_TEST_DELAY",
    names={
        "interruptible": override("-i", "--interruptible"),
        "no_locks": override("-l", "--no-locks", kind="switch"),
        "on_master": override("--no-master"),
        "on_nodes": override("-n", append=True, metavar="<node>"),
        "repeat": override("-r", "--repeat"),
    },
    options=o.JOB_OPTIONS,
)
def delay(call: Call) -> None:
    """Run a job that does nothing for a while."""
    try:
        duration = values.number(call.args[0])
    except ValueError as err:
        raise errors.make_invalid_error(str(err)) from None
    jobs.run(call, duration=duration)


_OP_REPEAT = value(
    "--op-repeat",
    dest="rep_op",
    kind="int",
    default=1,
    help="Number of copies of each opcode in a job",
)
_JOB_REPEAT = value(
    "--job-repeat", dest="rep_job", kind="int", default=1, help="Number of jobs for each file"
)
_TIMING = switch(
    "--timing-stats", dest="timing_stats", help="Print how long submitting and running took"
)
_EACH = switch("--each", dest="each", help="Submit each job by itself, not all at once")


@DEBUG.command(
    "submit-job",
    take_many("op-list-file", least=1),
    options=(o.VERBOSE, _OP_REPEAT, _JOB_REPEAT, _TIMING, _EACH, *o.PLAN_OPTIONS),
)
def submit_job(call: Call) -> int:
    """Submit jobs whose opcodes are in files.

    Each file is one job: a JSON list of opcodes in the form that gnt-job info shows.
    """
    opts = call.opts
    work: list[list[jobs.WireOp]] = []
    for name in call.args:
        ops = _read_ops(call, name)
        work += [[op for op in ops for _ in range(opts.rep_op)] for _ in range(opts.rep_job)]
    started = call.clock.monotonic()
    if opts.each:
        ids: list[int | None] = [call.client.submit_job(ops) for ops in work]
        tasks = [jobs.Task("", number) for number in ids]
    else:
        tasks = [
            jobs.Task("", item.job_id, item.error) for item in call.client.submit_many_jobs(work)
        ]
    submitted = call.clock.monotonic()
    outcomes = jobs.wait_many(call, tasks, announce=True)
    if opts.timing_stats:
        ended = call.clock.monotonic()
        count = sum(len(ops) for ops in work)
        print(f"Submitted {len(work)} jobs with {count} opcodes in {submitted - started:.3f} s")
        print(f"They took {ended - submitted:.3f} s, in all {ended - started:.3f} s")
    return jobs.exit_code(outcomes)


def _read_ops(call: Call, name: str) -> list[jobs.WireOp]:
    from ganeti.base import jsonio

    try:
        data = jsonio.loads(Path(name).read_bytes())
    except (OSError, errors.ParseError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise errors.make_invalid_error(f"Cannot read opcodes from '{name}': {reason}") from err
    if not (isinstance(data, list) and all(isinstance(item, dict) for item in data)):
        raise errors.make_invalid_error(f"'{name}' is not a list of opcodes")
    return [jobs.build(call, str(item.get("OP_ID")), **_omit(item, "OP_ID")) for item in data]


def _omit(item: Mapping[str, object], key: str) -> JsonObject:
    return {name: val for name, val in item.items() if name != key}


_LOCK_FIELDS = ("name", "mode", "owner", "pending")
_INTERVAL = value(
    "--interval",
    dest="interval",
    kind="int",
    metavar="<seconds>",
    help="Seconds between two lists, until Ctrl-C",
)


@DEBUG.command(
    "locks", options=(o.NO_HEADERS, o.SEPARATOR, o.FIELDS, o.VERBOSE, o.FORMAT, _INTERVAL)
)
def locks(call: Call) -> int:
    """Show who holds locks and who waits for them.

    On a terminal free locks are shown with -v only, and names stand in place of UUIDs.
    """
    call.opts.force_filter = False
    while True:
        code = listing.show_list(
            call,
            "lock",
            _LOCK_FIELDS,
            texts={"owner": output.join_items, "pending": _format_pending, "mode": _mode},
            on_terminal=listing.OnTerminal(
                _LOCK_FIELDS, ("owner", "pending"), lambda found: _hide_free_locks(call, found)
            ),
        )
        if code or not call.opts.interval:
            return code
        print(flush=True)
        call.clock.sleep(
            max(1, call.opts.interval)
        )  # the interval of the user; there are no events about locks


def _hide_free_locks(call: Call, result: QueryResult) -> QueryResult:
    """Locks that somebody holds or waits for (with ``-v`` all), by the names of their objects."""
    fields, client = result.fields[:-2], call.client
    rows = [row[:-2] for row in result.data if call.opts.verbose or row[-2][1] or row[-1][1]]
    free = len(result.data) - len(rows)
    if free:
        notices.say(f"{plural(free, 'free lock')} not shown; -v shows them too")
    place = next((i for i, item in enumerate(fields) if item.name == "name"), None)
    if place is not None and rows:
        queries = (client.query_nodes, client.query_groups, client.query_networks)
        names = {uuid: name for query in queries for uuid, name in query([], ["uuid", "name"])}
        for row in rows:
            level, _, uuid = str(row[place][1]).partition("/")
            row[place] = (row[place][0], f"{level}/{names.get(uuid, uuid)}")
    return QueryResult(fields, rows)


def _mode(mode: object) -> str:
    return "-" if mode is None else str(mode)


def _format_pending(pending: Any) -> str:
    if not pending:
        return "-"
    return ";".join(f"{mode}:{','.join(owners)}" for mode, owners in pending)


def _nic(text: str) -> dict[str, str]:
    mac, _, ip = text.partition("/")
    return {"mac": mac, "ip": ip} if ip else {"mac": mac}


def _disks(text: str) -> list[JsonObject]:
    return [{"size": units.parse_size(size), "mode": "rw"} for size in text.split(",")]


def _nics(text: str) -> list[dict[str, str]]:
    return [_nic(item) for item in text.split(",")]


@DEBUG.command(
    "iallocator",
    take_many("instance", least=1),
    aliases=("allocator",),
    op="OP_TEST_ALLOCATOR",
    without=("group_name", "hypervisor", "instances", "name"),
    names={
        "count": override(default=2),
        "direction": override("--dir", default="in"),
        "disks": override(kind="string", metavar="<size>,...", default="4096,4096", take=_disks),
        "evac_mode": override(default="all"),
        "memory": override(kind="unit", default=128),
        "mode": override("-m", "--mode", default="relocate"),
        "nics": override(
            kind="string", metavar="<mac>[/<ip>],...", default="00:11:22:33:44:55", take=_nics
        ),
        "os": override("-o", "--os-type"),
        "target_groups": override(append=True, metavar="<group>"),
        "vcpus": override("-p", "--vcpus", default=1),
    },
    options=o.PLAN_OPTIONS,
)
def iallocator(call: Call) -> None:
    """Show the request to an allocator, or its answer."""
    placing = call.opts.mode in ("allocate", "multi-allocate")
    devices: dict[str, None] = {} if placing else {"disks": None, "nics": None}
    print(jobs.run(call, name=call.args[0], instances=call.args, **devices))


@DEBUG.command("test-osparams", op="OP_TEST_OS_PARAMS", new=True, options=o.SUBMIT_OPTIONS)
def test_osparams(call: Call) -> None:
    """Check that secret OS parameters reach a running job and nothing else."""
    jobs.run(call)
    notices.say("The secret parameters reached the job")
