"""Answers of nodes about instances: whether they run, where, with what, and their consoles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.config import Config
from ganeti.model.enums import (
    AdminState,
    AdminStateSource,
    HypervisorName,
    InstanceStatus,
    RunState,
)
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.query.field import (
    NODATA,
    OFFLINE,
    UNAVAIL,
    Context,
    Field,
    Getter,
    Kind,
    Task,
    make_failed_cell,
)
from ganeti.query.kinds.instance_params import inherited_hvparams
from ganeti.query.live import NO_ANSWER, Answers, Need, NodeState
from ganeti.rpc.objects import InstanceInfo
from ganeti.storage.registry import traits_of


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields that need the nodes."""
    needs = frozenset({Need.INSTANCES})
    for name, title, value_kind, doc, getter in (
        (
            "oper_ram",
            "Memory",
            FieldKind.UNIT,
            "Memory that the instance has now",
            _guest_number(lambda info: info.memory),
        ),
        (
            "oper_vcpus",
            "VCPUs",
            FieldKind.NUMBER,
            "Number of virtual processors that the instance has now",
            _guest_number(lambda info: info.vcpus),
        ),
        ("oper_state", "Running", FieldKind.BOOL, "Whether the instance runs", _oper_state),
        (
            "status",
            "Status",
            FieldKind.TEXT,
            "State of the instance, compared with the wanted one",
            _status,
        ),
    ):
        kind.add(Field(name, title, value_kind, doc, getter, needs))
    doc = "How to reach the console"
    kind.add(
        Field("console", "Console", FieldKind.OTHER, doc, _console, frozenset({Need.CONSOLES}))
    )


# asking --------------------------------------------------------------------------------------


def tasks(ctx: Context, needs: frozenset[Need], rows: Sequence[Instance]) -> Mapping[Need, Task]:
    """The calls for the instances; nodes that are marked offline are not asked."""
    found: dict[Need, Task] = {}
    if Need.INSTANCES in needs:
        nodes = _nodes_to_ask(ctx, rows)
        hypervisors = ctx.config.cluster.enabled_hypervisors
        found[Need.INSTANCES] = lambda: (
            ctx.sources.instances_info(nodes, hypervisors) if nodes else {}
        )
    if Need.CONSOLES in needs:
        reachable = [
            instance
            for instance in rows
            if (node := _primary(ctx, instance)) is not None and not node.offline
        ]
        found[Need.CONSOLES] = lambda: ctx.sources.consoles(reachable) if reachable else {}
    return found


def _primary(ctx: Context, instance: Instance) -> Node | None:
    """The primary node; None for an instance that is only reserved so far."""
    return None if instance.forthcoming else ctx.config.nodes.get(instance.primary_node)


def _nodes_to_ask(ctx: Context, rows: Sequence[Instance]) -> list[Node]:
    """Nodes on which one of the instances could run, in natural order."""
    config, tables = ctx.config, ctx.tables
    wanted: set[str] = set()
    groups: set[str] = set()
    for instance in rows:
        node = _primary(ctx, instance)
        if node is None:
            continue
        wanted.add(node.uuid)
        wanted.update(tables.secondary_nodes[instance.uuid])
        if node.group not in groups and not _is_local(config, instance):
            groups.add(node.group)
    return [
        node
        for node in tables.nodes
        if not node.offline and (node.uuid in wanted or (node.group in groups and node.vm_capable))
    ]


def _is_local(config: Config, instance: Instance) -> bool:
    """Whether its data is on its own nodes, so that it can run nowhere else."""
    disks = [config.disks.get(uuid) for uuid in instance.disks]
    return bool(disks) and all(
        disk is not None and disk.dev_type is not None and not traits_of(disk.dev_type).shared
        for disk in disks
    )


# answers -------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Place where an instance was found; else ``problem`` is the cell of its live fields."""

    problem: Cell | None
    info: InstanceInfo | None = None
    on_primary: bool = False


_RESERVED = _Place(UNAVAIL)
_ON_OFFLINE = _Place(OFFLINE)
_UNREACHABLE = _Place(NODATA)
_NOWHERE = _Place(None)


