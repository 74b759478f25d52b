"""The rules of placement, told instance by instance in plain Python.

The product judges all moves at once, with matrices. Here each metric is counted from the facts, and
each move is judged by what it leads to. So a test can compare the two.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator
from statistics import pstdev

from ganeti.placement import tags
from ganeti.placement.facts import LOCAL, TURNING, Cluster, Group, Instance, Load, Mirror, Node
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits
from ganeti.placement.use import NOWHERE, Use

#: As the balancer of Ganeti weighs them.
WEIGHTS = {
    "free_mem_cv": 0.5,
    "free_disk_cv": 0.5,
    "n1_cnt": 1,
    "reserved_mem_cv": 1,
    "offline_all_cnt": 4,
    "offline_pri_cnt": 16,
    "vcpu_ratio_cv": 0.5,
    "cpu_load_cv": 1,
    "mem_load_cv": 1,
    "disk_load_cv": 1,
    "net_load_cv": 1,
    "pri_tags_score": 2,
    "spindles_cv": 0.5,
    "free_mem_cv_forth": 0.5,
    "free_disk_cv_forth": 0.5,
    "vcpu_ratio_cv_forth": 0.5,
    "spindles_cv_forth": 0.5,
    "location_score": 1,
    "location_exclusion_score": 1,
    "reserved_mem_rtotal": 0.25,
}

TAGS = (
    "htools:iextags:service",
    "htools:nlocation:rack",
    "htools:desiredlocation:rack",
    "htools:migration:cpu",
    "htools:allowmigration:cpu:old::cpu:new",
)


def rich(seed: int) -> Cluster:
    """A small cluster with everything that counts: tight, with offline nodes, tags and wishes."""
    random_ = random.Random(seed)
    nodes = random_.randint(3, 6)
    spare = random_.choice([0, 600, 4000])
    exclusive = random_.random() < 0.3
    broken = random_.choice([0.0, 0.1, 0.2, 0.6])
    items = []
    for number in range(random_.randint(2, 10)):
        first, second = random_.sample(range(nodes), 2)
        template = random_.choice(["drbd"] * 6 + ["ext", "plain", "file"])
        items.append(
            Instance(
                name=f"inst{number}",
                memory=random_.choice([256, 512, 1024, 2048]),
                disk=random_.choice([0, 1024, 4096]),
                vcpus=random_.choice([1, 2, 4]),
                status=random_.choice(["running"] * 4 + ["ERROR_up", "ADMIN_down"]),
                auto_balance=random_.random() < 0.8,
                primary=f"node{first}",
                secondary=f"node{second}" if template == "drbd" else "",
                template=template,
                tags=tuple(
                    tag
                    for tag in ("service:dns", "service:web", "rack:a", "rack:b", "other:x")
                    if random_.random() < 0.25
                ),
                spindle_use=random_.choice([0, 1, 2]),
                spindles=random_.choice([None, 1, 2]),
                forthcoming=random_.random() < 0.2,
                load=Load(*(random_.choice([0.0, 0.5, 2.0]) for _ in range(4))),
            )
        )
    made = []
    for number in range(nodes):
        here = [item for item in items if item.primary == f"node{number}"]
        free = spare + random_.choice([0, 256, 1024, 2048])
        memory = 256 + sum(item.memory for item in here if item.runs) + free
        made.append(
            Node(
                name=f"node{number}",
                group="uuid-1",
                memory=memory + random_.choice([0, 0, 100]),
                node_memory=256 + random_.choice([0, 0, 50]),
                free_memory=free,
                disk=random_.choice([16384, 32768]),
                free_disk=random_.choice([1024, 4096, 8192]),
                cpus=random_.choice([2, 4, 8]),
                offline=random_.random() < broken,
                spindles=random_.choice([2, 4]),
                tags=tuple(
                    tag
                    for tag in ("rack:a", "rack:b", "cpu:old", "cpu:new")
                    if random_.random() < 0.35
                ),
                exclusive_storage=exclusive,
                free_spindles=random_.choice([0, 1, 4]),
                node_cpus=random_.choice([0, 1]),
                cpu_speed=random_.choice([1.0, 2.0]),
            )
        )
    one = Cluster((Group("group1", "uuid-1"),), tuple(made), tuple(items), TAGS)
    policy = dataclasses.replace(one.policy, vcpu_ratio=1.5, spindle_ratio=1.5)
    return dataclasses.replace(one, policy=policy)


# the score ---------------------------------------------------------------------------------------


def metrics(cluster: Cluster) -> dict[str, float]:
    """All metrics of a cluster of one group, as it is."""
    found = dict.fromkeys(WEIGHTS, 0.0)
    spreads: dict[str, list[float]] = {name: [] for name in WEIGHTS}
    for node in cluster.nodes:
        here = [item for item in cluster.instances if item.primary == node.name]
        there = [
            item
            for item in cluster.instances
            if item.secondary == node.name and item.mirror is Mirror.SECONDARY
        ]
        real = [item for item in here if not item.forthcoming]
        others = [item for item in there if not item.forthcoming]
        seats = len(real) + len(others)
        if node.offline:
            found["offline_all_cnt"] += seats
            found["offline_pri_cnt"] += len(real)
            continue
        kept = Counter[str]()
        for item in others:
            kept[item.primary] += item.memory if item.auto_balance else 0
        reserved = max(kept.values(), default=0)
        runs = sum(item.memory for item in here if item.runs)
        lost = max(0, node.memory - node.node_memory - node.free_memory - runs)
        left = node.memory - node.node_memory - lost - runs
        if left < reserved:
            found["n1_cnt"] += seats
        found["reserved_mem_rtotal"] += reserved / node.memory
        tagged = Counter(tag for item in here for tag in tags.select_kinds(item.tags, ["service"]))
        found["pri_tags_score"] += sum(count - 1 for count in tagged.values())
        promised = sum(item.memory for item in here if not item.runs)
        coming = [item for item in here + there if item.forthcoming and item.template in LOCAL]
        turning = [item for item in here + there if item.template in TURNING]
        future = sum(item.spindles or 0 for item in turning if item.forthcoming)
        disk = node.free_spindles / node.spindles if node.exclusive_storage else None
        later = (node.free_spindles - future) / node.spindles if node.exclusive_storage else None
        cpus = node.cpus * node.cpu_speed
        spindles = node.spindles * cluster.policy.spindle_ratio
        room = node.free_disk - sum(item.disk for item in coming)
        for name, value in {
            "reserved_mem_cv": reserved / node.memory,
            "free_mem_cv": left / node.memory,
            "free_mem_cv_forth": (node.free_memory - promised) / node.memory,
            "free_disk_cv": node.free_disk / node.disk if disk is None else disk,
            "free_disk_cv_forth": room / node.disk if later is None else later,
            "vcpu_ratio_cv": (node.node_cpus + sum(i.vcpus for i in real)) / cpus,
            "vcpu_ratio_cv_forth": (node.node_cpus + sum(i.vcpus for i in here)) / cpus,
            "cpu_load_cv": sum(item.load.cpu for item in real),
            "mem_load_cv": sum(item.load.memory for item in real),
            "disk_load_cv": sum(item.load.disk for item in real + others),
            "net_load_cv": sum(item.load.net for item in real),
            "spindles_cv": sum(i.spindle_use for i in turning if not i.forthcoming) / spindles
            if disk is None
            else 0.0,
            "spindles_cv_forth": sum(i.spindle_use for i in turning) / spindles
            if disk is None
            else 0.0,
        }.items():
            spreads[name].append(value)
    found |= {name: pstdev(values) for name, values in spreads.items() if values}
    found |= _locations(cluster)
    return found


def _locations(cluster: Cluster) -> dict[str, float]:
    nodes = {node.name: node for node in cluster.nodes}
    near, crowds = 0, Counter[tuple[str, str]]()
    for item in cluster.instances:
        node = nodes[item.primary]
        if item.forthcoming or node.offline:
            continue
        racks = tags.select_kinds(node.tags, ["rack"])
        if item.mirror is Mirror.SECONDARY:
            near += len(racks & tags.select_kinds(nodes[item.secondary].tags, ["rack"]))
        near += len(tags.select_kinds(item.tags, ["rack"]) - set(node.tags))
        crowds.update(
            (tag, rack) for tag in tags.select_kinds(item.tags, ["service"]) for rack in racks
        )
    return {
        "location_score": near,
        "location_exclusion_score": sum(count - 1 for count in crowds.values()),
    }


# moves -------------------------------------------------------------------------------------------

#: Where primary and secondary node are afterwards: p and s are the old ones, t is the target.
AFTER = {
    Kind.TO_SECONDARY: "sp",
    Kind.REPLACE_SECONDARY: "pt",
    Kind.TO_SECONDARY_REPLACE: "st",
    Kind.REPLACE_TO_SECONDARY: "tp",
    Kind.REPLACE_PRIMARY: "ts",
    Kind.TO_ANY: "t-",
}
#: Kinds that run the instance on its secondary node, so that node must be there.
_PASSING = (Kind.TO_SECONDARY, Kind.TO_SECONDARY_REPLACE, Kind.REPLACE_PRIMARY)
_DISKS = (
    Kind.REPLACE_SECONDARY,
    Kind.TO_SECONDARY_REPLACE,
    Kind.REPLACE_TO_SECONDARY,
    Kind.REPLACE_PRIMARY,
)


def moves(layout: Layout, limits: Limits) -> Iterator[tuple[Kind, int, int]]:
    """Each move that is allowed: kind, instance and target."""
    for kind in Kind:
        for number, item in enumerate(layout.board.instances):
            if not _is_tried(layout, limits, kind, number, item):
                continue
            for target in (
                [NOWHERE] if kind is Kind.TO_SECONDARY else range(len(layout.board.nodes))
            ):
                if target != NOWHERE:
                    node = layout.board.nodes[target]
                    if node.offline or node.name in limits.closed:
                        continue
                if Move(layout, limits, kind, number, target).is_allowed():
                    yield kind, number, target


def _is_tried(layout: Layout, limits: Limits, kind: Kind, number: int, item: Instance) -> bool:
    nodes = layout.board.nodes
    places = [
        nodes[where]
        for where in (layout.primary[number], layout.secondary[number])
        if where != NOWHERE
    ]
    if item.name in limits.frozen or (limits.instances and item.name not in limits.instances):
        return False
    if limits.evacuate and not any(node.offline for node in places):
        return False
    if kind is Kind.TO_ANY:
        return limits.instance_moves and item.mirror is Mirror.EVERY_NODE
    if item.mirror is not Mirror.SECONDARY or (kind in _PASSING and places[1].offline):
        return False
    if kind in _DISKS and not limits.disk_moves:
        return False
    if kind is not Kind.REPLACE_SECONDARY and not limits.instance_moves:
        return False
    restricted = kind in (Kind.REPLACE_TO_SECONDARY, Kind.REPLACE_PRIMARY)
    return not (limits.restricted_migration and restricted)


class Move:
    """One move, judged by the rules."""

    def __init__(
        self, layout: Layout, limits: Limits, kind: Kind, number: int, target: int
    ) -> None:
        self.layout, self.limits, self.kind, self.number = layout, limits, kind, number
        self.board = layout.board
        self.item = self.board.instances[number]
        self.p, self.s = int(layout.primary[number]), int(layout.secondary[number])
        self.t = target
        where = {"p": self.p, "s": self.s, "t": target, "-": NOWHERE}
        self.primary, self.secondary = (where[role] for role in AFTER[kind])
        #: what must leave an offline node leaves it, whatever the soft rules say
        self.forced = limits.ignore_soft or self._is_offline(self.p)
        self.forced_second = limits.ignore_soft or self._is_offline(self.s)

    def _is_offline(self, node: int) -> bool:
        return node != NOWHERE and self.board.nodes[node].offline

    def is_allowed(self) -> bool:
        moves_away = self.primary != self.p
        return (
            self.t not in (self.p, self.s if self.s != NOWHERE else self.p)
            and self._has_room(self.primary)
            and not self._breaks_redundancy()
            and (self.forced or not moves_away or not self._meets(self.primary))
            and (not moves_away or self._may_migrate())
            and (self.kind not in _DISKS or self._has_disk_room())
            and (self.kind is Kind.TO_ANY or self._has_spindles(moves_away))
            and (self.kind is not Kind.REPLACE_PRIMARY or self._may_pass())
        )

    def _breaks_redundancy(self) -> bool:
        after = self.layout.move(self.number, self.primary, self.secondary)
        for node in range(len(self.board.nodes)):
            excused = self.forced if node == self.primary else self.forced_second
            newly = after.fails[node] and not self.layout.fails[node]
            if newly and not excused and not self._is_offline(node):
                return True
        return False

    def _has_room(self, node: int) -> bool:
        """Memory and processors to run it."""
        item, layout, here = self.item, self.layout, node == self.p
        own = item.memory if here else 0
        left = layout.memory_left[node] + (own if item.runs else 0) - item.memory
        left_all = layout.memory_left_all[node] + own - item.memory
        if (left <= 0 and not item.forthcoming) or left_all <= 0:
            return False
        ratio = self.limits.vcpu_ratio or self.board.policies[node].vcpu_ratio
        cpus = layout.used[Use.CPU_ALL][node] + self.board.nodes[node].node_cpus + item.vcpus
        return self.forced or here or cpus <= self.board.nodes[node].cpus * ratio

    def _meets(self, node: int) -> bool:
        """Whether an instance on the node has an exclusion tag that this one has, too."""
        mine = tags.select_kinds(self.item.tags, ["service"])
        return any(
            mine & tags.select_kinds(other.tags, ["service"])
            for number, other in enumerate(self.board.instances)
            if self.layout.primary[number] == node
        )

    def _may_migrate(self) -> bool:
        rights = tags.migration_rights(TAGS, [node.tags for node in self.board.nodes])
        steps = [(self.p, self.primary)]
        if self.kind is Kind.REPLACE_PRIMARY:
            steps = [(self.p, self.s), (self.s, self.primary)]
        return self.forced or all(rights[one][0] <= rights[two][1] for one, two in steps)

    def _has_disk_room(self) -> bool:
        node, used = self.board.nodes[self.t], self.layout.used
        if not self.item.disk:
            return True
        after = self.board.disk_room[self.t] - used[Use.DISK_ALL][self.t] - self.item.disk
        if after <= 0 or after < self.limits.disk_ratio * node.disk:
            return False
        room = self.board.own_spindle_room[self.t] - used[Use.OWN_SPINDLES_ALL][self.t]
        return not node.exclusive_storage or room >= (self.item.spindles or 0)

    def _has_spindles(self, moves_away: bool) -> bool:
        if moves_away and not (self.forced or self._turns(self.primary)):
            return False
        if self.kind is Kind.REPLACE_PRIMARY:
            return self.forced or self._turns(self.s)
        return self.forced_second or self._turns(self.secondary)

    def _turns(self, node: int) -> bool:
        use = self.item.spindle_use
        if not use or self.board.nodes[node].exclusive_storage:
            return True
        limit = self.board.nodes[node].spindles * self.board.policies[node].spindle_ratio
        more = use if node == self.t else 0
        used = self.layout.used
        if self.item.forthcoming:
            return bool(used[Use.SPINDLES_ALL][node] + more < limit)
        return bool(used[Use.SPINDLES][node] + more <= limit)

    def _may_pass(self) -> bool:
        """Whether it may run on its old secondary node while its disks are replaced."""
        if not self._has_room(self.s):
            return False
        if self.forced or self.item.forthcoming:
            return True
        layout, node = self.layout, self.s
        without = layout.move(self.number, self.p, NOWHERE)
        left = layout.memory_left[node] - (self.item.memory if self.item.runs else 0)
        fits = layout.fails[node] or left >= without.reserved[node]
        return bool(fits and not self._meets(node))
