"""Layouts: who is where on a board, and what follows from it.

A :class:`Layout` is one assignment of the instances of a :class:`Board` to its nodes. ``moved``
returns another layout; nothing is ever changed in place. ``Layout.used`` is the sum of what the
instances use.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ganeti.placement.board import Board
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Use, total


class Layout:
    """Who is where: node indices of primary and secondary by instance, and what follows."""

    def __init__(self, board: Board, primary: Ints, secondary: Ints) -> None:
        self.board = board
        self.primary = primary
        self.secondary = secondary
        #: nodes whose instances have nowhere to go when it fails, once somebody has asked
        self.stuck: tuple[int, ...] | None = None

    @classmethod
    def first(cls, board: Board) -> Layout:
        """The layout that the facts describe."""
        first = cls(board, board.first_primary, board.first_secondary)
        first.__dict__["used"] = board.first_used
        return first

    def moved(self, instance: int, primary: int, secondary: int) -> Layout:
        """The layout after one instance has moved."""
        first, second = self.primary.copy(), self.secondary.copy()
        first[instance], second[instance] = primary, secondary
        other = Layout(self.board, first, second)
        board = self.board
        mine = board.primary_use[:, instance], board.secondary_use[:, instance]
        kept, real = board.reserve[instance], int(board.real[instance])
        used, peers, seats = self.used.copy(), self.peers.copy(), self.seats.copy()
        for p, s, sign in (
            (self.primary[instance], self.secondary[instance], -1),
            (primary, secondary, 1),
        ):
            if p != NOWHERE:
                used[:, p] += sign * mine[0]
                seats[0, p] += sign * real
            if s != NOWHERE:
                used[:, s] += sign * mine[1]
                seats[1, s] += sign * real
                if p != NOWHERE:
                    peers[s, p] += sign * kept
        known: dict[str, Any] = other.__dict__
        known.update(used=used, peers=peers, seats=seats)
        return other

    def on_board(self, board: Board, keep: int | None = None) -> Layout:
        """The same places on a board that has further instances, which have no place.

        ``keep``: how many instances both boards share; those that do not stay had no place.
        """
        keep = len(self.primary) if keep is None else keep
        fill = np.full(len(board.instances) - keep, NOWHERE, dtype=np.int64)
        other = Layout(
            board,
            np.concatenate([self.primary[:keep], fill]),
            np.concatenate([self.secondary[:keep], fill]),
        )
        known: dict[str, Any] = other.__dict__
        known.update(used=self.used, peers=self.peers, seats=self.seats)
        return other

    def place(self, instance: int) -> tuple[str, str]:
        """Names of the primary and the secondary node of an instance; "" for none."""
        nodes = self.board.nodes
        first, second = self.primary[instance], self.secondary[instance]
        return (
            nodes[first].name if first != NOWHERE else "",
            nodes[second].name if second != NOWHERE else "",
        )

    @cached_property
    def used(self) -> Floats:
        """What is used: :class:`Use` x node."""
        board = self.board
        uses = board.primary_use, board.secondary_use
        return total((self.primary, self.secondary), uses, len(board.nodes))

    @cached_property
    def peers(self) -> Floats:
        """Memory that (row) keeps for the failure of (column)."""
        count = len(self.board.nodes)
        both = (self.primary != NOWHERE) & (self.secondary != NOWHERE)
        cell = self.secondary[both] * count + self.primary[both]
        kept = np.bincount(cell, weights=self.board.reserve[both], minlength=count * count)
        both_ways: Floats = kept.reshape(count, count).astype(float)
        return both_ways

    @cached_property
    def seats(self) -> Ints:
        """How many real instances have a node as primary (row 0) and as secondary (row 1)."""
        count, real = len(self.board.nodes), self.board.real
        return np.array(
            [
                np.bincount(where[real & (where != NOWHERE)], minlength=count)
                for where in (self.primary, self.secondary)
            ]
        )

    @cached_property
    def reserved(self) -> Floats:
        """Memory each node keeps free for the worst failure of one other node."""
        if not len(self.board.nodes):
            return np.zeros(0)
        worst: Floats = self.peers.max(axis=1)
        return worst

    @cached_property
    def memory_left(self) -> Floats:
        left: Floats = self.board.memory_room - self.used[Use.MEMORY]
        return left

    @cached_property
    def memory_left_all(self) -> Floats:
        left: Floats = self.board.memory_room_all - self.used[Use.MEMORY_ALL]
        return left

    @cached_property
    def fails(self) -> Bools:
        """Whether a node cannot start what it is the secondary of."""
        left: Bools = self.memory_left < self.reserved
        return left

    @cached_property
    def apart_count(self) -> Floats:
        """How many primaries of a node have an exclusion tag: tag x node."""
        board = self.board
        count = np.zeros((len(board.exclusion_tags), len(board.nodes)))
        for slot in range(board.apart.shape[1]):
            tag = board.apart[:, slot]
            known = (tag != NOWHERE) & (self.primary != NOWHERE)
            np.add.at(count, (tag[known], self.primary[known]), 1)
        return count

    @cached_property
    def apart_at(self) -> Floats:
        """How many real primaries of online nodes have a tag at a location: tag x location."""
        board = self.board
        count = np.zeros((len(board.exclusion_tags), len(board.nodes)))
        for slot in range(board.apart.shape[1]):
            tag = board.apart[:, slot]
            known = (tag != NOWHERE) & (self.primary != NOWHERE) & board.real
            np.add.at(count, (tag[known], self.primary[known]), 1)
        total: Floats = (count * board.online) @ board.at.T.astype(float)
        return total
