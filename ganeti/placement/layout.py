"""Layouts: which instance is where on a board.

A :class:`Board` holds the facts of some nodes and their instances as arrays. A :class:`Layout` is
one assignment of the instances to the nodes and what follows from it; ``move`` returns another
layout, nothing is ever changed in place.

Most of what counts is linear: an instance adds what it uses to its primary and to its secondary
node. ``Layout.used`` is the sum (see :class:`Sums`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Sums, Use


class Layout:
    """Places of instances: node indices of primary and secondary by instance, with the sums."""

    def __init__(
        self, board: Board, primary: Ints, secondary: Ints, sums: Sums | None = None
    ) -> None:
        """``sums``: what the instances use together there, when it is known already."""
        self.board = board
        self.primary = primary
        self.secondary = secondary
        if sums is None:
            sums = Sums.from_places(board.uses, primary, secondary, len(board.nodes))
        self._sums = sums
        self.used, self.peers, self.seats = sums.used, sums.peers, sums.seats
        self.mirrored = sums.mirrored
        #: nodes whose instances have nowhere to go when it fails, once somebody has asked
        self.stuck: tuple[int, ...] | None = None

    @classmethod
    def from_board(cls, board: Board) -> Layout:
        """The layout that the facts describe."""
        return cls(board, *board.first, board.first_sums)

    def renew(self, cluster: Cluster) -> Layout | None:
        """The first layout of newer facts of the same nodes; see :meth:`Board.renew`."""
        if cluster is self.board.cluster:
            return self
        board = self.board.renew(cluster)
        return None if board is None else Layout.from_board(board)

    def move(self, instance: int, primary: int, secondary: int) -> Layout:
        """The layout after one instance has moved."""
        first, second = self.primary.copy(), self.secondary.copy()
        first[instance], second[instance] = primary, secondary
        sums, uses = self._sums.copy(), self.board.uses
        sums.add(uses, instance, int(self.primary[instance]), int(self.secondary[instance]), -1)
        sums.add(uses, instance, primary, secondary)
        return Layout(self.board, first, second, sums)

    def transfer(self, board: Board, keep: int | None = None) -> Layout:
        """The same places on a board that has further instances, which have no place.

        ``keep``: how many instances both boards share; those that do not stay had no place.
        """
        keep = len(self.primary) if keep is None else keep
        fill = np.full(len(board.instances) - keep, NOWHERE, dtype=np.int64)
        return Layout(
            board,
            np.concatenate([self.primary[:keep], fill]),
            np.concatenate([self.secondary[:keep], fill]),
            self._sums,
        )

    def place(self, instance: int) -> tuple[str, str]:
        """Names of the primary and the secondary node of an instance; "" for none."""
        nodes = self.board.nodes
        first, second = self.primary[instance], self.secondary[instance]
        return (
            nodes[first].name if first != NOWHERE else "",
            nodes[second].name if second != NOWHERE else "",
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
            known = (tag != NOWHERE) & (self.primary != NOWHERE) & board.uses.real
            np.add.at(count, (tag[known], self.primary[known]), 1)
        total: Floats = (count * board.online) @ board.at.T.astype(float)
        return total
