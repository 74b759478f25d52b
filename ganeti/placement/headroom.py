"""Headroom of each node group: instances that fit, of one size and smaller ones, and its limit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from ganeti.base.json_types import JsonObject
from ganeti.placement import capacity
from ganeti.placement.board import Board
from ganeti.placement.capacity import Rules, model_instance
from ganeti.placement.facts import Cluster, Group, Instance, Spec
from ganeti.placement.layout import Layout
from ganeti.placement.seats import Failure


@dataclass(frozen=True, slots=True)
class Wanted:
    """The size in question; what is None is that of the policy of each group."""

    template: str
    memory: int | None = None
    disk: int | None = None
    vcpus: int | None = None
    #: MiB that a disk takes beside its own size on each of its nodes
    overhead: int = 0

    def adapt(self, spec: Spec) -> Spec:
        """A size of a policy with what is given instead."""
        return dataclasses.replace(
            spec,
            memory=spec.memory if self.memory is None else self.memory,
            disk=(spec.disk if self.disk is None else self.disk) + self.overhead,
            cpus=spec.cpus if self.vcpus is None else self.vcpus,
        )


@dataclass(frozen=True, slots=True)
class Fits:
    """How many of a size were put."""

    memory: int
    disk: int
    vcpus: int
    count: int

    @classmethod
    def from_count(cls, item: Instance, count: int, wanted: Wanted) -> Fits:
        disk = max(0, item.disk - wanted.overhead) if item.disk else 0
        return cls(item.memory, disk, item.vcpus, count)


@dataclass(frozen=True, slots=True)
class Headroom:
    """The instances that still fit into a group; ``closed`` says why none does."""

    group: str
    nodes: int
    online: int
    instances: int
    reservations: int
    normal: Fits
    #: what the places lack for one more
    normal_end: Failure | None
    tiered: tuple[Fits, ...] = ()
    tiered_end: Failure | None = None
    #: nodes whose instances have nowhere to go already
    stuck: tuple[str, ...] = ()
    closed: str = ""

    def data(self) -> JsonObject:
        """For programs."""
        return {
            "group": self.group,
            "nodes": self.nodes,
            "online": self.online,
            "instances": self.instances,
            "reservations": self.reservations,
            "normal": dataclasses.asdict(self.normal) | _end(self.normal_end),
            "tiered": {"sizes": [dataclasses.asdict(one) for one in self.tiered]}
            | _end(self.tiered_end),
            "stuck": list(self.stuck),
            "closed": self.closed or None,
        }


def _end(failure: Failure | None) -> dict[str, str | None]:
    return {"ended_by": None if failure is None else failure.words}


def examine(cluster: Cluster, groups: Sequence[Group], wanted: Wanted) -> list[Headroom]:
    """Measure the headroom of each group by the rules of the allocator; places nothing."""
    return [_measure_group(cluster, group, wanted) for group in groups]


def _measure_group(cluster: Cluster, group: Group, wanted: Wanted) -> Headroom:
    layout = Layout.from_board(Board(cluster, group))
    board = layout.board
    policy = cluster.policy_of(group)
    online = int(board.online.sum())
    standard = model_instance(wanted.adapt(policy.standard), wanted.template)
    facts: JsonObject = {
        "group": group.name,
        "nodes": len(board.nodes),
        "online": online,
        "instances": int(board.uses.real.sum()),
        "reservations": int((~board.uses.real).sum()),
    }
    reason = _explain_closed(group, wanted, policy.templates, online)
    if reason:
        nothing = Fits.from_count(standard, 0, wanted)
        return Headroom(**facts, normal=nothing, normal_end=None, closed=reason)
    # A node that is alone can never be replaced, so there is nothing to keep for it.
    rules = Rules(survive=online > 1)
    normal = capacity.fill(layout, standard, rules)
    smallest, largest = policy.bounds[0] if policy.bounds else (policy.standard, policy.standard)
    smallest = dataclasses.replace(smallest, disk=smallest.disk + wanted.overhead)
    start = model_instance(wanted.adapt(largest), wanted.template)
    tiered = capacity.fill_tiered(layout, start, smallest, rules)
    stuck = capacity.Filler(layout, rules).weak
    return Headroom(
        **facts,
        normal=Fits.from_count(standard, len(normal.placed), wanted),
        normal_end=normal.worst_failure,
        tiered=tuple(Fits.from_count(item, count, wanted) for item, count in tiered.sizes),
        tiered_end=tiered.worst_failure,
        stuck=tuple(board.nodes[i].name for i in sorted(stuck)),
    )


def _explain_closed(group: Group, wanted: Wanted, templates: Sequence[str], online: int) -> str:
    if not online:
        return "no node is online and answers"
    if group.alloc_policy == "unallocable":
        return "its allocation policy is unallocable"
    if wanted.template not in templates:
        return f"its instance policy does not allow disk template {wanted.template}"
    return ""
