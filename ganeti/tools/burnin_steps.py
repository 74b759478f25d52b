"""Steps of burnin with an instance, one after the other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ganeti.base.json_types import JsonObject


@dataclass(frozen=True)
class Wish:
    """The options."""

    os: str
    template: str
    hypervisor: str
    disk_sizes: tuple[int, ...] = (1024,)
    disk_growth: tuple[int, ...] = (128,)
    maxmem: int = 256
    minmem: int = 256
    vcpus: int = 1
    iallocator: str = ""
    nics: bool = True
    reboot_types: tuple[str, ...] = ("soft", "hard", "full")
    rename: str = ""
    early_release: bool = False
    #: names of the steps that are left out because somebody wants it
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ability:
    """The abilities of disks and hypervisor."""

    mirrored: bool
    shared: bool
    growable: bool
    diskless: bool
    migratable: bool


@dataclass(frozen=True)
class Place:
    """An instance and where it is."""

    name: str
    primary: str
    secondary: str = ""
    index: int = 0


@dataclass(frozen=True)
class Step:
    """Something that is done with each instance; ``ops`` makes the opcodes of one job."""

    name: str
    ops: Callable[[Place], list[JsonObject]]
    #: one instance at a time, also when others are done in parallel
    alone: bool = False


@dataclass
class Plan:
    """Steps that are done, and why others are not."""

    steps: list[Step] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def plan(wish: Wish, can: Ability, nodes: Sequence[str]) -> Plan:
    """All steps that this template and hypervisor allow on these nodes, between add and remove."""
    made = Plan()
    for name, step, reason in _all(wish, can, nodes):
        if name in wish.without:
            made.left_out[name] = "not wanted"
        elif reason:
            made.left_out[name] = reason
        else:
            made.steps.append(Step(name, step, alone=name == "rename"))
    return made


def _all(
    wish: Wish, can: Ability, nodes: Sequence[str]
) -> Iterator[tuple[str, Callable[[Place], list[JsonObject]], str]]:
    """Name, opcodes, and why it cannot be done."""
    alone = "there is one node only" if len(nodes) < 2 else ""
    unmirrored = "" if can.mirrored else f"disks of template {wish.template} have no mirror"
    fixed = (
        "" if can.mirrored or can.shared else f"disks of template {wish.template} stay on a node"
    )
    problem = "" if len(nodes) > 2 or wish.iallocator else "it needs three nodes or an allocator"
    without_disks = "the instances have no disks" if can.diskless else ""
    small = "minimum and maximum memory are the same" if wish.minmem == wish.maxmem else ""
    rigid = "" if can.growable else f"disks of template {wish.template} cannot grow"
    if not any(wish.disk_growth):
        rigid = "not wanted"
    movable = "" if not (can.mirrored or can.shared or can.diskless) else "failover does it"
    ports = "" if can.migratable else f"{wish.hypervisor} cannot migrate instances"
    ring = _map_to_next(nodes)
    yield "memory", lambda at: _memory(wish, at), small
    yield "replace1", lambda at: _replace_same(wish, at), unmirrored
    yield "replace2", lambda at: _replace_new(wish, at, nodes), unmirrored or problem
    yield "grow", lambda at: _grow(wish, at), without_disks or rigid
    yield "failover", lambda at: [_to("OP_INSTANCE_FAILOVER", at, can, ring)], alone or fixed
    yield "migrate", lambda at: _migrate(at, can, ring), alone or fixed or ports
    yield "move", lambda at: [_op("MOVE", at, target_node=ring[at.primary])], alone or movable
    yield "importexport", lambda at: _export_and_import(wish, can, at, ring), without_disks
    yield "reinstall", lambda at: _reinstall(wish, at), without_disks
    yield (
        "reboot",
        lambda at: [_op("REBOOT", at, reboot_type=kind) for kind in wish.reboot_types],
        ("" if wish.reboot_types else "no type of reboot is wanted"),
    )
    yield "rename", lambda at: _rename(wish, at), "" if wish.rename else "no name is given"
    yield "activate-disks", _activate, without_disks
    yield "add-disks", _disks, without_disks
    yield "add-nics", _nics, ""
    yield "startstop", lambda at: [_op("SHUTDOWN", at), _op("STARTUP", at)], ""


def create(wish: Wish, can: Ability, nodes: Sequence[str], at: Place) -> list[JsonObject]:
    """The job that adds an instance."""
    where: JsonObject = {"iallocator": wish.iallocator}
    if not wish.iallocator:
        where = {"pnode": nodes[at.index % len(nodes)]}
        if can.mirrored:
            where["snode"] = nodes[(at.index + 1) % len(nodes)]
    disks = [] if can.diskless else [{"size": size} for size in wish.disk_sizes]
    return [
        _op(
            "CREATE",
            at,
            mode="create",
            os_type=wish.os,
            disk_template=wish.template,
            disks=disks,
            nics=[{}] if wish.nics else [],
            hypervisor=wish.hypervisor,
            beparams={"minmem": wish.minmem, "maxmem": wish.maxmem, "vcpus": wish.vcpus},
            **where,
        )
    ]


def remove(at: Place) -> list[JsonObject]:
    """The job that removes an instance, whatever state it is in."""
    return [_op("REMOVE", at, ignore_failures=True)]


def _op(verb: str, at: Place, **params: object) -> JsonObject:
    return {"OP_ID": f"OP_INSTANCE_{verb}", "instance_name": at.name, **params}


def _map_to_next(nodes: Sequence[str]) -> dict[str, str]:
    """The node after each node."""
    return dict(zip(nodes, [*nodes[1:], *nodes[:1]]))


def _to(op_id: str, at: Place, can: Ability, ring: dict[str, str], **params: object) -> JsonObject:
    """A change of the node; instances on mirrored disks have one node to go to."""
    target = {} if can.mirrored else {"target_node": ring[at.primary]}
    return {"OP_ID": op_id, "instance_name": at.name, **target, **params}


def _memory(wish: Wish, at: Place) -> list[JsonObject]:
    return [_op("SET_PARAMS", at, runtime_mem=size) for size in (wish.minmem, wish.maxmem)]


def _replace_same(wish: Wish, at: Place) -> list[JsonObject]:
    return [
        _op("REPLACE_DISKS", at, mode=mode, early_release=wish.early_release)
        for mode in ("replace_on_secondary", "replace_on_primary")
    ]


def _replace_new(wish: Wish, at: Place, nodes: Sequence[str]) -> list[JsonObject]:
    where: JsonObject = {"iallocator": wish.iallocator}
    if not wish.iallocator:
        where = {"remote_node": next(n for n in nodes if n not in (at.primary, at.secondary))}
    mode = "replace_new_secondary"
    return [_op("REPLACE_DISKS", at, mode=mode, early_release=wish.early_release, **where)]


def _grow(wish: Wish, at: Place) -> list[JsonObject]:
    return [
        _op("GROW_DISK", at, disk=index, amount=amount)
        for index, amount in enumerate(wish.disk_growth[: len(wish.disk_sizes)])
        if amount
    ]


def _migrate(at: Place, can: Ability, ring: dict[str, str]) -> list[JsonObject]:
    """A migration, and the clean-up after one, which finds nothing to do."""
    cleanup = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": at.name, "cleanup": True}
    return [_to("OP_INSTANCE_MIGRATE", at, can, ring), cleanup]


def _export_and_import(
    wish: Wish, can: Ability, at: Place, ring: dict[str, str]
) -> list[JsonObject]:
    """An export to another node, then the instance is made of it again, where it was."""
    keeper = ring[at.primary]
    nodes: JsonObject = {"pnode": at.primary}
    if can.mirrored:
        nodes["snode"] = at.secondary
    return [
        {"OP_ID": "OP_BACKUP_EXPORT", "instance_name": at.name, "target_node": keeper},
        _op("REMOVE", at),
        _op(
            "CREATE",
            at,
            mode="import",
            src_node=keeper,
            src_path=at.name,
            disk_template=wish.template,
            disks=[],
            nics=[],
            **nodes,
        ),
        {"OP_ID": "OP_BACKUP_REMOVE", "instance_name": at.name},
    ]


def _reinstall(wish: Wish, at: Place) -> list[JsonObject]:
    again = [_op("REINSTALL", at), _op("REINSTALL", at, os_type=wish.os)]
    return [_op("SHUTDOWN", at), *again, _op("STARTUP", at)]


def _rename(wish: Wish, at: Place) -> list[JsonObject]:
    there = Place(wish.rename, at.primary)
    return [
        _op("SHUTDOWN", at),
        _op("RENAME", at, new_name=there.name),
        _op("STARTUP", there),
        _op("SHUTDOWN", there),
        _op("RENAME", there, new_name=at.name),
        _op("STARTUP", at),
    ]


def _activate(at: Place) -> list[JsonObject]:
    return [
        _op("ACTIVATE_DISKS", at),
        _op("SHUTDOWN", at),
        _op("ACTIVATE_DISKS", at),
        _op("DEACTIVATE_DISKS", at),
        _op("STARTUP", at),
    ]


def _disks(at: Place) -> list[JsonObject]:
    """A disk is added while the instance runs, and taken away while it does not."""
    return [
        _op("SET_PARAMS", at, disks=[["add", -1, {"size": 128}]], hotplug=False),
        _op("SHUTDOWN", at),
        _op("SET_PARAMS", at, disks=[["remove", -1, {}]]),
        _op("STARTUP", at),
    ]


def _nics(at: Place) -> list[JsonObject]:
    return [
        _op("SET_PARAMS", at, nics=[["add", -1, {}]], hotplug=False),
        _op("SHUTDOWN", at),
        _op("SET_PARAMS", at, nics=[["remove", -1, {}]]),
        _op("STARTUP", at),
    ]
