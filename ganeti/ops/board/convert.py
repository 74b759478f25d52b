"""From the configuration and the answers of nodes to the facts of the placement model. Pure.

Reservations are told as such. An instance that is being made counts as one that runs: its node
does not know of it yet, so what it will use is taken off what the node says is free. The same
holds for disks that were made after the node was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from operator import is_not
from typing import Any, TypeVar

from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import MIXED_TEMPLATE, AdminState
from ganeti.model.ids import DiskUuid, InstanceUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.board.node_answers import SPINDLES, Answers, NodeFacts
from ganeti.placement import facts
from ganeti.storage import room
from ganeti.storage.registry import TEMPLATES

K = TypeVar("K")

#: Storage types whose units are directories of instances in one file system.
_DIRECTORIES = ("file", "sharedfile")


class _Converted:
    """The instances as they were converted the last time, with regard to one storage unit."""

    def __init__(self) -> None:
        self._instances: Mapping[InstanceUuid, Instance] = {}
        self._disks: Mapping[DiskUuid, Disk] = {}
        self._facts: dict[InstanceUuid, facts.Instance] = {}
        self.every: tuple[facts.Instance, ...] = ()
        #: memory of what runs by its name, for each node (by name)
        self.running: dict[str, dict[str, int]] = {}

    def renew(self, config: Config, unit: tuple[str, str]) -> None:
        """Convert what has changed; :attr:`every` is the same object when nothing has."""
        stale = set(differences(self._instances, config.instances))
        changed = [config.instances[key] for key in stale if key in config.instances]
        disks = {disk for item in changed for disk in item.disks}
        for uuid in differences(self._disks, config.disks):
            owner = None if uuid in disks else config.owner(uuid)
            if owner is not None:
                stale.add(owner.uuid)
        for key in stale:
            before = self._facts.pop(key, None)
            if before is not None:
                self.running.get(before.primary, {}).pop(before.name, None)
        for key in stale:
            item = config.instances.get(key)
            if item is None:
                continue
            fact = self._facts[key] = instance(config, item, unit)
            if fact.runs:
                self.running.setdefault(fact.primary, {})[fact.name] = fact.memory
        if stale:
            self.every = tuple(self._facts.values())
        self._instances, self._disks = config.instances, config.disks


def differences(old: Mapping[K, object], new: Mapping[K, object]) -> list[K]:
    """Keys whose objects, which never change themselves, are new, others or gone."""
    if old is new:
        return []
    found = list(compress(new, map(is_not, map(old.get, new), new.values())))
    added = sum(key not in old for key in found)
    gone = [key for key in old if key not in new] if len(old) + added > len(new) else []
    return found + gone


class Converter:
    """Remembers what it converted, as most instances are the same the next time.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._base: tuple[object, ...] = ()
        self._answered: dict[tuple[str, str], _Converted] = {}
        self._policies: tuple[object, object, facts.Policy, dict[str, facts.Policy]] | None = None

    def cluster(self, config: Config, answers: Answers) -> facts.Cluster:
        """The facts; nodes that did not answer, and drained ones, are unknown and not empty."""
        base = (config.nodes, config.cluster.beparams)
        if not _is_same(base, self._base):
            self._base, self._answered = base, {}
        answered = self._answered.setdefault(answers.unit, _Converted())
        answered.renew(config, answers.unit)
        policy, policies = self._policy(config)
        return facts.Cluster(
            groups=tuple(
                facts.Group(
                    group.name,
                    group.uuid,
                    str(group.alloc_policy),
                    tuple(group.tags),
                    tuple(group.networks),
                )
                for group in config.groups.values()
            ),
            nodes=nodes(config, answers, answered.running),
            instances=answered.every,
            tags=tuple(config.cluster.tags),
            policy=policy,
            policies=policies,
        )

    def _policy(self, config: Config) -> tuple[facts.Policy, dict[str, facts.Policy]]:
        base = (config.cluster.ipolicy, config.groups)
        known = self._policies
        if known is None or not _is_same(known[:2], base):
            made = {
                group.name: policy(config.ipolicy(group.uuid)) for group in config.groups.values()
            }
            known = (*base, policy(config.cluster.ipolicy), made)
            self._policies = known
        return known[2], known[3]


