"""gnt-instance modify: change settings, disks and NICs."""

from __future__ import annotations

from functools import partial

from ganeti.cli import jobs, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import cloud_init, devices, settings
from ganeti.cli.option import legacy_option
from ganeti.cli.programs import INSTANCE

_OLD_HOTPLUG = legacy_option(
    "--hotplug", "--hotplug-if-possible", help="Accepted for scripts of 3.0; this is the default"
)


@INSTANCE.command(
    "modify",
    take_one("instance", "instance_name"),
    op="OP_INSTANCE_SET_PARAMS",
    without=("hotplug_if_possible",),
    names={
        "beparams": override(
            "-B", "--backend-parameters", take=partial(settings.backend, keep_resets=True)
        ),
        "disks": override(
            "--disk",
            kind="identkeyval",
            metavar="<change>",
            help="add:size=10G, attach:name=..., remove, detach, or <index>: with add,...,"
            " attach,uuid=..., remove, detach or key=value; dev_type=... is the template of a"
            " new disk",
            take=partial(devices.changes, what="disk"),
        ),
        "ext_params": override("-e", "--ext-params", take=dict),
        "nics": override(
            "--net",
            kind="identkeyval",
            metavar="<change>",
            help="add:link=br0, remove, or <index>: with add,..., remove or key=value",
            take=partial(devices.changes, what="NIC"),
        ),
        "offline": override(
            each={
                False: ("--online", "Mark it as down again, so that it can be started"),
                True: ("--offline", "Mark a stopped instance as offline: it cannot be started"),
            }
        ),
        "pnode": override("--new-primary"),
        **{name: option for name, option in cloud_init.NAMES.items() if name != "image"},
        "remote_node": override("-n", "--node"),
        "runtime_mem": override("-m", "--runtime-memory", kind="unit"),
    },
    options=(_OLD_HOTPLUG, *o.JOB_OPTIONS),
)
def modify(call: Call) -> None:
    """Change settings, disks or NICs of an instance.

    A parameter with a minus sign in front, as in -B -maxmem, goes back to its default.
    """
    op = jobs.build_changes(call)
    result = jobs.run_ops(call, [op])[0]
    if not result:
        return
    print(f"Modified instance {call.args[0]}")
    output.print_lines([f" - {name:<5} -> {new}" for name, new in result])
    if op["hvparams"] or op["beparams"]:
        notices.say(
            "Most parameters take effect when the instance is started next time by Ganeti;"
            " a restart from inside the guest is not enough"
        )
