"""Supposed changes of a cluster (``--what-if``), read from words and made on its facts.

::

    remove node3          its instances leave it first, then it is gone
    fail node3            it is lost: what can start elsewhere does
    fail rack=a           all nodes with this tag are lost
    add 2 like node1      two empty nodes in the group of node1
    memory node4 +64G     more memory, less (-64G), or so much (64G); also disk and cpus
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ganeti import errors
from ganeti.base import units
from ganeti.base.text import join_names, nearest, plural
from ganeti.placement import relocate
from ganeti.placement.board import Board
from ganeti.placement.facts import LOCAL, Cluster, Instance, Mirror, Node
from ganeti.placement.layout import Layout
from ganeti.placement.relocate import Leave
from ganeti.placement.use import Use

_FORMS = (
    "'remove NODE', 'fail NODE', 'fail TAG', 'add N like NODE' and 'memory|disk|cpus NODE +SIZE'"
)
_COUNT = re.compile(r"[1-9][0-9]{0,3}")
_AMOUNT = re.compile(r"([+-]?)(\d.*)")
#: More nodes than that make no sense, and arrays grow with their square.
_MOST_ADDED = 1000


@dataclass(frozen=True, slots=True)
class Supposed:
    """A cluster as it would be, and what would happen on the way there."""

    cluster: Cluster
    #: one for each instance that would go somewhere or nowhere
    notes: tuple[str, ...] = ()
    #: instances that would have no place, or would not run
    lost: tuple[str, ...] = ()


def suppose(cluster: Cluster, changes: Iterable[str]) -> Supposed:
    """Make changes one after the other.

    Raises:
        OpPrereqError: a change cannot be understood, or names what is not there.
    """
    result = Supposed(cluster)
    for text in changes:
        words = text.split()
        change = _CHANGES.get(words[0].lower()) if words else None
        if change is None:
            raise errors.make_invalid_error(
                f"what-if '{text}' is not understood: it is one of {_FORMS}"
            )
        after = change(result.cluster, text, words)
        result = Supposed(
            after.cluster,
            result.notes + after.notes,
            tuple(dict.fromkeys(result.lost + after.lost)),
        )
    return result


def _node(cluster: Cluster, name: str, text: str) -> Node:
    """By its name, or the first part of it."""
    known = [node for node in cluster.nodes if name == node.name]
    known = known or [node for node in cluster.nodes if node.name.startswith(f"{name}.")]
    if len(known) == 1:
        return known[0]
    if known:
        raise errors.make_invalid_error(
            f"what-if '{text}': '{name}' may be {join_names(n.name for n in known)}"
        )
    hint = nearest(name, [node.name for node in cluster.nodes])
    raise errors.make_unknown_error(f"what-if '{text}': there is no node '{name}'{hint}")


# nodes that go -----------------------------------------------------------------------------------


def _remove(cluster: Cluster, text: str, words: Sequence[str]) -> Supposed:
    if len(words) < 2:
        raise errors.make_invalid_error(f"what-if '{text}': name the nodes, as in 'remove node3'")
    gone = {_node(cluster, name, text).name for name in words[1:]}
    left = _empty_nodes(cluster, gone)
    nodes = tuple(node for node in left.cluster.nodes if node.name not in gone)
    instances = tuple(
        replace(item, secondary="") if item.secondary in gone else item
        for item in left.cluster.instances
        if item.primary not in gone
    )
    return Supposed(replace(left.cluster, nodes=nodes, instances=instances), left.notes, left.lost)


def _fail(cluster: Cluster, text: str, words: Sequence[str]) -> Supposed:
    if len(words) < 2:
        raise errors.make_invalid_error(
            f"what-if '{text}': name a node or a tag of nodes, as in 'fail node3', 'fail rack=a'"
        )
    gone: set[str] = set()
    for word in words[1:]:
        tagged = [node.name for node in cluster.nodes if word in node.tags]
        if not tagged and ("=" in word or ":" in word):
            raise errors.make_unknown_error(f"what-if '{text}': no node has the tag '{word}'")
        gone.update(tagged or [_node(cluster, word, text).name])
    nodes = tuple(_mark_lost(n) if n.name in gone else n for n in cluster.nodes)
    return _empty_nodes(replace(cluster, nodes=nodes), gone, primaries_only=True)


def _mark_lost(node: Node) -> Node:
    return replace(node, offline=True, drained=False)


def _empty_nodes(cluster: Cluster, gone: set[str], *, primaries_only: bool = False) -> Supposed:
    """The cluster after instances have left nodes, and who could not.

    ``primaries_only``: mirrors there are not made again.
    """
    concerned = [
        item.name
        for item in cluster.instances
        if item.primary in gone or (not primaries_only and item.secondary in gone)
    ]
    mode = Leave.PRIMARY if primaries_only else Leave.ALL
    found = relocate.evacuate(cluster, concerned, mode, frozenset(gone))
    places = {moved.name: moved.nodes for moved in found.moved}
    notes = [f"{name} would go to {' and '.join(nodes)}" for name, nodes in places.items()]
    notes += [f"{name} would have no place: {reason}" for name, reason in found.failed]
    return Supposed(
        place_instances(cluster, places), tuple(notes), tuple(name for name, _why in found.failed)
    )


def place_instances(cluster: Cluster, places: dict[str, tuple[str, ...]]) -> Cluster:
    """The cluster with instances on other nodes; what is free there follows."""
    instances = tuple(
        replace(item, primary=places[item.name][0], secondary=_second(item, places[item.name]))
        if item.name in places
        else item
        for item in cluster.instances
    )
    memory: dict[str, int] = {}
    disk: dict[str, int] = {}
    spindles: dict[str, int] = {}
    for before, after in zip(cluster.instances, instances):
        if before is after:
            continue
        for item, sign in ((before, 1), (after, -1)):
            if item.runs:
                memory[item.primary] = memory.get(item.primary, 0) + sign * item.memory
            for node in _data_nodes(item):
                disk[node] = disk.get(node, 0) + sign * item.disk
                spindles[node] = spindles.get(node, 0) + sign * (item.spindles or 0)
    nodes = tuple(
        node
        if node.offline
        else replace(
            node,
            free_memory=node.free_memory + memory.get(node.name, 0),
            free_disk=node.free_disk + disk.get(node.name, 0),
            free_spindles=node.free_spindles + spindles.get(node.name, 0),
        )
        for node in cluster.nodes
    )
    return replace(cluster, instances=instances, nodes=nodes)


def _second(item: Instance, nodes: tuple[str, ...]) -> str:
    return nodes[1] if item.mirror is Mirror.SECONDARY and len(nodes) > 1 else ""


def _data_nodes(item: Instance) -> list[str]:
    """Nodes whose disk it takes; what reservations take is not told by nodes."""
    if item.template not in LOCAL or item.forthcoming:
        return []
    return [node for node in (item.primary, item.secondary) if node]


# nodes that come or change -----------------------------------------------------------------------


def _add(cluster: Cluster, text: str, words: Sequence[str]) -> Supposed:
    if len(words) != 4 or words[2].lower() != "like" or not _COUNT.fullmatch(words[1]):
        raise errors.make_invalid_error(
            f"what-if '{text}': say how many and like which, 'add 2 like node1'"
        )
    count = int(words[1])
    if count > _MOST_ADDED:
        raise errors.make_invalid_error(
            f"what-if '{text}': at most {_MOST_ADDED} nodes can be added"
        )
    model = _node(cluster, words[3], text)
    if model.offline:
        raise errors.make_invalid_error(
            f"what-if '{text}': nothing is known of {model.name}, it is offline, drained or does"
            " not answer"
        )
    empty = _empty(cluster, model)
    names = _make_names(cluster, count)
    nodes = tuple(replace(empty, name=name) for name in names)
    note = f"{plural(count, 'node')} like {model.name}: {join_names(names)}"
    return Supposed(replace(cluster, nodes=cluster.nodes + nodes), (note,))


def _empty(cluster: Cluster, model: Node) -> Node:
    """The node as if it had no instances."""
    groups = [group for group in cluster.groups if group.uuid == model.group]
    board = Board(cluster, groups[0] if groups else None)
    at = board.node_index[model.name]
    used = Layout.from_board(board).used
    return replace(
        model,
        master=False,
        free_memory=int(board.memory_room_all[at]),
        free_disk=int(board.disk_room[at]),
        free_spindles=model.free_spindles + int(used[Use.OWN_SPINDLES][at]),
    )


def _make_names(cluster: Cluster, count: int) -> list[str]:
    used = {node.name for node in cluster.nodes}
    found: list[str] = []
    number = 1
    while len(found) < count:
        name = f"new{number}"
        if name not in used:
            found.append(name)
        number += 1
    return found


#: Capacities of a node that can change: the word, and the members for all of it and for the rest.
_SIZES = {"memory": ("memory", "free_memory"), "disk": ("disk", "free_disk"), "cpus": ("cpus", "")}


def _resize(cluster: Cluster, text: str, words: Sequence[str]) -> Supposed:
    word = words[0].lower()
    form = _AMOUNT.fullmatch(words[2]) if len(words) == 3 else None
    if form is None:
        raise errors.make_invalid_error(
            f"what-if '{text}': say which node and how much, '{word} node4 +8'"
        )
    try:
        amount = int(form[2]) if word == "cpus" else units.parse_size(form[2])
    except (errors.UnitParseError, ValueError):
        raise errors.make_invalid_error(
            f"what-if '{text}': '{words[2]}' is not an amount of {word}"
        ) from None
    node = _node(cluster, words[1], text)
    if node.offline:
        raise errors.make_invalid_error(
            f"what-if '{text}': nothing is known of {node.name}, it is offline, drained or does"
            " not answer"
        )
    whole, free = _SIZES[word]
    before = int(getattr(node, whole))
    change = {"+": amount, "-": -amount}.get(form[1], amount - before)
    least = before - int(getattr(node, free)) if free else 0
    if before + change < least:
        raise errors.make_invalid_error(
            f"what-if '{text}': {node.name} uses {least} of {word} now, so it cannot have"
            f" {max(0, before + change)}"
        )
    values = {whole: before + change}
    if free:
        values[free] = int(getattr(node, free)) + change
    other = dataclasses.replace(node, **values)  # type: ignore[arg-type]
    nodes = tuple(other if one.name == node.name else one for one in cluster.nodes)
    return Supposed(replace(cluster, nodes=nodes))


_Change = Callable[[Cluster, str, Sequence[str]], Supposed]
_CHANGES: dict[str, _Change] = {
    "remove": _remove,
    "fail": _fail,
    "add": _add,
    **dict.fromkeys(_SIZES, _resize),
}