def _is_same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Whether both hold the very same objects, which never change."""
    return len(first) == len(second) and all(a is b for a, b in zip(first, second))


# nodes -------------------------------------------------------------------------------------------


def nodes(
    config: Config, answers: Answers, running: Mapping[str, Mapping[str, int]]
) -> tuple[facts.Node, ...]:
    """The nodes as the model sees them now; ``running`` is the memory of guests by their names."""
    since = _sum_made_since(config, answers)
    return tuple(
        _node(config, node, answers, since.get(node.uuid, (0, 0)), running.get(node.name, {}))
        for node in config.nodes.values()
    )


def _node(
    config: Config,
    node: Node,
    answers: Answers,
    claimed: tuple[int, int],
    running: Mapping[str, int],
) -> facts.Node:
    facts_of_node = answers.nodes.get(node.uuid)
    tags = tuple(node.tags)
    master = node.uuid == config.cluster.master_node
    usable = node.vm_capable and not node.offline and not node.drained
    # A hypervisor that has no memory at all tells nothing that could be used.
    if not usable or facts_of_node is None or facts_of_node.number("memory_total") <= 0:
        return facts.Node(
            *(node.name, node.group, 0, 0, 0, 0, 0, 0),
            offline=True,
            master=master,
            tags=tags,
            drained=node.drained and not node.offline and facts_of_node is not None,
        )
    params = config.ndparams(node)
    exclusive = bool(params.get("exclusive_storage"))
    speed = params.get("cpu_speed")
    count = facts_of_node.spindles[0] if exclusive else int(params.get("spindle_count") or 1)
    return facts.Node(
        name=node.name,
        group=node.group,
        memory=facts_of_node.number("memory_total"),
        node_memory=facts_of_node.number("memory_dom0"),
        free_memory=count_free_memory(facts_of_node, running),
        disk=facts_of_node.room[0],
        free_disk=max(0, facts_of_node.room[1] - claimed[0]),
        cpus=facts_of_node.number("cpu_total"),
        master=master,
        spindles=max(1, count),
        tags=tags,
        exclusive_storage=exclusive,
        free_spindles=max(0, facts_of_node.spindles[1] - claimed[1]),
        node_cpus=facts_of_node.number("cpu_dom0"),
        cpu_speed=float(speed) if isinstance(speed, int | float) and speed > 0 else 1.0,
    )


def count_free_memory(node_facts: NodeFacts, running: Mapping[str, int]) -> int:
    """Free memory of the hypervisor in MiB, without what its running instances may still take."""
    free = node_facts.number("memory_free")
    now = node_facts.running
    for name, memory in running.items():
        used = now[name].memory if name in now else 0
        if memory > used:
            free -= memory - used
    return max(0, free)


def runs(item: Instance) -> bool:
    """Whether an instance uses its memory now or as soon as its job is done."""
    if item.forthcoming:
        return item.interrupted
    return item.admin_state is AdminState.UP


def _sum_made_since(config: Config, answers: Answers) -> dict[str, tuple[int, int]]:
    """(MiB, spindles) by node uuid of disks that its answer may not count, but instances do."""
    then = answers.config
    if config.disks is then.disks and not config.forthcoming:
        return {}
    reserved = {u for item in config.forthcoming if not item.interrupted for u in item.disks}
    changed = differences(then.disks, config.disks)
    found: dict[str, tuple[int, int]] = {}
    for uuid in {*changed, *(disk.uuid for disk in config.forthcoming_disks)}:
        disk = config.disks.get(uuid)
        if disk is None:
            continue
        if disk.forthcoming and uuid in reserved:
            continue  # the model counts it itself
        before = then.disks.get(uuid)
        for node in disk.nodes:
            space, turning = _share(disk, answers.unit)
            if before is not None and not before.forthcoming and node in before.nodes:
                old_space, old_turning = _share(before, answers.unit)
                space, turning = max(0, space - old_space), max(0, turning - old_turning)
            sums = found.get(node, (0, 0))
            found[node] = (sums[0] + space, sums[1] + turning)
    return found


def _share(disk: Disk, unit: tuple[str, str]) -> tuple[int, int]:
    """MiB and spindles that a disk takes of a storage unit on each of its nodes."""
    kind, name = unit
    space = sum(
        size
        for (other, where), size in room.needs([disk]).items()
        if other == kind and (where == name or kind in _DIRECTORIES)
    )
    return space, room.spindles([disk]).get((SPINDLES, name), 0)


# instances ---------------------------------------------------------------------------------------


def instance(config: Config, item: Instance, unit: tuple[str, str]) -> facts.Instance:
    """One instance; its disk is what it takes of the storage unit on each of its nodes."""
    be = config.beparams(item)
    disks = [config.disks[uuid] for uuid in item.disks if uuid in config.disks]
    places = [
        config.nodes[uuid].name for uuid in config.instance_nodes(item) if uuid in config.nodes
    ]
    spindles = [disk.spindles for disk in disks]
    return facts.Instance(
        name=item.handle,
        memory=int(be["maxmem"]),
        disk=sum(_share(disk, unit)[0] for disk in disks if _counts(disk, disks)),
        vcpus=int(be["vcpus"]),
        status="running" if item.forthcoming or runs(item) else "ADMIN_down",
        auto_balance=bool(be.get("auto_balance", True)),
        primary=places[0] if places and item.primary_node in config.nodes else "",
        secondary=places[1] if len(places) > 1 else "",
        template=template(config, item),
        tags=tuple(item.tags),
        spindle_use=int(be.get("spindle_use", 1)),
        spindles=None if None in spindles or not spindles else sum(filter(None, spindles)),
        forthcoming=bool(item.forthcoming) and not item.interrupted,
        disks=tuple(disk.size for disk in disks),
        nics=len(item.nics),
    )


def _counts(disk: Disk, disks: Iterable[Disk]) -> bool:
    """Of mirrored disks beside shared ones only the mirrored ones take room on nodes."""
    shared = disk.dev_type is not None and TEMPLATES.get(disk.dev_type).traits.shared
    return not shared or all(
        other.dev_type is not None and TEMPLATES.get(other.dev_type).traits.shared
        for other in disks
    )


def template(config: Config, item: Instance) -> str:
    """Its disk template; for mixed disks that of those which decide where it can go."""
    found = config.disk_template(item)
    if found != MIXED_TEMPLATE:
        return found
    kinds = [disk.dev_type for disk in config.disks_of(item) if disk.dev_type is not None]
    held = [kind for kind in kinds if not TEMPLATES.get(kind).traits.shared]
    if not held:
        return str(kinds[0])
    if all(TEMPLATES.get(kind).traits.mirrored for kind in held):
        return str(held[0])
    return MIXED_TEMPLATE


# policies ----------------------------------------------------------------------------------------


def policy(raw: Mapping[str, Any]) -> facts.Policy:
    """An instance policy, complete."""
    return facts.Policy(
        standard=_spec(raw["std"]),
        bounds=tuple((_spec(pair["min"]), _spec(pair["max"])) for pair in raw["minmax"]),
        templates=tuple(map(str, raw["disk-templates"])),
        vcpu_ratio=float(raw["vcpu-ratio"]),
        spindle_ratio=float(raw["spindle-ratio"]),
    )


def _spec(raw: Mapping[str, Any]) -> facts.Spec:
    return facts.Spec(**{field: int(raw[key]) for field, key in facts.SPEC_KEYS.items()})
