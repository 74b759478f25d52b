"""gnt-instance: start, stop and restart instances."""

from __future__ import annotations

from ganeti.cli import jobs, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, many
from ganeti.cli.instance import settings
from ganeti.cli.option import switch, value
from ganeti.cli.programs import INSTANCE

_PAUSED = switch(
    "--paused", dest="startup_paused", help="Load the guest but let it wait until it is unpaused"
)
_TIMEOUT = o.SHUTDOWN_TIMEOUT.but(flags=("--timeout",), dest="timeout")
_REBOOT_TYPE = value(
    "-t",
    "--type",
    dest="reboot_type",
    choices=("full", "hard", "soft"),
    default="hard",
    help="By the guest (soft), by the hypervisor (hard), or with its disks (full)",
)
_IGNORE_SECONDARIES = switch(
    "--ignore-secondaries",
    dest="ignore_secondaries",
    help="Start it although a secondary node does not answer",
)
_SELECTION = (o.FORCE_MULTIPLE, *o.SELECTION_OPTIONS)


@INSTANCE.command(
    "startup",
    many("instance"),
    aliases=("start",),
    options=(
        o.FORCE,
        o.HV_PARAMS,
        o.BACKEND,
        _PAUSED,
        o.IGNORE_OFFLINE,
        o.NO_REMEMBER,
        *_SELECTION,
        *o.JOB_OPTIONS,
    ),
)
def startup(call: Call) -> int:
    """Start instances.

    Parameters given with -H and -B hold for this run of the guest only.
    """
    opts = call.opts
    hvparams = settings.for_once(opts.hvparams, "hypervisor")
    beparams = settings.backend(settings.for_once(opts.beparams, "backend"), keep_resets=False)
    return selection.act(
        call,
        "Start",
        lambda name: jobs.build(
            call,
            "OP_INSTANCE_STARTUP",
            instance_name=name,
            force=opts.force,
            ignore_offline_nodes=opts.ignore_offline,
            no_remember=opts.no_remember,
            startup_paused=opts.startup_paused,
            hvparams=hvparams,
            beparams=beparams,
        ),
    )


@INSTANCE.command(
    "shutdown",
    many("instance"),
    aliases=("stop",),
    options=(
        o.FORCE,
        _TIMEOUT,
        o.IGNORE_OFFLINE,
        o.NO_REMEMBER,
        *_SELECTION,
        *o.JOB_OPTIONS,
    ),
)
def shutdown(call: Call) -> int:
    """Stop instances: ask the guest, and end it when its time is over."""
    opts = call.opts
    return selection.act(
        call,
        "Stop",
        lambda name: jobs.build(
            call,
            "OP_INSTANCE_SHUTDOWN",
            instance_name=name,
            force=opts.force,
            timeout=opts.timeout,
            ignore_offline_nodes=opts.ignore_offline,
            no_remember=opts.no_remember,
            admin_state_source="admin",
        ),
    )


@INSTANCE.command(
    "reboot",
    many("instance"),
    options=(
        _REBOOT_TYPE,
        _IGNORE_SECONDARIES,
        o.SHUTDOWN_TIMEOUT,
        *_SELECTION,
        *o.JOB_OPTIONS,
    ),
)
def reboot(call: Call) -> int:
    """Restart instances."""
    opts = call.opts
    return selection.act(
        call,
        "Restart",
        lambda name: jobs.build(
            call,
            "OP_INSTANCE_REBOOT",
            instance_name=name,
            reboot_type=opts.reboot_type,
            ignore_secondaries=opts.ignore_secondaries,
            shutdown_timeout=opts.shutdown_timeout,
        ),
    )
