"""Refuse a planned move that does not suit the cluster any more."""

from __future__ import annotations

from dataclasses import replace

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.opcodes.placement import OpInstanceCheckMove
from ganeti.ops.allocator import board
from ganeti.ops.allocator.board import View
from ganeti.ops.board.claims import Claim
from ganeti.ops.operation import Operation
from ganeti.placement import recheck


class InstanceCheckMove(Operation[OpInstanceCheckMove, None]):
    """The first opcode of a job that carries out a planned move.

    Takes no locks: the opcodes after it lock and check what they need for themselves. From here
    on the new place counts as taken for everybody who chooses one, until the job ends.
    """

    def check(self) -> None:
        self._instance(self.ctx.config)

    def run(self) -> None:
        ctx, op = self.ctx, self.op
        view = board.view_cluster(ctx, ctx.config.disk_template(self._instance(ctx.config)))
        with ctx.boards.decision():
            view = view.refresh(ctx)
            item = self._instance(view.config)
            self._check_present(view)
            group = view.config.groups[view.config.nodes[item.primary_node].group]
            layout = view.layout(group)
            reason = recheck.explain_refusal(
                layout, item.handle, op.to_nodes, must_gain=op.must_gain
            )
            if reason:
                raise self._make_error(reason)
            fact = layout.board.instances[layout.board.instance_index[item.handle]]
            primary, secondary = (*op.to_nodes, "")[:2]
            takes = replace(fact, primary=primary, secondary=secondary)
            claim = Claim(item.handle, tuple(op.to_nodes), (takes,), lasts=True)
            ctx.boards.claim(ctx.job.job_id, [claim])

    def _instance(self, config: Config) -> Instance:
        """The instance, when it is where it was; OpPrereqError."""
        op = self.op
        item = config.find_instance(op.instance_name)
        if item is None:
            raise self._make_error("it was removed")
        now = [config.nodes[uuid].name for uuid in config.instance_nodes(item)]
        if now != op.from_nodes:
            raise self._make_error(
                f"it is on {' and '.join(now) or 'no node'} now, it was planned on"
                f" {' and '.join(op.from_nodes)}"
            )
        return item

    def _check_present(self, view: View) -> None:
        there = {node.name for node in view.cluster.nodes if not node.offline}
        gone = [name for name in self.op.present if name not in there]
        if gone:
            raise self._make_error(
                f"{join_names(gone)} was there when the plan was made; now it is offline, drained"
                " or does not answer"
            )

    def _make_error(self, reason: str) -> errors.OpPrereqError:
        return errors.make_state_error(
            f"{self.op.instance_name} is not moved to {' and '.join(self.op.to_nodes)}: {reason}."
            " Make a new plan"
        )
