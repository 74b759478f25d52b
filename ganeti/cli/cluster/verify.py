"""gnt-cluster: check the cluster and its disks."""

from __future__ import annotations

import sys
from typing import Any

from ganeti.base.text import plural
from ganeti.cli import jobs, notices
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.fields import override
from ganeti.cli.programs import CLUSTER
from ganeti.luxi.client import LogEntry


class Findings:
    """Shows the log of a verification and counts what it reports."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._heading: LogEntry | None = None
        self._counts = {"ERROR": 0, "WARNING": 0}

    def show(self, entry: LogEntry) -> None:
        """Print an entry; a quiet one prints a heading only together with what is below it."""
        text = str(entry[3])
        for level in self._counts:
            self._counts[level] += text.startswith(f"  - {level}:")
        if self._quiet and text.startswith("* "):
            self._heading = entry
            return
        if self._heading is not None:
            jobs.show_entry(self._heading)
            self._heading = None
        jobs.show_entry(entry)

    @property
    def any(self) -> bool:
        return any(self._counts.values())

    def summary(self) -> str:
        return ", ".join(plural(n, level.lower()) for level, n in self._counts.items())


@CLUSTER.command(
    "verify",
    op="OP_CLUSTER_VERIFY",
    names={
        "group_name": override("-g", "--node-group"),
        "skip_checks": override(
            each={
                "nplusone_mem": (
                    "--no-nplus1-mem",
                    "Do not check whether memory suffices when a node fails",
                ),
                "hvparam_assessment": (
                    "--no-hv-param-assessment",
                    "Ignored; hypervisor parameters are checked when they are set",
                ),
            }
        ),
        "ignore_errors": override("-I", "--ignore-errors", append=True, metavar="<code>"),
        "verbose": override("-v", "--verbose"),
        "verify_clutter": override("--verify-ssh-clutter"),
    },
    options=o.PLAN_OPTIONS,
)
def verify(call: Call) -> int:
    """Check configuration, nodes and instances; fails when something is wrong.

    On a terminal a heading is shown only if it has findings; --verbose shows all headings, as in
    output to a file. The last line, on standard error, counts the findings.
    """
    result = jobs.run(call)
    quiet = sys.stdout.isatty() and not call.opts.verbose
    findings = Findings(quiet=quiet)
    outcomes = jobs.wait_many(
        call, jobs.children(result), announce=not quiet, feedback=findings.show, quiet=quiet
    )
    failed = sum(not outcome.ok for outcome in outcomes)
    if failed:
        print(f"{plural(failed, 'job')} failed while verifying the cluster")
    if quiet or findings.any:
        notices.say(f"cluster-verify: {findings.summary()}")
    return 0 if all(outcome.ok and outcome.result for outcome in outcomes) else 1


@CLUSTER.command(
    "verify-disks",
    op="OP_CLUSTER_VERIFY_DISKS",
    names={
        "group_name": override("-g", "--node-group"),
        "is_strict": override("--no-strict"),
    },
    options=(o.PRIORITY,),
)
def verify_disks(call: Call) -> int:
    """Find disks that are inactive or missing, and activate them where possible."""
    result = jobs.run(call)
    code = 0
    for outcome in jobs.wait_many(call, jobs.children(result), announce=True):
        if not outcome.ok:
            code = 1
            continue
        code = max(code, _treat_disks(call, *outcome.result))
    return code


def _treat_disks(
    call: Call,
    unreachable: dict[str, str],
    inactive: list[str],
    missing: dict[str, list[list[str]]],
) -> int:
    """Report which disks of a group are missing and activate inactive disks; the exit code."""
    code = 0
    for node, reason in sorted(unreachable.items()):
        print(f"Error gathering data on node {node}: {reason}")
        code = 1
    for instance in inactive:
        if instance in missing:
            continue
        print(f"Activating disks for instance '{instance}'")
        op = jobs.build(call, "OP_INSTANCE_ACTIVATE_DISKS", instance_name=instance)
        outcomes = jobs.run_many(call, [(instance, op)], announce=False)
        code = max(code, jobs.exit_code(outcomes))
    for instance, disks in sorted(missing.items()):
        # a logical volume is "group/name", a file has a full path
        logical = all("/" in place[1:] and place[0] != "/" for _node, place in disks)
        what = "logical volumes" if logical else "disks"
        print(f"Instance '{instance}' has missing {what}:")
        for node, place in disks:
            print(f"  node {node}, {'path' if place.startswith('/') else 'volume'} {place}")
        repair = "replace-disks or recreate-disks" if logical else "recreate-disks"
        notices.say(
            f"Instance '{instance}' cannot be started; gnt-instance {repair} makes the"
            f" {what.removeprefix('logical ')} again"
        )
        code = 1
    return code


@CLUSTER.command(
    "repair-disk-sizes",
    take_many("instance", field="instances"),
    op="OP_CLUSTER_REPAIR_DISK_SIZES",
    options=o.PLAN_OPTIONS,
)
def repair_disk_sizes(call: Call) -> None:
    """Correct recorded sizes of disks that differ from the real ones."""
    changed: list[Any] = jobs.run(call)
    for instance, disk, kind, size in changed or ():
        print(f"Disk {disk} of {instance}: {kind} is {size} now")
