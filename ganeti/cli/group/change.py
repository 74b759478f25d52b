"""gnt-group: make, change, rename and remove node groups, move nodes and instances."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.cli import jobs, output, params, values
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, many, one
from ganeti.cli.option import switch, value, values_of
from ganeti.cli.programs import GROUP

_ALLOC_POLICY = value(
    "--alloc-policy",
    dest="alloc_policy",
    metavar="<policy>",
    choices=("preferred", "last_resort", "unallocable"),
    help="Allocation policy of the group",
)
#: A group has no standard size of its own, so it lacks that option.
_POLICY = (c.BOUNDS_SPECS, c.POLICY_TEMPLATES, c.VCPU_RATIO, c.SPINDLE_RATIO)
_SETTINGS = (
    _ALLOC_POLICY,
    o.NODE_PARAMS,
    c.DISK_PARAMS,
    o.HV_STATE,
    o.DISK_STATE,
    *_POLICY,
)
_TO = values_of("--to", dest="to", metavar="<group>", help="Node group to move the instances to")
_SEQUENTIAL = switch("--sequential", dest="sequential", help="Move one instance after the other")
_FORCE_FAILOVER = switch(
    "--force-failover",
    dest="force_failover",
    help="Stop and start the instances instead of migrating them",
)


def _settings(call: Call) -> dict[str, Any]:
    opts = call.opts
    opts.ipolicy_std_specs = None
    return {
        "alloc_policy": opts.alloc_policy,
        "ndparams": values.resets_as_default(opts.ndparams) if opts.ndparams else None,
        "diskparams": params.by_name(opts.diskparams) or None,
        "hv_state": params.by_name(opts.hv_state) or None,
        "disk_state": params.disk_state(opts.disk_state) or None,
        "ipolicy": c.policy(opts) or None,
    }


@GROUP.command("add", one("group"), options=(*_SETTINGS, *o.JOB_OPTIONS))
def add(call: Call) -> int:
    """Create a node group without nodes."""
    result = jobs.run_op(call, "OP_GROUP_ADD", group_name=call.args[0], **_settings(call))
    return _follow(call, result)


def _follow(call: Call, result: Any) -> int:
    """Wait for the jobs that an operation submitted, if it did."""
    children = jobs.children(result)
    if not children:
        return 0
    return jobs.exit_code(jobs.wait_many(call, children, announce=True))


@GROUP.command("modify", one("group"), options=(*_SETTINGS, *o.JOB_OPTIONS))
def modify(call: Call) -> None:
    """Change the settings of a node group; what is not named stays."""
    changes = _settings(call)
    if all(change is None for change in changes.values()):
        raise errors.OpPrereqError(
            "Nothing to change: give at least one option", errors.ErrorCode.INVAL
        )
    result = jobs.run_op(call, "OP_GROUP_SET_PARAMS", group_name=call.args[0], **changes)
    if result:
        print(f"Modified node group {call.args[0]}")
        output.print_lines([f" - {name} -> {new}" for name, new in result])


@GROUP.command("rename", one("group"), one("new-name"), options=o.JOB_OPTIONS)
def rename(call: Call) -> None:
    """Give a node group another name."""
    old, new = call.args
    jobs.run_op(call, "OP_GROUP_RENAME", group_name=old, new_name=new)


@GROUP.command("remove", one("group"), options=o.JOB_OPTIONS)
def remove(call: Call) -> None:
    """Remove a node group that has no nodes."""
    jobs.run_op(call, "OP_GROUP_REMOVE", group_name=call.args[0])


@GROUP.command("assign-nodes", one("group"), many("node"), options=(o.FORCE, *o.JOB_OPTIONS))
def assign_nodes(call: Call) -> None:
    """Move nodes into a node group.

    Refused when the nodes of an instance would be in different groups, unless --force is given.
    """
    group, *nodes = call.args
    jobs.run_op(call, "OP_GROUP_ASSIGN_NODES", group_name=group, nodes=nodes, force=call.opts.force)


@GROUP.command(
    "evacuate",
    one("group"),
    options=(
        _TO,
        o.IALLOCATOR,
        o.EARLY_RELEASE,
        _SEQUENTIAL,
        _FORCE_FAILOVER,
        *o.SUBMIT_OPTIONS,
    ),
    usage="[-I <allocator>] [--to <group>] <group>",
)
def evacuate(call: Call) -> int:
    """Move all instances of a node group to other groups."""
    opts = call.opts
    result = jobs.run_op(
        call,
        "OP_GROUP_EVACUATE",
        group_name=call.args[0],
        iallocator=opts.iallocator,
        target_groups=opts.to or None,
        early_release=opts.early_release,
        sequential=opts.sequential,
        force_failover=opts.force_failover,
    )
    return _follow(call, result)