def _finder(ctx: Context) -> Callable[[Instance], _Place]:
    """The function that tells where an instance runs."""
    nodes = ctx.config.nodes
    answers: Answers[Mapping[str, InstanceInfo]] = ctx.live[Need.INSTANCES]
    anywhere: dict[str, InstanceInfo] = {}
    for answer in answers.values():
        anywhere.update(answer.payload or {})

    # Every live field asks for the place.
    places: dict[str, _Place] = {}

    def find(instance: Instance) -> _Place:
        place = places.get(instance.uuid)
        if place is None:
            place = places[instance.uuid] = find_place(instance)
        return place

    def find_place(instance: Instance) -> _Place:
        node = nodes.get(instance.primary_node)
        if node is None or instance.forthcoming:
            return _RESERVED
        if node.offline:
            return _ON_OFFLINE
        answer = answers.get(node.uuid, NO_ANSWER)
        if answer.state is not NodeState.OK:
            return _ON_OFFLINE if answer.state is NodeState.OFFLINE else _UNREACHABLE
        info = (answer.payload or {}).get(instance.name)
        if info is not None:
            return _Place(None, info, True)
        info = anywhere.get(instance.name)
        return _NOWHERE if info is None else _Place(None, info)

    return find


def _guest_number(read: Callable[[InstanceInfo], int]) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        find = ctx.compute_once(_finder)

        def column(instance: Instance) -> Cell:
            place = find(instance)
            if place.info is None:
                return place.problem or UNAVAIL
            return (0, read(place.info))

        return column

    return getter


def _oper_state(ctx: Context) -> Column[Instance]:
    find = ctx.compute_once(_finder)

    def column(instance: Instance) -> Cell:
        place = find(instance)
        if place.problem is not None:
            return place.problem
        return (0, place.info is not None and place.info.state == RunState.RUNNING)

    return column


def _console(ctx: Context) -> Column[Instance]:
    consoles = ctx.live[Need.CONSOLES]

    def column(instance: Instance) -> Cell:
        node = _primary(ctx, instance)
        if node is None:
            return UNAVAIL
        if node.offline:
            return OFFLINE
        answer = consoles.get(instance.uuid, NO_ANSWER)
        if answer.payload is None:
            return make_failed_cell(answer)
        return (0, msgspec.to_builtins(answer.payload))

    return column


# status --------------------------------------------------------------------------------------


def _status(ctx: Context) -> Column[Instance]:
    find = ctx.compute_once(_finder)
    may_stop = _make_stop_check(ctx)

    def column(instance: Instance) -> Cell:
        place = find(instance)
        if place is _ON_OFFLINE:
            return (0, InstanceStatus.ERROR_NODE_OFFLINE.value)
        if place is _UNREACHABLE:
            return (0, InstanceStatus.ERROR_NODE_DOWN.value)
        if place.info is not None and not place.on_primary:
            return (0, InstanceStatus.ERROR_WRONG_NODE.value)
        return (0, _compare(instance, place.info, may_stop).value)

    return column


def _compare(
    instance: Instance, info: InstanceInfo | None, may_stop: Callable[[Instance], bool]
) -> InstanceStatus:
    """Compare the guest on the primary node with the wanted state."""
    wanted = instance.admin_state
    if info is not None and info.state == RunState.RUNNING:
        return InstanceStatus.RUNNING if wanted is AdminState.UP else InstanceStatus.ERROR_UP
    if wanted is AdminState.UP:
        stopped_inside = info is not None and may_stop(instance)
        return InstanceStatus.USER_DOWN if stopped_inside else InstanceStatus.ERROR_DOWN
    if wanted is AdminState.OFFLINE:
        return InstanceStatus.ADMIN_OFFLINE
    if instance.admin_state_source is AdminStateSource.USER and may_stop(instance):
        return InstanceStatus.USER_DOWN
    return InstanceStatus.ADMIN_DOWN


def _make_stop_check(ctx: Context) -> Callable[[Instance], bool]:
    """Whether users may stop an instance from inside; KVM has a parameter for that."""
    if not ctx.config.cluster.enabled_user_shutdown:
        return lambda _: False
    inherited = ctx.compute_once(inherited_hvparams)

    def may_stop(instance: Instance) -> bool:
        if instance.hypervisor is not HypervisorName.KVM:
            return True
        own = instance.hvparams
        return bool(own.get("user_shutdown", inherited(instance).get("user_shutdown")))

    return may_stop
