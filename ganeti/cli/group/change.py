"""gnt-group: create, modify, rename and remove node groups, move nodes and instances."""

from __future__ import annotations

from ganeti.cli import departures, jobs, output
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.programs import GROUP

_NAME = take_one("group", "group_name")
#: A group has no standard size of its own, so it has no option for it.
_POLICY = {name: keys[1:] for name, keys in c.POLICY.items()}

GROUP.submits("rename", "OP_GROUP_RENAME", _NAME, take_one("new-name", "new_name"))
GROUP.submits("remove", "OP_GROUP_REMOVE", _NAME)


@GROUP.command(
    "add",
    _NAME,
    op="OP_GROUP_ADD",
    also=_POLICY,
    names=c.POLICY_NAMES,
    options=o.JOB_OPTIONS,
)
def add(call: Call) -> int:
    """Create a node group without nodes."""
    return _follow(call, jobs.run(call, ipolicy=c.policy(call.opts) or None))


def _follow(call: Call, result: object) -> int:
    """Wait for the jobs that an operation submitted, if it did."""
    children = jobs.children(result)
    if not children:
        return 0
    return jobs.exit_code(jobs.wait_many(call, children, announce=True))


@GROUP.command(
    "modify",
    _NAME,
    op="OP_GROUP_SET_PARAMS",
    also=_POLICY,
    names=c.POLICY_NAMES,
    options=o.JOB_OPTIONS,
)
def modify(call: Call) -> None:
    """Change settings of a node group; others keep their values."""
    result = jobs.run_changes(call, ipolicy=c.policy(call.opts) or None)
    output.print_changes("node group", call.args[0], result)


@GROUP.command(
    "assign-nodes",
    _NAME,
    take_many("node", field="nodes"),
    op="OP_GROUP_ASSIGN_NODES",
    options=o.JOB_OPTIONS,
)
def assign_nodes(call: Call) -> None:
    """Move nodes into a node group.

    Refused when the nodes of an instance would be in different groups, unless --force is given.
    """
    jobs.run(call)


@GROUP.command(
    "evacuate",
    _NAME,
    op="OP_GROUP_EVACUATE",
    options=o.JOB_OPTIONS,
    usage="[-I <allocator>] [--to <group>] <group>",
)
def evacuate(call: Call) -> int:
    """Move all instances of a node group to other groups.

    With --dry-run only print, for each instance, where it would move and by which operations.
    """
    dry_run = call.opts.dry_run
    op = jobs.build_own(call)
    result = jobs.run_ops(call, [op], feedback=jobs.report_entry if dry_run else None)[0]
    if dry_run:
        departures.print_plan(result)
        return 0
    if not result["jobs"]:
        print(f"Node group {call.args[0]} has no instances to evacuate")
        return 0
    return departures.follow(call, result, "All instances were evacuated")
