"""The cluster as the placement model sees it, for every operation that decides where guests go.

::

    view = board.view_cluster(ctx)                      # asks all nodes
    layout = view.layout(group)                 # where the instances of a node group are, as arrays
    with ctx.boards.decision():                 # no other job chooses until the end of this block
        view = view.refresh(ctx)
        ...
        ctx.boards.claim(ctx.job.job_id, claims)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ganeti.model.config import Config
from ganeti.model.group import NodeGroup
from ganeti.ops.allocator import gather
from ganeti.ops.board.keeper import Boards
from ganeti.ops.board.node_answers import Answers
from ganeti.ops.operation import Context
from ganeti.placement import facts

if TYPE_CHECKING:  # it loads numpy, which the daemon does at first use
    from ganeti.placement.layout import Layout


@dataclass(frozen=True)
class View:
    """One state of the cluster; nothing in it changes any more."""

    #: the configuration that :attr:`cluster` describes
    config: Config
    #: nodes, instances, reservations, and places that other jobs were given a moment ago
    cluster: facts.Cluster
    answers: Answers
    _boards: Boards

    @property
    def silent(self) -> list[str]:
        """Names of nodes that should have answered and did not: unknown, not empty."""
        return sorted(
            node.name
            for uuid, node in self.answers.config.nodes.items()
            if node.vm_capable and not node.offline and uuid not in self.answers.nodes
        )

    def layout(self, group: NodeGroup | facts.Group) -> Layout:
        """Return the places of the instances of a node group. Loads numpy when nobody has yet."""
        return self._boards.layout(self.cluster, group.uuid, self.answers.unit)

    def refresh(self, ctx: Context) -> View:
        """With the newest configuration and the newest claims; nodes are not asked again.

        Objects added to the configuration since the nodes answered are subtracted from the answers.
        """
        return see(ctx, self.answers)


def view_cluster(ctx: Context, template: str = "", config: Config | None = None) -> View:
    """The cluster now.

    Free memory, free disk space and what runs are asked of all nodes, so they are not older than
    this call, which blocks until all have answered (at most ``gather.PATIENCE`` seconds).
    Everything else is from the configuration. No lock is needed. Nodes that do not answer, are
    offline or drained, or are not for instances have ``offline`` set, and no resources. The disk
    space is that of one storage unit: of ``template``, else of the first template that is enabled.
    ``config`` stands for the newest configuration. Raises nothing for a node.
    """
    return see(ctx, gather.ask_nodes(ctx, template, config), config)


def see(ctx: Context, answers: Answers, config: Config | None = None) -> View:
    """The cluster with the newest configuration and claims, from what nodes said before."""
    now = config or ctx.config
    return View(now, ctx.boards.cluster(now, answers, ctx.job.job_id), answers, ctx.boards)
