"""The board, which does not change: the facts of nodes and their instances as arrays."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ganeti.base import text
from ganeti.placement import tags
from ganeti.placement.facts import Cluster, Group, Instance, Mirror, Node, Policy
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Sums, Use, Uses


def _inverse(values: Floats) -> Floats:
    """``1/value``, and 0 where a node has none of it."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A metric that is the spread over online nodes of ``start + sum of factor * used``."""

    name: str
    weight: float
    start: Floats
    terms: tuple[tuple[Use, Floats], ...]


class Board:
    """Nodes, instances and tags of a cluster or of one group as arrays; never changed."""

    def __init__(self, cluster: Cluster, group: Group | None = None) -> None:
        """Take the nodes of ``group``, or all, and the instances whose primary node is there."""
        self.cluster = cluster
        self.nodes: tuple[Node, ...] = tuple(
            sorted(
                (n for n in cluster.nodes if group is None or n.group == group.uuid),
                key=lambda n: text.natural_key(n.name),
            )
        )
        self.node_index = {node.name: i for i, node in enumerate(self.nodes)}
        self._set_instances([i for i in cluster.instances if i.primary in self.node_index])
        self.groups = {g.uuid: g for g in cluster.groups}
        uuids = sorted({node.group for node in self.nodes})
        self.group_of: Ints = np.array([uuids.index(n.group) for n in self.nodes], dtype=np.int64)
        policies = {
            uuid: cluster.policy_of(self.groups[uuid]) if uuid in self.groups else cluster.policy
            for uuid in uuids
        }
        self.policies: tuple[Policy, ...] = tuple(policies[n.group] for n in self.nodes)
        self._set_capacities()
        self._set_tags()

    def _set_instances(self, items: Sequence[Instance]) -> None:
        """Take instances, in the order of their names, and where the facts say they are."""
        named = sorted((text.natural_key(item.name), i) for i, item in enumerate(items))
        self.instances: tuple[Instance, ...] = tuple(items[i] for _, i in named)
        self._keys = [key for key, _ in named]
        #: what each instance uses
        self.uses = Uses.from_instances(self.instances)
        #: primary and secondary node of each at first
        self.first: tuple[Ints, Ints] = self._read_places(self.instances)
        #: what they used at first
        self.first_sums = Sums.from_places(self.uses, *self.first, len(self.nodes))

    @cached_property
    def _known(self) -> dict[int, Instance]:
        """All instances of the cluster by their identity."""
        return {id(item): item for item in self.cluster.instances}

    def _read_places(self, items: Sequence[Instance]) -> tuple[Ints, Ints]:
        index = self.node_index
        primary = [index.get(item.primary, NOWHERE) for item in items]
        secondary = [
            index.get(item.secondary, NOWHERE)
            if item.secondary and item.mirror is Mirror.SECONDARY
            else NOWHERE
            for item in items
        ]
        return np.array(primary, dtype=np.int64), np.array(secondary, dtype=np.int64)

    @cached_property
    def instance_index(self) -> dict[str, int]:
        """Index of an instance by its name."""
        return {item.name: i for i, item in enumerate(self.instances)}

    def _index(self, item: Instance) -> int:
        """Index of this very object: on its way to a node, an instance is there twice."""
        at = bisect.bisect_left(self._keys, text.natural_key(item.name))
        while self.instances[at] is not item:
            at += 1
        return at

    def _copy(self) -> Board:
        other = object.__new__(Board)
        other.__dict__.update(self.__dict__)
        for name in ("merged_spreads", "instance_index"):
            other.__dict__.pop(name, None)
        return other

    def add_instances(self, more: list[Instance], keep: int | None = None) -> Board:
        """The same nodes with further instances, whose place does not count yet.

        ``keep``: only so many of the instances stay.
        """
        keep = len(self.instances) if keep is None else keep
        other = self._copy()
        other.instances = self.instances[:keep] + tuple(more)
        other.uses = self.uses.select(slice(keep)).join(Uses.from_instances(more))
        other._extend_tags(self, np.arange(keep), more)
        return other

    def _set_capacities(self) -> None:
        used = self.first_sums.used
        row = self._row
        # Nothing can run on a node without memory.
        self.online: Bools = np.array(
            [not n.offline and n.memory > 0 for n in self.nodes], dtype=bool
        )
        self.memory = row("memory")
        self.disk = row("disk")
        exclusive: Bools = np.array([n.exclusive_storage for n in self.nodes], dtype=bool)
        self.exclusive = exclusive
        cpus, speed, spindles = row("cpus"), row("cpu_speed"), row("spindles")
        free = row("free_memory")
        #: memory that nobody accounts for
        self.missing = self.memory - row("node_memory") - free - used[Use.MEMORY]
        self.memory_room = self.memory - row("node_memory") - np.maximum(0, self.missing)
        self.memory_room_all = free + used[Use.MEMORY]
        self.disk_room = row("free_disk") + used[Use.DISK]
        self.node_cpus = row("node_cpus")
        vcpu_ratio = np.array([p.vcpu_ratio for p in self.policies], dtype=float)
        spindle_ratio = np.array([p.spindle_ratio for p in self.policies], dtype=float)
        self.cpu_limit = cpus * vcpu_ratio
        self.own_spindle_room = row("free_spindles") + used[Use.OWN_SPINDLES]
        self.spindle_limit = np.where(exclusive, spindles, spindles * spindle_ratio)
        per_memory, per_disk = _inverse(self.memory), _inverse(self.disk)
        self.per_memory = per_memory
        per_cpu = _inverse(cpus * speed)
        per_spindle = _inverse(self.spindle_limit)
        shared, own = ~exclusive, exclusive
        disk_start = np.where(
            exclusive, self.own_spindle_room * _inverse(spindles), self.disk_room * per_disk
        )
        on = self.online.astype(float)
        nothing = np.zeros(len(self.nodes))
        disk_factor, area_factor = -per_disk * shared, -_inverse(spindles) * own

        def spread(name: str, weight: float, start: Floats, *terms: tuple[Use, Floats]) -> Spread:
            kept = tuple((use, factor * on) for use, factor in terms if (factor * on).any())
            return Spread(name, weight, start * on, kept)

        turning = per_spindle * shared
        one = np.ones(len(self.nodes))
        self.spreads: tuple[Spread, ...] = (
            spread("free_mem_cv", 0.5, self.memory_room * per_memory, (Use.MEMORY, -per_memory)),
            spread(
                "free_disk_cv",
                0.5,
                disk_start,
                (Use.DISK, disk_factor),
                (Use.OWN_SPINDLES, area_factor),
            ),
            spread("vcpu_ratio_cv", 0.5, self.node_cpus * per_cpu, (Use.CPU, per_cpu)),
            spread("cpu_load_cv", 1.0, nothing, (Use.LOAD_CPU, one)),
            spread("mem_load_cv", 1.0, nothing, (Use.LOAD_MEMORY, one)),
            spread("disk_load_cv", 1.0, nothing, (Use.LOAD_DISK, one)),
            spread("net_load_cv", 1.0, nothing, (Use.LOAD_NET, one)),
            spread("spindles_cv", 0.5, nothing, (Use.SPINDLES, turning)),
            spread(
                "free_mem_cv_forth",
                0.5,
                self.memory_room_all * per_memory,
                (Use.MEMORY_ALL, -per_memory),
            ),
            spread(
                "free_disk_cv_forth",
                0.5,
                disk_start,
                (Use.DISK_ALL, disk_factor),
                (Use.OWN_SPINDLES_ALL, area_factor),
            ),
            spread("vcpu_ratio_cv_forth", 0.5, self.node_cpus * per_cpu, (Use.CPU_ALL, per_cpu)),
            spread("spindles_cv_forth", 0.5, nothing, (Use.SPINDLES_ALL, turning)),
        )

    @cached_property
    def merged_spreads(self) -> tuple[tuple[float, Floats, tuple[tuple[Use, Floats], ...]], ...]:
        """Weight, start and terms of the spreads; those always equal are one with both weights."""
        found: dict[tuple[object, ...], tuple[float, Floats, tuple[tuple[Use, Floats], ...]]] = {}
        kinds = self.uses.kinds()
        for spread in self.spreads:
            terms = tuple((use, on) for use, on in spread.terms if kinds[use] is not None)
            key = (spread.start.tobytes(), *((kinds[use], on.tobytes()) for use, on in terms))
            if terms or spread.start.any():
                weight = found[key][0] if key in found else 0.0
                found[key] = (weight + spread.weight, spread.start, terms)
        return tuple(found.values())

    def _row(self, name: str) -> Floats:
        return np.array([getattr(node, name) for node in self.nodes], dtype=float)

    def _set_tags(self) -> None:
        every = self.cluster.tags
        kinds = tags.strip_prefix(every, tags.LOCATION)
        places = [tags.select_kinds(node.tags, kinds) for node in self.nodes]
        names = sorted(set().union(*places)) if places else []
        #: whether a node stands at a location: location x node
        self.at: Bools = np.array([[n in p for p in places] for n in names], dtype=bool).reshape(
            len(names), len(self.nodes)
        )
        #: how many locations two nodes share
        self.common: Floats = self.at.T.astype(float) @ self.at.astype(float)
        rights = tags.migration_rights(every, [n.tags for n in self.nodes])
        #: whether a guest may migrate from (row) to (column)
        self.may_migrate: Bools = np.array(
            [[own <= accepted for _, accepted in rights] for own, _ in rights], dtype=bool
        ).reshape(len(self.nodes), len(self.nodes))
        self._set_instance_tags()

    def _set_instance_tags(self) -> None:
        self.exclusion_tags: tuple[str, ...] = ()
        #: exclusion tags of an instance, slot by slot: instance x slot, NOWHERE when unused
        self.apart: Ints = np.full((0, 0), NOWHERE, dtype=np.int64)
        #: how many wishes a node leaves open: instance x node; None when nobody wishes
        self.unmet: Floats | None = None
        self._extend_tags(self, np.arange(0), self.instances)

    def _extend_tags(self, old: Board, rows: Ints, more: Sequence[Instance]) -> None:
        """Tags of the instances ``rows`` of another board, and of further ones after them."""
        every = self.cluster.tags
        kinds = tags.strip_prefix(every, tags.EXCLUSION)
        wanted = tags.strip_prefix(every, tags.DESIRED_LOCATION)
        apart = [sorted(tags.select_kinds(item.tags, kinds)) if item.tags else [] for item in more]
        new = sorted(set().union(*apart) - set(old.exclusion_tags)) if apart else []
        self.exclusion_tags = old.exclusion_tags + tuple(new)
        before = old.apart[rows]
        slots = max([before.shape[1], *(len(own) for own in apart)])
        table: Ints = np.full((len(rows) + len(more), slots), NOWHERE, dtype=np.int64)
        table[: len(rows), : before.shape[1]] = before
        if any(apart):
            names = {tag: i for i, tag in enumerate(self.exclusion_tags)}
            for i, own in enumerate(apart, len(rows)):
                table[i, : len(own)] = [names[tag] for tag in own]
        self.apart = table
        wishes = [
            tags.select_kinds(item.tags, wanted) if item.tags else frozenset() for item in more
        ]
        if old.unmet is None and not any(wishes):
            self.unmet = None
            return
        count = len(self.nodes)
        known = np.zeros((len(rows), count)) if old.unmet is None else old.unmet[rows]
        node_tags = [frozenset(node.tags) for node in self.nodes]
        fresh = np.array([[len(w - own) for own in node_tags] for w in wishes], dtype=float)
        self.unmet = np.vstack([known, fresh.reshape(len(more), count)])

    def renew(self, cluster: Cluster) -> Board | None:
        """The same nodes with newer facts: what did not change is taken over, not computed again.

        None when too much changed: other nodes, groups, policies or tags.
        """
        old = self.cluster
        same = cluster.groups == old.groups and cluster.tags == old.tags
        same = same and cluster.policy is old.policy and cluster.policies is old.policies
        nodes = {node.name: node for node in cluster.nodes}
        if not same or len(nodes) != len(old.nodes):
            return None
        matching = tuple(nodes[node.name] for node in self.nodes if node.name in nodes)
        if [(n.name, n.group, n.tags) for n in matching] != [
            (n.name, n.group, n.tags) for n in self.nodes
        ]:
            return None
        other = self._copy()
        other.cluster, other.nodes = cluster, matching
        if cluster.instances is not old.instances and not other._renew_instances(self):
            return None
        other._set_capacities()
        return other

    def _renew_instances(self, old: Board) -> bool:
        """Take the instances of newer facts; false when most of them are others.

        Those that are the very same keep what is known of them.
        """
        self._known = now = {id(item): item for item in self.cluster.instances}
        before = old._known
        new = [now[one] for one in now.keys() - before.keys()]
        more = [item for item in new if item.primary in self.node_index]
        if len(more) > max(8, len(old.instances) // 2):
            return False
        others = [before[one] for one in before.keys() - now.keys()]
        gone = sorted(old._index(item) for item in others if item.primary in self.node_index)
        items, keys = list(old.instances), list(old._keys)
        #: of all instances of the old board and the new ones, those that are here
        source = list(range(len(items)))
        for i in reversed(gone):
            del items[i], keys[i], source[i]
        for i, item in enumerate(more, len(old.instances)):
            key = text.natural_key(item.name)
            at = bisect.bisect(keys, key)
            items.insert(at, item)
            keys.insert(at, key)
            source.insert(at, i)
        self.instances, self._keys = tuple(items), keys
        here = np.array(source, dtype=np.int64)
        fresh, places = Uses.from_instances(more), self._read_places(more)
        self.first_sums = old.first_sums.copy()
        for i in gone:
            self.first_sums.add(old.uses, i, int(old.first[0][i]), int(old.first[1][i]), -1)
        for i in range(len(more)):
            self.first_sums.add(fresh, i, int(places[0][i]), int(places[1][i]))
        self.uses = old.uses.join(fresh).select(here)
        first, second = (np.append(one, new)[here] for one, new in zip(old.first, places))
        self.first = (first, second)
        self._extend_tags(old, np.arange(len(old.instances)), more)
        self.apart = self.apart[here]
        self.unmet = None if self.unmet is None else self.unmet[here]
        return True
