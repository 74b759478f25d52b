"""gnt-cluster: check the cluster and its disks."""

from __future__ import annotations

from typing import Any

from ganeti.base.text import plural
from ganeti.cli import jobs, notices
from ganeti.cli import options as o
from ganeti.cli.command import Call, many
from ganeti.cli.option import switch, values_of
from ganeti.cli.programs import CLUSTER

_SIMULATE = switch(
    "--debug-simulate-errors", dest="simulate_errors", help="Report every check as failed"
)
_ERROR_CODES = switch(
    "--error-codes", dest="error_codes", group="Output", help="Report in a form for programs"
)
_NO_NPLUS1 = switch(
    "--no-nplus1-mem", dest="skip_nplusone_mem",
    help="Do not check whether memory suffices when a node fails",
)  # fmt: skip
_NO_HV_ASSESSMENT = switch(
    "--no-hv-param-assessment", dest="skip_hvparam_assessment",
    help="Skip hypervisor parameter checks",
)  # fmt: skip
_CLUTTER = switch(
    "--verify-ssh-clutter", dest="verify_clutter",
    help="Also look for keys of unknown nodes in SSH files",
)  # fmt: skip
_NO_STRICT = switch(
    "--no-strict", dest="no_strict", help="Do not report unreachable nodes as errors"
)


#: Kinds of findings that may be ignored.
CODES = (
    "ECLUSTERCERT", "ECLUSTERCFG", "ECLUSTERCLIENTCERT", "ECLUSTERDANGLINGINST",
    "ECLUSTERDANGLINGNODES", "ECLUSTERFILECHECK", "EEXTAGS", "EGROUPDIFFERENTPVSIZE",
    "EINSTANCEBADNODE", "EINSTANCEDOWN", "EINSTANCEFAULTYDISK", "EINSTANCELAYOUT",
    "EINSTANCEMISSINGCFGPARAMETER", "EINSTANCEMISSINGDISK", "EINSTANCEPOLICY",
    "EINSTANCESPLITGROUPS", "EINSTANCEUNSUITABLENODE", "EINSTANCEWRONGNODE", "ENODEDRBD",
    "ENODEDRBDHELPER", "ENODEDRBDVERSION", "ENODEFILECHECK", "ENODEFILESTORAGEPATHS",
    "ENODEFILESTORAGEPATHUNUSABLE", "ENODEGLUSTERSTORAGEPATHUNUSABLE", "ENODEHOOKS", "ENODEHV",
    "ENODELVM", "ENODEN1", "ENODENET", "ENODEOOBPATH", "ENODEORPHANFILE", "ENODEORPHANINSTANCE",
    "ENODEORPHANLV", "ENODEOS", "ENODERPC", "ENODESETUP", "ENODESHAREDFILESTORAGEPATHUNUSABLE",
    "ENODESSH", "ENODETIME", "ENODEUSERSCRIPTS", "ENODEVERSION",
)  # fmt: skip
_IGNORE_ERRORS = values_of(
    "-I", "--ignore-errors", dest="ignore_errors", metavar="<code>", choices=CODES,
    help="Report errors of this kind as warnings",
)  # fmt: skip


@CLUSTER.command(
    "verify",
    options=(
        o.VERBOSE, _SIMULATE, _ERROR_CODES, _NO_NPLUS1, _NO_HV_ASSESSMENT, *o.PLAN_OPTIONS,
        o.NODE_GROUP, _IGNORE_ERRORS, _CLUTTER,
    ),
)  # fmt: skip
def verify(call: Call) -> int:
    """Check configuration, nodes and instances; fails when something is wrong."""
    opts = call.opts
    skipped = []
    if opts.skip_nplusone_mem:
        skipped.append("nplusone_mem")
    if opts.skip_hvparam_assessment:
        skipped.append("hvparam_assessment")
    result = jobs.run_op(
        call,
        "OP_CLUSTER_VERIFY",
        verbose=opts.verbose,
        error_codes=opts.error_codes,
        debug_simulate_errors=opts.simulate_errors,
        skip_checks=skipped,
        ignore_errors=opts.ignore_errors,
        group_name=opts.nodegroup,
        verify_clutter=opts.verify_clutter,
    )
    outcomes = jobs.wait_many(call, jobs.children(result), announce=True)
    failed = sum(not outcome.ok for outcome in outcomes)
    if failed:
        print(f"{plural(failed, 'job')} failed while verifying the cluster")
    return 0 if all(outcome.ok and outcome.result for outcome in outcomes) else 1


@CLUSTER.command("verify-disks", options=(o.PRIORITY, o.NODE_GROUP, _NO_STRICT))
def verify_disks(call: Call) -> int:
    """Look for disks that are not active or missing, and activate them where possible."""
    result = jobs.run_op(
        call,
        "OP_CLUSTER_VERIFY_DISKS",
        group_name=call.opts.nodegroup,
        is_strict=not call.opts.no_strict,
    )
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
    """Report what a group lacks and activate inactive disks; the exit code."""
    code = 0
    for node, why in sorted(unreachable.items()):
        print(f"Error gathering data on node {node}: {why}")
        code = 1
    for instance in inactive:
        if instance in missing:
            continue
        print(f"Activating disks for instance '{instance}'")
        op = jobs.build(call, "OP_INSTANCE_ACTIVATE_DISKS", instance_name=instance)
        outcomes = jobs.run_many(call, [(instance, op)], announce=False)
        code = max(code, jobs.exit_code(outcomes))
    for instance, volumes in sorted(missing.items()):
        print(f"Instance '{instance}' has missing logical volumes:")
        for node, volume in volumes:
            print(f"  node {node}, volume {volume}")
        notices.say(
            f"Instance '{instance}' cannot be started; gnt-instance replace-disks or"
            " recreate-disks makes the volumes again"
        )
        code = 1
    return code


@CLUSTER.command("repair-disk-sizes", many("instance"), options=o.PLAN_OPTIONS)
def repair_disk_sizes(call: Call) -> None:
    """Correct recorded sizes of disks that differ from the real ones."""
    changed: list[Any] = jobs.run_op(call, "OP_CLUSTER_REPAIR_DISK_SIZES", instances=call.args)
    for instance, disk, kind, size in changed or ():
        print(f"Disk {disk} of {instance}: {kind} is {size} now")
