"""gnt-instance: move an instance to other nodes."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import plural
from ganeti.cli import jobs, notices, params
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import settings
from ganeti.cli.programs import INSTANCE

_NAME = take_one("instance", "instance_name")
_OPTIONS = (o.FORCE, *o.JOB_OPTIONS)


def _check_destination(call: Call) -> None:
    settings.refuse_several(
        target_node=call.opts.target_node is not None, iallocator=call.opts.iallocator is not None
    )


@INSTANCE.command(
    "failover",
    _NAME,
    op="OP_INSTANCE_FAILOVER",
    options=_OPTIONS,
)
def failover(call: Call) -> None:
    """Fail an instance over to its secondary node: stop it and start it there; asks first.

    Mirrored disks can go to any node: with --target-node the new node gets a copy while the
    instance keeps running. Then the instance fails over. The old primary node keeps the other copy,
    or the secondary node if the primary is offline.
    """
    name = call.args[0]
    _check_destination(call)
    settings.ask_first(call, name, f"Stop instance {name} and start it on another node?")
    jobs.run(call)


@INSTANCE.command(
    "migrate",
    _NAME,
    op="OP_INSTANCE_MIGRATE",
    names=params.MIGRATION,
    options=_OPTIONS,
)
def migrate(call: Call) -> None:
    """Live-migrate an instance to its secondary node; asks first.

    Disks that are on one node only are sent too, if --target-node names another node.
    """
    name, opts = call.args[0], call.opts
    _check_destination(call)
    settings.refuse_several(non_live=not opts.live, migration_mode=opts.mode is not None)
    question = f"Migrate instance {name} to another node?"
    if opts.cleanup:
        question = f"Clean up after an interrupted migration of instance {name}?"
    settings.ask_first(call, name, question)
    jobs.run(call, **params.migration(call))


@INSTANCE.command(
    "move",
    _NAME,
    op="OP_INSTANCE_MOVE",
    names={"target_node": override("-n", "--node")},
    options=_OPTIONS,
)
def move(call: Call) -> None:
    """Copy the disks of an instance to another node and start it there; asks first.

    With --live a running instance is not stopped: its disks are sent while it writes to them, then
    its memory. It stands still for a moment at the end.
    """
    name, opts = call.args[0], call.opts
    if not opts.target_node:
        raise errors.make_invalid_error(f"Instance {name}: choose the target node with --node")
    stop = "Move" if opts.live else "Stop"
    settings.ask_first(
        call,
        name,
        f"{stop} instance {name}, copy its disks to node {opts.target_node} and delete them here?",
    )
    jobs.run(call)


@INSTANCE.command(
    "change-group",
    _NAME,
    op="OP_INSTANCE_CHANGE_GROUP",
    options=(o.PRIORITY, *o.SUBMIT_OPTIONS),
)
def change_group(call: Call) -> int:
    """Move an instance to another node group."""
    result = jobs.run(call)
    outcomes = jobs.wait_many(call, jobs.children(result), announce=True)
    bad = sum(not outcome.ok for outcome in outcomes)
    if bad:
        notices.say(f"There were errors: {plural(bad, 'job')} failed")
        return 1
    print(f"Instance '{call.args[0]}' is in another node group now")
    return 0
