"""The boards that the master keeps between two placements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ganeti.model.config import Config
from ganeti.ops.board.claims import Claim, Claims
from ganeti.ops.board.convert import Converter
from ganeti.ops.board.node_answers import Answers
from ganeti.placement import facts
from ganeti.placement.facts import LOCAL

if TYPE_CHECKING:  # it loads numpy, which the daemon does at first use
    from ganeti.placement.layout import Layout


def _return_false(_job_id: int) -> bool:
    return False


class Boards:
    """One in the master. Thread-safe.

    Whoever chooses a place holds :meth:`decision` from the look at the cluster until its claims
    are added, so two requests at the same moment do not get the same place. Only computing happens
    meanwhile: nodes are asked before.
    """

    def __init__(self, ended: Callable[[int], bool] = _return_false) -> None:
        """``ended`` says whether a job is over."""
        self._mutex = threading.RLock()
        self._program_mutex = threading.Lock()
        self._claims = Claims(ended)
        self._converter = Converter()
        #: the last layout of a group, by its uuid and the storage unit that matters
        self._layouts: dict[tuple[str, tuple[str, str]], Layout] = {}

    @contextmanager
    def decision(self) -> Iterator[None]:
        """Nobody else looks or claims meanwhile; hold it for milliseconds."""
        with self._mutex:
            yield

    @contextmanager
    def program_decision(self) -> Iterator[None]:
        """No other program of the site is asked for a place meanwhile; it may take minutes.

        The built-in allocator does not wait for it, and its claims are told to the next program.
        """
        with self._program_mutex:
            yield

    def cluster(self, config: Config, answers: Answers, job_id: int) -> facts.Cluster:
        """The cluster as it is, with what other jobs than this one were given already."""
        with self._mutex:
            made = self._converter.cluster(config, answers)
            for item in self.list_claimed(config, job_id):
                made = add_running(made, item)
            return made

    def list_claimed(self, config: Config, job_id: int) -> list[facts.Instance]:
        """Claims of other jobs, as instances that the configuration does not have yet."""
        with self._mutex:
            claims = self._claims.list_open(config, job_id)
        return [item for claim in claims for item in claim.takes]

    def layout(self, cluster: facts.Cluster, group: str, unit: tuple[str, str]) -> Layout:
        """The instances of a group (uuid) by node, from what is known of the group already.

        Loads numpy when nobody has yet.
        """
        from ganeti.placement.board import Board
        from ganeti.placement.layout import Layout

        with self._mutex:
            last = self._layouts.get((group, unit))
            layout = None if last is None else last.renew(cluster)
            if layout is None:
                [own] = [item for item in cluster.groups if item.uuid == group]
                layout = Layout.from_board(Board(cluster, own))
            self._layouts[group, unit] = layout
            return layout

    def claim(self, job_id: int, claims: Iterable[Claim]) -> None:
        """Count the places of a job for others from now on."""
        with self._mutex:
            self._claims.add(job_id, claims)

    def hand_over(self, job_id: int, heirs: Mapping[str, int]) -> None:
        """Claims pass to the jobs that a job submitted: by handle of the instance."""
        with self._mutex:
            self._claims.hand_over(job_id, heirs)

    def release(self, job_id: int) -> None:
        """An operation of the job is over. Idempotent."""
        with self._mutex:
            self._claims.release(job_id)


def add_running(cluster: facts.Cluster, item: facts.Instance) -> facts.Cluster:
    """The cluster with one more instance that runs on its nodes."""
    places = (item.primary, item.secondary)
    nodes = []
    for node in cluster.nodes:
        if node.name == item.primary and item.runs:
            node = replace(node, free_memory=node.free_memory - item.memory)
        if node.name in places and item.template in LOCAL:
            node = replace(node, free_disk=node.free_disk - item.disk)
        nodes.append(node)
    return replace(cluster, nodes=tuple(nodes), instances=(*cluster.instances, item))
