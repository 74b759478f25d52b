"""gnt-debug: try out and look into the cluster manager."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import units
from ganeti.base.text import plural
from ganeti.cli import jobs, listing, notices, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, many, one
from ganeti.cli.option import switch, switch_off, value, values_of
from ganeti.cli.programs import DEBUG
from ganeti.luxi.client import QueryResult

_ON_NODES = values_of("-n", dest="on_nodes", metavar="<node>", help="Node that waits too")
_NO_MASTER = switch_off("--no-master", dest="on_master", help="The master does not wait")
_REPEAT = value("-r", "--repeat", dest="repeat", kind="int", default=0, help="How often to wait")
_INTERRUPTIBLE = switch(
    "-i", "--interruptible", dest="interruptible", help="The wait can be ended over a socket"
)
_NO_LOCKS = switch("-l", "--no-locks", dest="no_locks", help="Hold no locks meanwhile")


@DEBUG.command(
    "delay",
    one("seconds"),
    options=(_NO_MASTER, _ON_NODES, _REPEAT, _INTERRUPTIBLE, _NO_LOCKS, *o.JOB_OPTIONS),
)
def delay(call: Call) -> None:
    """Run a job that does nothing for a while."""
    opts = call.opts
    try:
        duration = values.number(call.args[0])
    except ValueError as err:
        raise errors.OpPrereqError(str(err), errors.ErrorCode.INVAL) from None
    jobs.run_op(
        call,
        "OP_TEST_DELAY",
        duration=duration,
        on_master=opts.on_master,
        on_nodes=opts.on_nodes,
        repeat=opts.repeat,
        interruptible=opts.interruptible,
        no_locks=opts.no_locks,
    )


_OP_REPEAT = value(
    "--op-repeat", dest="rep_op", kind="int", default=1, help="How often each opcode is in a job"
)
_JOB_REPEAT = value(
    "--job-repeat", dest="rep_job", kind="int", default=1, help="How many jobs of each file"
)
_TIMING = switch(
    "--timing-stats", dest="timing_stats", help="Print how long submitting and running took"
)
_EACH = switch("--each", dest="each", help="Submit each job by itself, not all at once")


@DEBUG.command(
    "submit-job",
    many("op-list-file", least=1),
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
    started = time.monotonic()
    if opts.each:
        ids: list[int | None] = [call.client.submit_job(ops) for ops in work]
        tasks = [jobs.Task("", number) for number in ids]
    else:
        tasks = [
            jobs.Task("", item.job_id, item.error) for item in call.client.submit_many_jobs(work)
        ]
    submitted = time.monotonic()
    outcomes = jobs.wait_many(call, tasks, announce=True)
    if opts.timing_stats:
        ended = time.monotonic()
        count = sum(len(ops) for ops in work)
        print(f"Submitted {len(work)} jobs with {count} opcodes in {submitted - started:.3f} s")
        print(f"They took {ended - submitted:.3f} s, in all {ended - started:.3f} s")
    return jobs.exit_code(outcomes)


def _read_ops(call: Call, name: str) -> list[jobs.WireOp]:
    from ganeti.base import jsonio

    try:
        data = jsonio.loads(Path(name).read_bytes())
    except (OSError, errors.ParseError) as err:
        raise errors.OpPrereqError(
            f"Cannot read opcodes from '{name}': {err}", errors.ErrorCode.INVAL
        ) from err
    if not (isinstance(data, list) and all(isinstance(item, dict) for item in data)):
        raise errors.OpPrereqError(f"'{name}' holds no list of opcodes", errors.ErrorCode.INVAL)
    return [jobs.build(call, str(item.get("OP_ID")), **_without(item, "OP_ID")) for item in data]


def _without(item: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: val for name, val in item.items() if name != key}


_LOCK_FIELDS = ("name", "mode", "owner", "pending")
_INTERVAL = value(
    "--interval", dest="interval", kind="int", metavar="<seconds>", help="Repeat for ever"
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
            texts={"owner": output.joined, "pending": _pending, "mode": _mode},
            on_terminal=listing.OnTerminal(
                _LOCK_FIELDS, ("owner", "pending"), lambda found: _busy(call, found)
            ),
        )
        if code or not call.opts.interval:
            return code
        print(flush=True)
        time.sleep(max(1, call.opts.interval))  # what the user asked for; no event tells of locks


def _busy(call: Call, result: QueryResult) -> QueryResult:
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


def _mode(mode: Any) -> str:
    return "-" if mode is None else str(mode)


def _pending(pending: Any) -> str:
    if not pending:
        return "-"
    return ";".join(f"{mode}:{','.join(owners)}" for mode, owners in pending)


_ALLOCATOR_OPTIONS = (
    value(
        "--dir",
        dest="direction",
        choices=("in", "out"),
        default="in",
        help="Show the request (in) or run the allocator and show its answer (out)",
    ),
    o.IALLOCATOR,
    value(
        "-m",
        "--mode",
        dest="mode",
        default="relocate",
        metavar="<mode>",
        choices=(
            "allocate",
            "allocate-secondary",
            "change-group",
            "multi-allocate",
            "node-evacuate",
            "relocate",
        ),
        help="What to ask for: allocate, relocate, multi-allocate, node-evacuate, ...",
    ),
    value("--memory", dest="memory", kind="unit", default=128, help="Memory of the instance"),
    value(
        "--disks",
        dest="disks",
        default="4096,4096",
        metavar="<size>,...",
        help="Sizes of its disks",
    ),
    o.DISK_TEMPLATE,
    value(
        "--nics",
        dest="nics",
        default="00:11:22:33:44:55",
        metavar="<mac>[/<ip>],...",
        help="Its NICs",
    ),
    o.OS,
    value("-p", "--vcpus", dest="vcpus", kind="int", default=1, help="Its processors"),
    value("--tags", dest="tags", metavar="<tag>,...", help="Its tags"),
    value(
        "--evac-mode",
        dest="evac_mode",
        default="all",
        choices=("all", "primary-only", "secondary-only"),
        help="Which instances leave",
    ),
    values_of(
        "--target-groups", dest="target_groups", metavar="<group>", help="Node group to go to"
    ),
    value(
        "--spindle-use",
        dest="spindle_use",
        kind="int",
        default=1,
        help="Share of a spindle it uses",
    ),
    value("--count", dest="count", kind="int", default=2, help="How many instances"),
    *o.PLAN_OPTIONS,
)


@DEBUG.command(
    "iallocator", many("instance", least=1), aliases=("allocator",), options=_ALLOCATOR_OPTIONS
)
def iallocator(call: Call) -> None:
    """Show what an allocator is asked, or what it answers."""
    opts = call.opts
    placing = opts.mode in ("allocate", "multi-allocate")
    print(
        jobs.run_op(
            call,
            "OP_TEST_ALLOCATOR",
            mode=opts.mode,
            direction=opts.direction,
            name=call.args[0],
            instances=call.args,
            iallocator=opts.iallocator,
            memory=opts.memory,
            disks=[{"size": units.parse_size(size), "mode": "rw"} for size in opts.disks.split(",")]
            if placing
            else None,
            disk_template=opts.disk_template,
            nics=[_nic(text) for text in opts.nics.split(",")] if placing else None,
            os=opts.os,
            vcpus=opts.vcpus,
            tags=opts.tags.split(",") if opts.tags else [],
            evac_mode=opts.evac_mode,
            target_groups=opts.target_groups or None,
            spindle_use=opts.spindle_use,
            count=opts.count,
        )
    )


def _nic(text: str) -> dict[str, str]:
    mac, _, ip = text.partition("/")
    return {"mac": mac, "ip": ip} if ip else {"mac": mac}


@DEBUG.command("test-osparams", options=(o.OS_PARAMS_SECRET, *o.SUBMIT_OPTIONS))
def test_osparams(call: Call) -> None:
    """Check that secret OS parameters reach a running job and nothing else."""
    jobs.run_op(
        call, "OP_TEST_OS_PARAMS", osparams_secret=values.no_resets(call.opts.osparams_secret)
    )
    notices.say("The secret parameters reached the job")
