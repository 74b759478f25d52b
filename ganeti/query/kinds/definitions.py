"""Definitions in the search paths of nodes (OS, providers): one row for each name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ganeti.model.node import Node
from ganeti.query.field import Context
from ganeti.query.live import Answers, NodeState
from ganeti.query.tables import sort_key


class Named(Protocol):
    """Something found on a node."""

    @property
    def name(self) -> str: ...


F = TypeVar("F", bound=Named)


def group_by_name(answers: Answers[Sequence[F]]) -> list[tuple[str, dict[str, list[F]]]]:
    """Each name in natural order with its finds by the uuids of the nodes that answered."""
    good = {
        uuid: answer.payload or ()
        for uuid, answer in answers.items()
        if answer.state is NodeState.OK
    }
    names = {found.name for finds in good.values() for found in finds}
    return [
        (name, {uuid: [f for f in finds if f.name == name] for uuid, finds in good.items()})
        for name in sorted(names, key=sort_key)
    ]


def choose_nodes(ctx: Context) -> list[Node]:
    """The nodes that are asked: those that run instances and are not offline."""
    return [node for node in ctx.tables.nodes if node.vm_capable and not node.offline]
