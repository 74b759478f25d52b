"""gnt-cluster: switch many nodes off in an emergency, and on again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ganeti import constants, errors
from ganeti.base.clock import Deadline
from ganeti.base.record import Record
from ganeti.base.text import plural
from ganeti.cli import jobs, notices, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.fields import override
from ganeti.cli.option import switch
from ganeti.cli.programs import CLUSTER
from ganeti.model import start_order

#: Seconds until nodes that were switched on must answer, between two looks, and for each look.
BOOT_SECONDS = 900.0
LOOK_SECONDS = 5.0
PROBE_SECONDS = 1.0

_ON = switch("--on", dest="on", help="Switch the nodes on again, and start their instances")
_GROUPS = switch("--groups", dest="groups", help="The arguments are node groups: all their nodes")
_ALL = switch("--all", dest="show_all", help="All nodes of the cluster; no arguments")
_FIELDS = ("name", "uuid", "pip", "offline", "powered", "pinst_list", "group", "group.uuid", "role")


class _Node(Record):
    name: str
    address: str
    offline: bool
    #: None: it has no out-of-band helper
    powered: bool | None
    primaries: tuple[str, ...]
    #: name and UUID of its group
    group: tuple[str, str]
    master: bool


@CLUSTER.command(
    "epo",
    take_many("node"),
    op="OP_OOB_COMMAND",
    only=("timeout", "power_delay"),
    names={"timeout": override("--oob-timeout")},
    also={"OP_INSTANCE_STARTUP": ("shutdown_timeout",)},
    options=(_ON, _GROUPS, _ALL, o.FORCE),
    usage="[--on] {--all | --groups <group>... | <node>...}",
)
def epo(call: Call) -> int:
    """Emergency power-off: stop instances and switch nodes off; --on undoes it.

    First all instances whose primary node is one of these stop, at the same time; they stay
    marked as up. Then the nodes are marked as offline and switched off with their
    out-of-band helper. The master node is never switched off: name other nodes, or use --all and
    switch it off by hand at the end.

    With --on the nodes that were switched off are switched on one after the other and set online
    as soon as they answer. An instance that should run is started when all its nodes are there,
    in the order of the tags ganeti:order:N.
    """
    nodes = _nodes(call)
    if call.opts.on:
        return _switch_on(call, nodes)
    return _switch_off(call, nodes)


def _nodes(call: Call) -> list[_Node]:
    """The nodes that are meant; OpPrereqError."""
    opts, args = call.opts, call.args
    if opts.groups and opts.show_all:
        raise _make_error("Give either --groups or --all, not both")
    if bool(args) == opts.show_all:
        raise _make_error("Name nodes, or groups with --groups, or give --all without names")
    names = [] if opts.groups else args
    rows = call.client.query_nodes(names, _FIELDS)
    found = [
        _Node(
            str(name),
            str(address),
            bool(offline),
            powered,
            tuple(map(str, primaries or ())),
            (str(group), str(group_uuid)),
            role == "M",
        )
        for name, _uuid, address, offline, powered, primaries, group, group_uuid, role in rows
    ]
    if not opts.groups:
        selection.refuse_unknown(call.client, "node", names, [row[:2] for row in rows])
        return found
    known = call.client.query_groups([], ["name", "uuid"])
    selection.refuse_unknown(call.client, "node group", args, known)
    return [node for node in found if set(node.group) & set(args)]


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


def _confirm(call: Call, nodes: Sequence[_Node], verb: str) -> bool:
    names = [node.name for node in nodes]
    return bool(call.opts.force) or selection.confirm(names, "node", verb)


# off ---------------------------------------------------------------------------------------------


def _switch_off(call: Call, nodes: Sequence[_Node]) -> int:
    master = next((node.name for node in nodes if node.master), None)
    if master is not None and not call.opts.show_all:
        raise _make_error(
            f"Node {master} is the master; make another node the master first (gnt-cluster"
            " master-failover), or switch everything off with --all"
        )
    goal = [node.name for node in nodes if _can_go_off(node)]
    if not _confirm(call, nodes, "Stop the instances of these nodes and switch off"):
        return 1
    if not _stop_instances(call, nodes):
        notices.say("Nothing was switched off; stop these instances by hand and try again")
        return 1
    if goal and not _power_off(call, nodes, goal):
        return 1
    if master is not None:
        print(f"The master node {master} is still on; switch it off by hand")
    return 0


def _can_go_off(node: _Node) -> bool:
    """Whether a node is switched off; says why not."""
    if node.master:
        return False
    if node.powered is None:
        print(f"Node {node.name} has no out-of-band helper; switch it off by hand")
    elif not node.powered:
        print(f"Node {node.name} is off already")
    return bool(node.powered)


def _stop_instances(call: Call, nodes: Sequence[_Node]) -> bool:
    """Stop what runs on nodes; whether that succeeded."""
    names = [name for node in nodes if not node.offline for name in node.primaries]
    running = [
        str(name)
        for name, runs, forthcoming in _instances(call, names, "oper_state", "forthcoming")
        if runs is not False and not forthcoming
    ]
    work = [
        (
            name,
            jobs.build(
                call,
                "OP_INSTANCE_SHUTDOWN",
                instance_name=name,
                timeout=call.opts.shutdown_timeout,
                no_remember=True,
            ),
        )
        for name in running
    ]
    return _all_well(call, work)


def _instances(call: Call, names: Sequence[str], *fields: str) -> list[list[Any]]:
    """Name and fields of these instances; no names are none."""
    return call.client.query_instances(names, ["name", *fields]) if names else []


def _all_well(call: Call, work: Sequence[tuple[str, jobs.WireOp]]) -> bool:
    if not work:
        return True
    return jobs.exit_code(jobs.run_many(call, work, announce=True)) == 0


def _power_off(call: Call, nodes: Sequence[_Node], names: Sequence[str]) -> bool:
    """Mark all as offline before the first is off, so that nothing waits for a dead candidate."""
    role = {"force": True} if call.opts.show_all else {"auto_promote": True}
    ops = [
        jobs.build(call, "OP_NODE_SET_PARAMS", node_name=node.name, offline=True, **role)
        for node in nodes
        if node.name in names and not node.offline
    ]
    ops.append(_oob(call, "power-off", names))
    return not _find_failed_nodes(jobs.run_ops(call, ops)[-1])


def _oob(call: Call, command: str, names: Sequence[str]) -> jobs.WireOp:
    return jobs.build_own(call, node_names=list(names), command=command)


def _find_failed_nodes(rows: Sequence[Any]) -> list[str]:
    """Nodes whose out-of-band helper failed, which is said."""
    failed = [str(name) for (_, name), (status, _value) in rows if status != 0]
    for name in failed:
        notices.say(f"Node {name}: the out-of-band helper failed")
    return failed


# on ----------------------------------------------------------------------------------------------


def _switch_on(call: Call, nodes: Sequence[_Node]) -> int:
    off = [node for node in nodes if node.powered is False]
    for node in nodes:
        if node.offline and node not in off:
            print(f"Node {node.name} is offline, but not recorded as switched off: it stays so")
    back = [node for node in nodes if not node.offline or node in off]
    if not _confirm(call, back, "Switch on, and start the instances of,"):
        return 1
    failed: list[str] = []
    if off:
        op = _oob(call, "power-on", [node.name for node in off])
        failed = _find_failed_nodes(jobs.run_ops(call, [op])[-1])
    waiting = [node for node in back if node.name not in failed]
    return 0 if _welcome(call, waiting) and not failed else 1


def _welcome(call: Call, nodes: Sequence[_Node]) -> bool:
    """Wait for nodes, set them online and start their instances; whether all went well."""
    from ganeti.base import patience

    end = Deadline(patience.scale(BOOT_SECONDS), call.clock)
    waiting, well = list(nodes), True
    while waiting:
        there = _find_answering_nodes(waiting)
        waiting = [node for node in waiting if node not in there]
        if there:
            well &= _set_online(call, [node for node in there if node.offline])
            well &= _start_instances(call, nodes, absent=waiting)
        if not waiting:
            break
        if end.has_passed:
            names = ", ".join(node.name for node in waiting)
            notices.say(f"After {BOOT_SECONDS:.0f} s there is no answer from {names}")
            return False
        if not there:
            call.clock.sleep(LOOK_SECONDS)
    return well


def _find_answering_nodes(nodes: Sequence[_Node]) -> list[_Node]:
    """Nodes whose node daemon can be connected to."""
    from ganeti.net import probe, resolve

    port = resolve.port(constants.NODED)
    targets = {probe.Target(node.address, port): node for node in nodes}
    silent = probe.find_unreachable(list(targets), PROBE_SECONDS)
    return [node for target, node in targets.items() if target not in silent]


def _set_online(call: Call, nodes: Sequence[_Node]) -> bool:
    work = [
        (
            node.name,
            jobs.build(
                call,
                "OP_NODE_SET_PARAMS",
                node_name=node.name,
                offline=False,
                auto_promote=True,
            ),
        )
        for node in nodes
    ]
    return _all_well(call, work)


def _start_instances(call: Call, nodes: Sequence[_Node], *, absent: Collection[_Node]) -> bool:
    """Start what should run and does not, on nodes that are there; all nodes of it must be."""
    missing = {node.name for node in absent}
    names = [name for node in nodes if node.name not in missing for name in node.primaries]
    down = sorted(
        (start_order.get_order(tags or ()), str(name))
        for name, wanted, runs, secondaries, tags in _instances(
            call, names, "admin_state", "oper_state", "snodes", "tags"
        )
        if wanted == "up" and runs is False and not missing & {*(secondaries or ())}
    )
    if down:
        print(f"Starting {plural(len(down), 'instance')}", flush=True)
    ops = [
        jobs.build(call, "OP_INSTANCE_STARTUP", instance_name=name, no_remember=True)
        for _order, name in down
    ]
    ops = start_order.with_dependencies(ops, [order for order, _name in down])
    return _all_well(call, [(name, op) for (_order, name), op in zip(down, ops, strict=True)])
