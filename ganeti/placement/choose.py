"""Choose nodes for instances that are to be created, and say why when there are none.

Several instances are placed as one decision: each place counts for the next, and the order is the
one that leaves the fewest without a place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ganeti.base.json_types import JsonObject
from ganeti.placement import hints, refusal
from ganeti.placement.board import Board
from ganeti.placement.capacity import Filler, Placed, Rules
from ganeti.placement.facts import Cluster, Group, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.refusal import Change, GroupRefusal, Hint, Refusal
from ganeti.placement.use import Bools

_ORDER = {"preferred": 0, "last_resort": 1}


@dataclass(frozen=True, slots=True)
class Wish:
    """An instance without a place."""

    item: Instance
    #: name or UUID of the only group that will do
    group: str | None = None
    #: names of the nodes that may be chosen
    only: frozenset[str] | None = None
    ignore_policy: bool = False
    #: UUIDs of networks that the group has to be connected to
    networks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes for an instance (primary first), or none and why."""

    nodes: tuple[str, ...]
    group: str
    score: float
    refusal: Refusal | None = None

    @property
    def reason(self) -> str:
        return "" if self.refusal is None else self.refusal.text


@dataclass(frozen=True, slots=True)
class Survey:
    """Places for an instance in a group: for each primary node the best one, best first."""

    places: tuple[Choice, ...]
    #: why the group takes nothing, or the other nodes of it
    others: GroupRefusal

    def data(self) -> JsonObject:
        """For programs."""
        places = [{"nodes": list(one.nodes), "score": one.score} for one in self.places]
        return {**self.others.data(), "places": places}


