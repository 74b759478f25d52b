"""Kinds of moves of one instance, what limits them, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.use import NOWHERE


class Kind(StrEnum):
    """How an instance moves; ``f`` migrates to the secondary, ``r`` makes another secondary."""

    TO_SECONDARY = "f"
    REPLACE_SECONDARY = "r:{}"
    TO_SECONDARY_REPLACE = "f r:{}"
    REPLACE_TO_SECONDARY = "r:{} f"
    REPLACE_PRIMARY = "f r:{} f"
    TO_ANY = "fa:{}"


#: Kinds by what they need: without a target, with a target, on shared storage.
MIRRORED = (
    Kind.TO_SECONDARY,
    Kind.REPLACE_SECONDARY,
    Kind.REPLACE_TO_SECONDARY,
    Kind.REPLACE_PRIMARY,
    Kind.TO_SECONDARY_REPLACE,
)

#: Primary and secondary after a move: old primary, old secondary, target or nowhere.
AFTER = {
    Kind.TO_SECONDARY: ("s", "p"),
    Kind.REPLACE_SECONDARY: ("p", "t"),
    Kind.TO_SECONDARY_REPLACE: ("s", "t"),
    Kind.REPLACE_TO_SECONDARY: ("t", "p"),
    Kind.REPLACE_PRIMARY: ("t", "s"),
    Kind.TO_ANY: ("t", "-"),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the moves that are tried.

    ``instances``: only these names; ``frozen``: never these. ``evacuate``: only instances with a
    node that is offline. ``vcpu_ratio`` replaces that of the policies; ``disk_ratio`` is the share
    of its disk that a node keeps free.
    """

    disk_moves: bool = True
    instance_moves: bool = True
    restricted_migration: bool = False
    evacuate: bool = False
    ignore_soft: bool = False
    vcpu_ratio: float | None = None
    disk_ratio: float = 0.0
    instances: frozenset[str] | None = None
    frozen: frozenset[str] = frozenset()
    #: nodes that nothing moves to
    closed: frozenset[str] = frozenset()
    #: keep the soft rules for instances on nodes that are offline, too
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """One move: indices of the instance and its nodes afterwards, and the score then."""

    instance: int
    kind: Kind
    target: int
    primary: int
    secondary: int
    score: float = field(compare=False)


def describe(board: Board, move: Move) -> str:
    """The short form that programs print, for example ``f r:node3``."""
    name = board.nodes[move.target].name if move.target != NOWHERE else ""
    return move.kind.value.format(name)


def places_after(layout: Layout, kind: Kind, instance: int, target: int) -> tuple[int, int]:
    """Primary and secondary node of an instance after a move."""
    where = {
        "p": int(layout.primary[instance]),
        "s": int(layout.secondary[instance]),
        "t": target,
        "-": NOWHERE,
    }
    first, second = AFTER[kind]
    return where[first], where[second]
