"""gnt-instance: start, stop and restart instances."""

from __future__ import annotations

from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.fields import override
from ganeti.cli.instance import settings
from ganeti.cli.programs import INSTANCE

_OPTIONS = (o.FORCE_MULTIPLE, *o.SELECTION_OPTIONS, *o.JOB_OPTIONS)
_NAME = ("instance_name",)


def _hvparams(given: Any) -> JsonObject:
    return settings.refuse_defaults(given, "hypervisor")


def _beparams(given: Any) -> JsonObject:
    return settings.backend(settings.refuse_defaults(given, "backend"), keep_resets=False)


def _act(call: Call, verb: str, **more: object) -> int:
    """Run one job for each selected instance."""
    return selection.act(call, verb, lambda name: jobs.build_own(call, instance_name=name, **more))


@INSTANCE.command(
    "startup",
    take_many("instance"),
    aliases=("start",),
    op="OP_INSTANCE_STARTUP",
    without=(*_NAME, "shutdown_timeout"),
    names={
        "beparams": override("-B", "--backend-parameters", take=_beparams),
        "hvparams": override("-H", "--hypervisor-parameters", take=_hvparams),
        "startup_paused": override("--paused"),
    },
    options=_OPTIONS,
)
def startup(call: Call) -> int:
    """Start instances.

    Parameters set with -H and -B apply to this run of the guest only.
    """
    call.spec.parameters(call)  # refuses wrong ones before anything is asked
    return _act(call, "Start")


@INSTANCE.command(
    "shutdown",
    take_many("instance"),
    aliases=("stop",),
    op="OP_INSTANCE_SHUTDOWN",
    without=(*_NAME, "admin_state_source"),
    options=_OPTIONS,
)
def shutdown(call: Call) -> int:
    """Stop instances: ask the guest to shut down, and end it after a timeout."""
    return _act(call, "Stop", admin_state_source="admin")


@INSTANCE.command(
    "reboot",
    take_many("instance"),
    op="OP_INSTANCE_REBOOT",
    without=_NAME,
    names={"reboot_type": override("-t", "--type")},
    options=_OPTIONS,
)
def reboot(call: Call) -> int:
    """Restart instances."""
    return _act(call, "Restart", reboot_type=call.opts.reboot_type or "hard")