class Chooser:
    """Chooses one place after the other in a cluster; each counts for the next."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        survive: bool = True,
        layout_of: Callable[[Group], Layout] | None = None,
    ) -> None:
        """``survive``: after each choice the instances of any node still have somewhere to go.

        ``layout_of`` gives the layout of a group when somebody has it already.
        """
        self._cluster = cluster
        self._survive = survive
        self._layout_of = layout_of or (lambda group: Layout.from_board(Board(cluster, group)))
        self._fillers: dict[str, Filler] = {}

    def choose(self, wish: Wish) -> Choice:
        """The best place: preferred groups first, then by score."""
        item = wish.item
        refused: list[GroupRefusal] = []
        found: list[tuple[int, float, Filler, Filler.State, Choice]] = []
        for group, filler in self._candidates(wish):
            if isinstance(filler, str):
                refused.append(GroupRefusal(group.name, filler))
                continue
            before = filler.state
            done, failures = filler.try_one(item)
            if done is None:
                filler.state = before
                counts = tuple(failures.most_common())
                nodes = refusal.explain_nodes(filler.layout, item, filler.within, filler.weak)
                refused.append(GroupRefusal(group.name, "", counts, nodes))
                continue
            choice = _choice(filler, done, group)
            rank = _ORDER.get(group.alloc_policy, 0)
            found.append((rank, done.score, filler, filler.state, choice))
            filler.state = before
        if found:
            *_, filler, after, choice = min(found, key=lambda entry: entry[:2])
            filler.state = after
            return choice
        if not refused and wish.group:
            refused = [GroupRefusal(wish.group, "there is no such group")]
        return Choice((), "", 0.0, Refusal(item.name, tuple(refused)))

    def survey(self, wish: Wish) -> list[Survey]:
        """All primary nodes that could be chosen, and why the others cannot; chooses nothing."""
        found = []
        for group, filler in self._candidates(wish):
            if isinstance(filler, str):
                found.append(Survey((), GroupRefusal(group.name, filler)))
                continue
            places = filler.find_places(wish.item)
            able = {filler.layout.board.nodes[one.primary].name for one in places}
            nodes = refusal.explain_nodes(filler.layout, wish.item, filler.within, filler.weak)
            others = tuple(one for one in nodes if one.node not in able)
            choices = tuple(_choice(filler, one, group) for one in places)
            found.append(Survey(choices, GroupRefusal(group.name, nodes=others)))
        return found

    def _candidates(self, wish: Wish) -> Iterator[tuple[Group, Filler | str]]:
        """The groups that a wish is about, each with what fills it or why it is closed."""
        for group in self._cluster.groups:
            if wish.group not in (None, group.name, group.uuid):
                continue
            reason = self._explain_closed(group, wish)
            if reason:
                yield group, reason
                continue
            filler = self._filler(group)
            filler.within = mask_nodes(filler.layout, wish.only)
            yield group, filler

    def explain(self, wish: Wish, choice: Choice) -> Choice:
        """A refusal with the changes that would make the instance fit; looks for them now."""
        if choice.refusal is None:
            return choice
        given = hints.find(wish.item, self._list_open_layouts(wish), make_mask(wish), self._rules)
        given += self._find_elsewhere(wish)
        reason = Refusal(wish.item.name, choice.refusal.groups, tuple(given))
        return Choice((), "", 0.0, reason)

    def _find_elsewhere(self, wish: Wish) -> list[Hint]:
        """Whether only the restriction of the wish is in the way."""
        if wish.group is None and wish.only is None:
            return []
        states = {uuid: filler.state for uuid, filler in self._fillers.items()}
        free = self.choose(dataclasses.replace(wish, group=None, only=None))
        for uuid, state in states.items():
            self._fillers[uuid].state = state
        for uuid in set(self._fillers) - set(states):
            del self._fillers[uuid]
        if not free.nodes:
            return []
        if wish.only is not None and not wish.only.issuperset(free.nodes):
            where = " and ".join(free.nodes)
            return [Hint(Change.OTHER_NODES, wish.item.name, where)]
        return [Hint(Change.OTHER_GROUP, free.group)]

    def _list_open_layouts(self, wish: Wish) -> list[Layout]:
        every = (filler for _group, filler in self._candidates(wish))
        return [filler.layout for filler in every if isinstance(filler, Filler)]

    @property
    def _rules(self) -> Rules:
        return Rules(survive=self._survive)

    def _explain_closed(self, group: Group, wish: Wish) -> str:
        """Why nothing of this kind goes to a group at all; "" when it may."""
        if group.alloc_policy not in _ORDER and wish.group is None:
            return "is unallocable"
        reason = (
            "" if wish.ignore_policy else explain_policy_refusal(self._cluster, group, wish.item)
        )
        if reason:
            return reason
        if not wish.networks.issubset(group.networks):
            return "is not connected to the network of a NIC"
        return "" if self._filler(group).layout.board.online.any() else "has no node that is online"

    def _filler(self, group: Group) -> Filler:
        if group.uuid not in self._fillers:
            layout = self._layout_of(group)
            # A node that is alone can never be replaced, so there is nothing to ask for.
            survive = self._survive and int(layout.board.online.sum()) > 1
            self._fillers[group.uuid] = Filler(layout, Rules(survive=survive))
        return self._fillers[group.uuid]


def _choice(filler: Filler, done: Placed, group: Group) -> Choice:
    nodes = filler.layout.board.nodes
    names = [nodes[done.primary].name]
    if done.item.mirror is Mirror.SECONDARY:
        names.append(nodes[done.secondary].name)
    return Choice(tuple(names), group.name, done.score)


def mask_nodes(layout: Layout, only: frozenset[str] | None) -> Bools | None:
    """Which nodes of a layout may be chosen; None for all."""
    if only is None:
        return None
    return np.array([node.name in only for node in layout.board.nodes], dtype=bool)


def make_mask(wish: Wish) -> Callable[[Layout], Bools | None]:
    return lambda layout: mask_nodes(layout, wish.only)


def choose(
    cluster: Cluster,
    wish: Wish,
    *,
    survive: bool = True,
    layout_of: Callable[[Group], Layout] | None = None,
) -> Choice:
    """The best place of an instance, or why there is none and what would help."""
    chooser = Chooser(cluster, survive=survive, layout_of=layout_of)
    return chooser.explain(wish, chooser.choose(wish))


def choose_all(
    cluster: Cluster,
    wishes: Sequence[Wish],
    *,
    survive: bool = True,
    layout_of: Callable[[Group], Layout] | None = None,
) -> list[Choice]:
    """Places for all, in the order of the wishes; those without one do not hinder the others."""
    best: list[Choice] = []
    fewest = len(wishes) + 1
    for order in _orders(wishes):
        chooser = Chooser(cluster, survive=survive, layout_of=layout_of)
        found: dict[int, Choice] = {}
        for index in order:
            found[index] = chooser.choose(wishes[index])
        failed = sum(not choice.nodes for choice in found.values())
        if failed < fewest:
            fewest = failed
            best = [
                chooser.explain(wish, found[i]) if failed else found[i]
                for i, wish in enumerate(wishes)
            ]
        if not failed:
            break
    return best


def _orders(wishes: Sequence[Wish]) -> list[list[int]]:
    """Orders to try: the largest first, by what may be scarce."""
    keys: list[Callable[[Instance], tuple[float, ...]]] = [
        lambda item: (item.memory, item.disk, item.vcpus),
        lambda item: (item.disk, item.memory, item.vcpus),
        lambda item: (item.vcpus, item.memory, item.disk),
    ]
    found: list[list[int]] = []
    for key in keys:
        order = sorted(
            range(len(wishes)),
            key=lambda i, key=key: (tuple(-x for x in key(wishes[i].item)), wishes[i].item.name),  # type: ignore[misc]
        )
        if order not in found:
            found.append(order)
    return found


def explain_policy_refusal(cluster: Cluster, group: Group, item: Instance) -> str:
    """Why the policy of a group does not accept an instance; "" when it does."""
    policy = cluster.policy_of(group)
    if item.template not in policy.templates:
        return f"disk template {item.template} is not allowed"
    disks = item.disks or ((item.disk,) if item.disk else ())
    have = {
        "memory": [item.memory],
        "cpus": [item.vcpus],
        "disk": list(disks),
        "disk_count": [] if item.template == "diskless" else [len(disks)],
        "nics": [item.nics],
        "spindles": [item.spindle_use],
    }
    reason = ""
    for least, most in policy.bounds:
        wrong = [
            f"{name.replace('_', ' ')} {value} is not between "
            f"{getattr(least, name)} and {getattr(most, name)}"
            for name, values in have.items()
            for value in values
            if not getattr(least, name) <= value <= getattr(most, name)
        ]
        if not wrong:
            return ""
        reason = reason or "; ".join(wrong)
    return reason
