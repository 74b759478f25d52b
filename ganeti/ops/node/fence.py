"""Prove that a node is dead, mark it offline, and start its instances elsewhere.

Nothing is started on silence alone: a node that is cut off may still run its guests. Either its
out-of-band helper switches it off and then says that it is off, or a person confirms it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.model.start_order import get_order, make_dependencies
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import FinalStatus, OobCommand
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.node import OpNodeFence, OpNodeSetParams
from ganeti.opcodes.values import JobDep
from ganeti.ops.oob import command
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import recovery
from ganeti.ops.steps.nodes import departures
from ganeti.rpc.calls import NodeCalls

#: Seconds that a node gets to show that it lives.
_SIGN = 5.0


class NodeFence(PlannedOperation[OpNodeFence, Node, dict[str, Any]]):
    """``{"jobs": [[true, id]], "proof": text, "left": [{"instance": name, "reason": text}]}``.

    Takes no lock: jobs that hang on the dead node hold its lock.
    """

    def locks(self) -> Needs:
        yield Need(LockLevel.NODE, (), shared=True)

    def decide(self) -> Node:
        config, op = self.ctx.config, self.op
        node = config.node(op.node_uuid or op.node_name)
        if node.uuid == config.cluster.master_node:
            raise errors.make_invalid_error(
                f"node {node.name} is the master; gnt-cluster master-failover on another node"
                " replaces it"
            )
        if not op.confirm and not self._program(node):
            raise errors.make_state_error(
                f"nothing can prove that node {node.name} is dead: it has no out-of-band helper"
                " (node parameter oob_program); switch the node off, and repeat with --confirm"
            )
        if self._is_alive(node):
            raise errors.make_state_error(
                f"node {node.name} answers, so it is not dead; gnt-node maintenance on moves its"
                " instances while they run"
            )
        return node

    def _program(self, node: Node) -> str:
        return str(self.ctx.config.ndparams(node).get("oob_program") or "")

    def _is_alive(self, node: Node) -> bool:
        online = msgspec.structs.replace(node, offline=False)
        try:
            self.ctx.rpc.limit_time(_SIGN).call_one(online, NodeCalls.version)
        except errors.GanetiError:
            return False
        return True

    def _rescue(self) -> recovery.Rescue:
        ctx = self.ctx
        return recovery.plan(
            ctx.config, self.plan, ctx.clock.now(), everything=self.op.all_instances
        )

    # run ---------------------------------------------------------------------------------

    def preview(self) -> dict[str, Any]:
        rescue = self._rescue()
        names = [item.handle for item in rescue.failovers]
        return {"jobs": [], "proof": "", "failovers": names, "left": _list_left(rescue)}

    def run(self) -> dict[str, Any]:
        ctx, node = self.ctx, self.plan
        proof = self._prove()
        ctx.log(f"Node {node.name} is dead: {proof}")
        rescue = self._rescue()
        for name, why in rescue.left:
            ctx.warn(f"instance {name} is not started elsewhere: {why}")
        names = join_names(item.handle for item in rescue.failovers)
        ctx.log(f"Instances that fail over: {names or 'none'}")
        done = departures.submit_all(ctx, self.op, self._jobs(rescue))
        return {**done, "proof": proof, "left": _list_left(rescue)}

    def _prove(self) -> str:
        """What proves that the node is dead.

        Raises:
            OpExecError: nothing does; the text says what the helper said.
        """
        node = self.plan
        if self.op.confirm:
            return "an administrator has confirmed that it is switched off"
        self._ask_helper(OobCommand.POWER_OFF)
        said = self._ask_helper(OobCommand.POWER_STATUS)
        if said["powered"]:
            raise errors.OpExecError(
                f"nothing is started elsewhere: the out-of-band helper was told to switch node"
                f" {node.name} off, and says that it is still on"
            )
        return f"{self._program(node)} has switched it off, and says that it is off"

    def _ask_helper(self, what: OobCommand) -> Any:
        node, ctx = self.plan, self.ctx
        program = self._program(node)
        try:
            text = ctx.rpc.call_one(
                ctx.config.master,
                NodeCalls.run_oob,
                program,
                str(what),
                node.name,
                self.op.timeout,
            )
            return command.read(what, text)
        except errors.GanetiError as err:
            raise errors.OpExecError(
                f"nothing is started elsewhere, as nothing proves that node {node.name} is dead:"
                f" {program} {what}: {errors.text(err)}; if you have seen that it is off, repeat"
                " with --confirm"
            ) from err

    def _jobs(self, rescue: recovery.Rescue) -> list[list[OpCode]]:
        """First the role of the node; then failovers, which wait for it and for their order."""
        node = self.plan
        jobs: list[list[OpCode]] = []
        if not node.offline:
            role = OpNodeSetParams(node_name=node.name, offline=True, auto_promote=True)
            if self._program(node):
                role.powered = False
            jobs.append([role])
        first = len(jobs)
        orders = [get_order(item.tags) for item in rescue.failovers]
        for item, earlier in zip(rescue.failovers, make_dependencies(orders), strict=True):
            waits = [JobDep(-len(jobs), [FinalStatus.SUCCESS])] if first else []
            waits += [JobDep(job) for job, _ends in earlier]
            step = OpInstanceFailover(instance_name=item.handle, depends=waits or None)
            jobs.append([step])
        return jobs


def _list_left(rescue: recovery.Rescue) -> list[dict[str, str]]:
    return [{"instance": name, "reason": why} for name, why in rescue.left]
