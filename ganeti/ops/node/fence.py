"""Prove that a node is dead, mark it offline, and start its instances elsewhere.

Nothing is started on silence alone: a node that is cut off may still run its guests. The kinds
of proof of its death are in :mod:`ganeti.recovery.ladder`.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.node import Node
from ganeti.model.start_order import get_order, make_dependencies
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import FinalStatus
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.node import OpNodeFence, OpNodeSetParams
from ganeti.opcodes.values import JobDep
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import recovery
from ganeti.ops.steps.nodes import departures, failover_places, fencing


class NodeFence(PlannedOperation[OpNodeFence, Node, JsonObject]):
    """``{"jobs": [[true, id]], "proof": text, "left": [{"instance": name, "reason": text}]}``.

    With ``test`` in the opcode the devices are only asked, and ``test`` has what they said.

    Takes no lock: jobs that hang on the dead node hold its lock.
    """

    cancelable = True

    def locks(self) -> Needs:
        yield Need(LockLevel.NODE, (), shared=True)

    def decide(self) -> Node:
        config, op = self.ctx.config, self.op
        node = config.node(op.node_uuid or op.node_name)
        if op.test:
            return node
        if node.uuid == config.cluster.master_node:
            raise errors.make_invalid_error(
                f"node {node.name} is the master; gnt-cluster master-failover on another node"
                " replaces it"
            )
        known = op.confirm or node.is_proven_dead or self._find_devices(node)
        if not (known or self._has_watchdog(node)):
            raise errors.make_state_error(
                f"nothing can prove that node {node.name} is dead: it has no fence agent (node"
                " parameter fence_agent), no out-of-band helper (oob_program) and no watchdog that"
                " is on; switch the node off, and repeat with --confirm"
            )
        if fencing.is_alive(self.ctx, node):
            raise errors.make_state_error(
                f"node {node.name} answers, so it is not dead; gnt-node maintenance on moves its"
                " instances while they run"
            )
        return node

    def _find_devices(self, node: Node) -> list[fencing.Device]:
        return fencing.find_devices(self.ctx, node, self.op.timeout)

    def _has_watchdog(self, node: Node) -> bool:
        with self.ctx.services.hold_lease_back(node.uuid) as lease:
            return lease.watchdog

    def _find_places(self, *, claim: bool) -> failover_places.Places:
        everything = self.op.all_instances
        return failover_places.find_places(self.ctx, self.plan, everything=everything, claim=claim)

    # run ---------------------------------------------------------------------------------

    def preview(self) -> JsonObject:
        places = self._find_places(claim=False)
        names = [start.instance.handle for start in places.starts]
        return {"jobs": [], "proof": "", "failovers": names, "left": _list_left(places)}

    def run(self) -> JsonObject:
        ctx, node = self.ctx, self.plan
        devices = self._find_devices(node)
        if self.op.test:
            watchdog = self._has_watchdog(node)
            lines = fencing.test(ctx, node, devices, watchdog=watchdog)
            return {"jobs": [], "proof": "", "left": [], "test": lines}
        with ctx.services.hold_lease_back(node.uuid) as lease:
            if node.is_proven_dead and node.fenced is not None:
                proof = node.fenced.proof
            else:
                proof = fencing.prove(ctx, node, devices, lease, confirmed=self.op.confirm)
            ctx.log(f"Node {node.name} is dead: {proof}")
            done = self._start_elsewhere(proof)
        return {**done, "proof": proof}

    def _start_elsewhere(self, proof: str) -> JsonObject:
        """Submit the jobs: the role of the node, unless it is known, then the failovers."""
        ctx, places = self.ctx, self._find_places(claim=True)
        for name, reason in places.left:
            ctx.warn(f"instance {name} is not started elsewhere: {reason}")
        for name, reason in places.roomless:
            ctx.warn(f"instance {name} waits for room: {reason}")
        starts = self._claim_starts(places.starts)
        names = join_names(start.instance.handle for start in starts)
        ctx.log(f"Instances that fail over: {names or 'none'}")
        role = [] if self.plan.is_proven_dead else [self._make_role(proof)]
        failovers = _make_failovers(starts, len(role))
        done = departures.submit_all(ctx, self.op, [*role, *failovers])
        jobs = [job for _accepted, job in done["jobs"]][len(role) :]
        handles = (start.instance.handle for start in starts)
        ctx.boards.hand_over(ctx.job.job_id, dict(zip(handles, jobs)))
        self._note_jobs(starts, jobs)
        return {**done, "left": _list_left(places)}

    def _make_role(self, proof: str) -> list[OpCode]:
        node = self.plan
        role = OpNodeSetParams(node_name=node.name, offline=True, auto_promote=True, proof=proof)
        if self.ctx.config.ndparams(node).get("oob_program"):
            role.powered = False
        return [role]

    def _claim_starts(self, starts: list[failover_places.Start]) -> list[failover_places.Start]:
        """Those that no other job starts: two jobs may fence the node at the same time.

        The record of the instance decides, and from this change on it names this job.
        """
        if not starts:
            return []
        ctx, node, now = self.ctx, self.plan, self.ctx.clock.now()

        def edit(draft: Draft) -> list[failover_places.Start]:
            claimed = []
            for start in starts:
                known = draft.config.instances.get(start.instance.uuid)
                if known is None or known.primary_node != node.uuid:
                    continue
                if not recovery.is_starting(known, node, ctx.services.has_ended):
                    attempt = recovery.count_attempt(known, node, ctx.job.job_id, now)
                    draft.update(known, recovery=attempt)
                    claimed.append(start)
            return claimed

        return ctx.store.change("node-fence-claim", ctx.author, edit)

    def _note_jobs(self, starts: list[failover_places.Start], jobs: list[int]) -> None:
        """From now on the record of each instance names the job that starts it."""
        if not jobs:
            return

        def edit(draft: Draft) -> None:
            for start, job in zip(starts, jobs, strict=True):
                known = draft.config.instances.get(start.instance.uuid)
                if known is not None and known.recovery is not None:
                    draft.update(known, recovery=base.replace(known.recovery, job=job))

        self.ctx.store.change("node-fence", self.ctx.author, edit)


def _make_failovers(starts: list[failover_places.Start], first: int) -> list[list[OpCode]]:
    """A job each; they wait for the ``first`` job, if there is one, and for their order."""
    jobs: list[list[OpCode]] = []
    orders = [get_order(start.instance.tags) for start in starts]
    for start, earlier in zip(starts, make_dependencies(orders), strict=True):
        waits = [JobDep(-len(jobs) - 1, [FinalStatus.SUCCESS])] if first else []
        waits += [JobDep(job) for job, _ends in earlier]
        step = OpInstanceFailover(
            instance_name=start.instance.handle,
            target_node=start.node,
            depends=waits or None,
        )
        jobs.append([step])
    return jobs


def _list_left(places: failover_places.Places) -> list[dict[str, str]]:
    """All that do not start now, with the reason."""
    return [
        *({"instance": name, "reason": reason} for name, reason in places.left),
        *({"instance": name, "reason": f"no room: {reason}"} for name, reason in places.roomless),
    ]
