"""gnt-instance: move an instance to other nodes."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import plural
from ganeti.cli import jobs, notices
from ganeti.cli import options as o
from ganeti.cli.command import Call, one
from ganeti.cli.instance import settings
from ganeti.cli.option import switch, value, values_of
from ganeti.cli.programs import INSTANCE

_INVAL = errors.ErrorCode.INVAL

_ALLOW_FAILOVER = switch(
    "--allow-failover",
    dest="allow_failover",
    help="Fail it over instead when it cannot be migrated",
)
_IGNORE_HVVERSIONS = switch(
    "--ignore-hvversions",
    dest="ignore_hvversions",
    help="Go on although the nodes have different versions of the hypervisor",
)
_COMPRESS = value(
    "--compress",
    dest="compress",
    default="none",
    metavar="<program>",
    help="Program that compresses the data on its way",
)
_TO_GROUP = values_of(
    "--to", dest="to", metavar="<group>", help="Node group to go to; any other one if none is given"
)


def _one_way_to_a_node(call: Call) -> None:
    settings.only_one(
        target_node=call.opts.dst_node is not None, iallocator=call.opts.iallocator is not None
    )


@INSTANCE.command(
    "failover",
    one("instance"),
    options=(
        o.FORCE,
        o.TARGET_NODE.but(help="Node to go to; mirrored disks are copied to it first"),
        o.IALLOCATOR,
        o.IGNORE_CONSISTENCY,
        o.SHUTDOWN_TIMEOUT,
        o.CLEANUP,
        o.IGNORE_IPOLICY,
        *o.JOB_OPTIONS,
    ),
)
def failover(call: Call) -> None:
    """Stop an instance and start it on its other node; asks first.

    Mirrored disks can go to any node: with --target-node the new node gets a copy while the
    instance runs on, then takes over; the old primary node keeps the other copy (if it is offline,
    the secondary one).
    """
    name, opts = call.args[0], call.opts
    _one_way_to_a_node(call)
    settings.ask_first(call, name, f"Stop instance {name} and start it on another node?")
    jobs.run_op(
        call,
        "OP_INSTANCE_FAILOVER",
        instance_name=name,
        ignore_consistency=opts.ignore_consistency,
        shutdown_timeout=opts.shutdown_timeout,
        target_node=opts.dst_node,
        iallocator=opts.iallocator,
        ignore_ipolicy=opts.ignore_ipolicy,
        cleanup=opts.cleanup,
    )


@INSTANCE.command(
    "migrate",
    one("instance"),
    options=(
        o.FORCE,
        o.TARGET_NODE,
        o.IALLOCATOR,
        o.NON_LIVE,
        o.MIGRATION_MODE,
        o.CLEANUP,
        _ALLOW_FAILOVER,
        o.NO_RUNTIME_CHANGES,
        o.IGNORE_IPOLICY,
        _IGNORE_HVVERSIONS,
        *o.JOB_OPTIONS,
    ),
)
def migrate(call: Call) -> None:
    """Live-migrate an instance to its secondary node; asks first."""
    name, opts = call.args[0], call.opts
    _one_way_to_a_node(call)
    settings.only_one(non_live=not opts.live, migration_mode=opts.migration_mode is not None)
    question = f"Migrate instance {name} to another node?"
    if opts.cleanup:
        question = f"Clean up after an interrupted migration of instance {name}?"
    settings.ask_first(call, name, question)
    jobs.run_op(
        call,
        "OP_INSTANCE_MIGRATE",
        instance_name=name,
        mode=opts.migration_mode if opts.live else "non-live",
        cleanup=opts.cleanup,
        target_node=opts.dst_node,
        iallocator=opts.iallocator,
        allow_failover=opts.allow_failover,
        allow_runtime_changes=opts.allow_runtime_chgs,
        ignore_ipolicy=opts.ignore_ipolicy,
        ignore_hvversions=opts.ignore_hvversions,
    )


@INSTANCE.command(
    "move",
    one("instance"),
    options=(
        o.FORCE,
        o.NODE.but(help="Node to go to"),
        _COMPRESS,
        o.SHUTDOWN_TIMEOUT,
        o.IGNORE_CONSISTENCY,
        o.IGNORE_IPOLICY,
        *o.JOB_OPTIONS,
    ),
)
def move(call: Call) -> None:
    """Copy the disks of an instance to another node and start it there; asks first."""
    name, opts = call.args[0], call.opts
    if not opts.node:
        raise errors.OpPrereqError(f"Say with --node where instance {name} is to be moved", _INVAL)
    settings.ask_first(
        call,
        name,
        f"Stop instance {name}, copy its disks to node {opts.node} and delete them here?",
    )
    jobs.run_op(
        call,
        "OP_INSTANCE_MOVE",
        instance_name=name,
        target_node=opts.node,
        compress=opts.compress,
        shutdown_timeout=opts.shutdown_timeout,
        ignore_consistency=opts.ignore_consistency,
        ignore_ipolicy=opts.ignore_ipolicy,
    )


@INSTANCE.command(
    "change-group",
    one("instance"),
    options=(_TO_GROUP, o.IALLOCATOR, o.EARLY_RELEASE, o.PRIORITY, *o.SUBMIT_OPTIONS),
)
def change_group(call: Call) -> int:
    """Move an instance to another node group."""
    name, opts = call.args[0], call.opts
    result = jobs.run_op(
        call,
        "OP_INSTANCE_CHANGE_GROUP",
        instance_name=name,
        iallocator=opts.iallocator,
        target_groups=opts.to or None,
        early_release=opts.early_release,
    )
    outcomes = jobs.wait_many(call, jobs.children(result), announce=True)
    bad = sum(not outcome.ok for outcome in outcomes)
    if bad:
        notices.say(f"There were errors: {plural(bad, 'job')} failed")
        return 1
    print(f"Instance '{name}' is in another node group now")
    return 0
