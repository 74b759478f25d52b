"""gnt-instance: remove, rename and reinstall."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ganeti import errors
from ganeti.cli import jobs, notices, output, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.instance import settings
from ganeti.cli.option import switch
from ganeti.cli.os.commands import names_with_variants
from ganeti.cli.programs import INSTANCE

_SELECT_OS = switch("--select-os", dest="select_os", help="Choose the OS from a list")


@INSTANCE.command(
    "remove",
    take_one("instance", "instance_name"),
    op="OP_INSTANCE_REMOVE",
    options=(o.FORCE, *o.JOB_OPTIONS),
)
def remove(call: Call) -> None:
    """Stop an instance and delete it with its disks; asks first."""
    name = call.args[0]
    settings.ask_first(call, name, f"Delete instance {name} with its disks and all data on them?")
    jobs.run(call)


@INSTANCE.command(
    "rename",
    take_one("old-name", "instance_name"),
    take_one("new-name", "new_name"),
    op="OP_INSTANCE_RENAME",
    options=o.JOB_OPTIONS,
)
def rename(call: Call) -> None:
    """Rename a stopped instance."""
    result = jobs.run(call)
    if result:
        print(f"Instance '{call.args[0]}' has been renamed to '{result}'")


@INSTANCE.command(
    "reinstall",
    take_many("instance"),
    op="OP_INSTANCE_REINSTALL",
    without=("instance_name",),
    new=True,
    options=(
        o.FORCE,
        _SELECT_OS,
        o.FORCE_MULTIPLE,
        *o.SELECTION_OPTIONS,
        *o.JOB_OPTIONS,
    ),
)
def reinstall(call: Call) -> int:
    """Install an OS on the disks of stopped instances again; their content is lost.

    Without -o the recorded OS is installed, with -o also another one. Asks first.
    """
    opts = call.opts
    if opts.select_os and opts.os_type:
        raise errors.make_invalid_error("Give either --os-type or --select-os, not both")
    names = selection.instances(call)
    wanted = _ask_for_os(call) if opts.select_os else opts.os_type
    if not (opts.force or opts.force_multi):
        question = f"Install {wanted or 'the OS'} again on"
        if not selection.confirm(names, "instance", f"All data on the disks is lost. {question}"):
            return 1
    work = [(name, jobs.build_own(call, instance_name=name, os_type=wanted)) for name in names]
    return jobs.exit_code(jobs.run_many(call, work, announce=len(names) > 1))


def _ask_for_os(call: Call) -> str:
    """Ask at the terminal which of the cluster's operating systems is wanted.

    Raises:
        OpPrereqError: there is none, or no terminal.
        Exit: nothing was chosen.
    """
    # The question itself is never a mere plan, and its job is not the one to submit.
    op = jobs.build(call, "OP_OS_DIAGNOSE", output_fields=["name", "variants", "valid"], names=[])
    op.pop("dry_run", None)
    rows = jobs.wait(call.client, call.client.submit_job([op]), quiet=True)[0]
    known = [
        text
        for name, variants, valid in rows
        if valid
        for text in names_with_variants(name, variants)
    ]
    if not known:
        raise errors.make_environment_error(
            "No OS can be installed on all nodes; see gnt-os diagnose"
        )
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        raise errors.make_invalid_error(
            "--select-os needs a terminal; name the OS with --os-type"
        ) from None
    with os.fdopen(fd, "r+b", buffering=0) as terminal:
        chosen = choose(
            known,
            read=lambda: terminal.readline().decode("utf-8", "replace"),
            write=lambda text: terminal.write(text.encode("utf-8")),
        )
    if chosen is None:
        notices.say("No OS was chosen, nothing was done")
        raise Exit(1)
    return chosen


def choose(
    items: Sequence[str], *, read: Callable[[], str], write: Callable[[str], object]
) -> str | None:
    """Ask for the number of an item until there is one; None for an empty answer or ``q``."""
    rows = [(str(number), item) for number, item in enumerate(items, 1)]
    lines = output.table(("No", "OS"), rows, right=(True, False))
    write("\n".join(lines) + "\n")
    while True:
        write(f"Number of the OS to install (1-{len(items)}, q to stop): ")
        answer = read().strip()
        if answer in ("", "q"):
            return None
        found = dict(rows).get(answer)
        if found is not None:
            return found
        write(f"Invalid number '{answer}'\n")
