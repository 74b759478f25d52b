"""gnt-node: move instances off a node."""

from __future__ import annotations

from ganeti.cli import departures, jobs, notices, params, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import NODE

_ROLES = {
    "primary-only": ("-p", "--primary-only", "Only instances whose primary node it is"),
    "secondary-only": ("-s", "--secondary-only", "Only instances whose secondary node it is"),
}
#: Instances that leave -> the query fields that name them.
_LEAVING = {
    "all": ("pinst_list", "sinst_list"),
    "primary-only": ("pinst_list",),
    "secondary-only": ("sinst_list",),
}
_NAME = take_one("node", "node_name")


def _instances_of(call: Call, name: str, *fields: str) -> dict[str, None]:
    selection.find_node(call.client, name)
    row = call.client.query_nodes([name], list(fields))[0]
    return dict.fromkeys(str(item) for found in row for item in found or ())


def _confirm(call: Call, names: dict[str, None], verb: str) -> bool:
    return bool(call.opts.force) or selection.confirm(list(names), "instance", verb)


@NODE.command(
    "evacuate",
    _NAME,
    op="OP_NODE_EVACUATE",
    names={"ignore_soft_errors": override(kind="switch"), "mode": override(each=_ROLES)},
    options=(o.FORCE, *o.JOB_OPTIONS),
)
def evacuate(call: Call) -> int:
    """Move all instances off a node.

    Without -p and -s: all instances whose primary or secondary node it is.
    With --dry-run only print, for each instance, where it would move and by which operations.
    """
    opts = call.opts
    mode = call.spec.parameters(call)["mode"] or "all"
    name = call.args[0]
    names = _instances_of(call, name, *_LEAVING[mode])
    if not names:
        print(f"No instances to evacuate from node {name}")
        return 0
    if not opts.dry_run and not _confirm(call, names, f"Evacuate from {name}:"):
        return 1
    op = jobs.build_own(call, mode=mode, ignore_soft_errors=opts.ignore_soft_errors or None)
    feedback = jobs.report_entry if opts.dry_run else None
    result = jobs.run_ops(call, [op], feedback=feedback)[0]
    if opts.dry_run:
        departures.print_plan(result)
        return 0
    return departures.follow(call, result, "All instances were evacuated")


@NODE.command(
    "migrate",
    _NAME,
    op="OP_NODE_MIGRATE",
    names=params.MIGRATION,
    options=(o.FORCE, o.PRIORITY, *o.SUBMIT_OPTIONS),
)
def migrate(call: Call) -> int:
    """Live-migrate all instances off their primary node."""
    name = call.args[0]
    names = _instances_of(call, name, "pinst_list")
    if not names:
        print(f"No primary instances on node {name}, nothing to migrate")
        return 0
    if not _confirm(call, names, f"Migrate away from {name}:"):
        return 1
    result = jobs.run(call, **params.migration(call))
    return departures.follow(call, result, "All instances were migrated")


@NODE.command("fence", _NAME, op="OP_NODE_FENCE", options=(o.FORCE, *o.JOB_OPTIONS))
def fence(call: Call) -> int:
    """Prove that a node is dead, mark it offline, and start its instances elsewhere.

    The out-of-band helper or the fence agent of the node switches it off, and must then say that
    it is off. A node with a watchdog is dead when its lease is over. Without all of these, switch
    the node off yourself and add --confirm. A node that answers is not fenced. --test asks the
    out-of-band helper and the fence agent whether the node is on, and changes nothing.

    Instances fail over whose backend parameter ha is failover, or that tags allow to
    (ganeti:watcher:autorepair:failover on the instance, its group or the cluster), or all with
    --all-instances. Others are listed, with the reason.
    """
    name = call.args[0]
    if call.opts.test:
        print("\n".join(jobs.run_ops(call, [jobs.build_own(call)])[0]["test"]))
        return 0
    names = _instances_of(call, name, "pinst_list")
    if not (call.opts.dry_run or call.opts.force):
        question = f"Switch node {name} off and mark it offline?"
        if not notices.confirm(question, list(names), option="--force"):
            return 1
    result = jobs.run_ops(call, [jobs.build_own(call)], feedback=jobs.report_entry)[0]
    for item in result["left"]:
        print(f"{item['instance']} stays: {item['reason']}")
    if call.opts.dry_run:
        for instance in result["failovers"]:
            print(f"{instance} fails over")
        return 0
    return departures.follow(call, result, "All of these instances were failed over")


@NODE.command(
    "failover",
    take_one("node"),
    op="OP_INSTANCE_FAILOVER",
    only=("ignore_consistency", "iallocator"),
    options=(o.FORCE, o.PRIORITY),
)
def failover(call: Call) -> int:
    """Fail all primary instances of a node over to their secondary nodes."""
    name = call.args[0]
    names = _instances_of(call, name, "pinst_list")
    if not names:
        notices.say(f"No primary instances on node {name}, nothing to fail over")
        return 0
    if not _confirm(call, names, f"Fail over from {name}:"):
        return 1
    work = [(instance, jobs.build_own(call, instance_name=instance)) for instance in names]
    outcomes = jobs.run_many(call, work, announce=True)
    return departures.sum_up(outcomes, "All instances were failed over")
