"""Change the role, the addresses or the parameters of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names, plural
from ganeti.config import candidates as pool
from ganeti.config import parameters
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.base import changes
from ganeti.opcodes.node import OpNodeSetParams
from ganeti.ops.operation import Hooks, Needs, PlannedOperation
from ganeti.ops.planning import fencing_record, node_roles
from ganeti.ops.steps import images
from ganeti.ops.steps.nodes import candidates, secondary_ip, ssh_keys, switches
from ganeti.ops.targets.node import NodeOperation
from ganeti.rpc.calls import NodeCalls

Result = list[tuple[str, Any]]


@dataclass(frozen=True)
class _Plan:
    decision: node_roles.Decision
    #: new values of other fields
    values: JsonObject
    #: certificate digests of nodes that become candidates, by uuid
    digests: dict[NodeUuid, str]


class NodeSetParams(
    NodeOperation[OpNodeSetParams, Result], PlannedOperation[OpNodeSetParams, _Plan, Result]
):
    """Returns ``(name, new value)`` of what changed; flags as the texts True and False."""

    def locks(self) -> Needs:
        """The node, and with ``auto_promote`` those that may have to take its place."""
        op, config = self.op, self.ctx.config
        node = config.node(op.node_uuid or op.node_name)
        others = pool.choose_promotions(config, without={node.uuid}) if op.auto_promote else []
        yield from self.lock_node(also=[other.uuid for other in others])

    @property
    def locked(self) -> frozenset[NodeUuid]:
        """The nodes whose role may change."""
        return frozenset(NodeUuid(uuid) for uuid in self.ctx.list_held(LockLevel.NODE))

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        op, config, node = self.op, self.ctx.config, self.node
        if not changes(op):
            raise errors.make_invalid_error("nothing to change: give at least one parameter")
        decision = node_roles.decide(config, node, op, self.locked)
        if op.proof is not None and not decision.offline:
            raise errors.make_invalid_error("only a node that is set offline has a proof of death")
        self._check_power(config)
        self._check_vm_capable(config)
        values = self._parameters(config)
        if node.offline and not decision.offline:
            self._check_answers()
            values["powered"] = True
        if op.secondary_ip is not None and op.secondary_ip != node.secondary_ip:
            offline = decision.offline
            secondary_ip.check(self.ctx, node, op.secondary_ip, offline=offline, force=op.force)
            values["secondary_ip"] = op.secondary_ip
        promoted = [config.nodes[uuid] for uuid in decision.instead]
        if decision.master_candidate and not node.master_candidate:
            promoted.append(node)
        digests = {other.uuid: candidates.digest(self.ctx, other) for other in promoted}
        return _Plan(decision, values, digests)

    def _check_power(self, config: Config) -> None:
        op, node = self.op, self.node
        if op.powered is None:
            return
        if op.powered is False and op.offline is False:
            raise errors.make_invalid_error(
                f"node {node.name} cannot be online and switched off at the same time"
            )
        if not _has_helper(config, node):
            raise errors.make_state_error(
                f"node {node.name} has no out-of-band helper (node parameter oob_program), so"
                " whether it is switched on cannot be recorded"
            )

    def _check_vm_capable(self, config: Config) -> None:
        if self.op.vm_capable is not False:
            return
        used = [*config.primaries[self.node.uuid], *config.secondaries[self.node.uuid]]
        if used:
            raise errors.make_state_error(
                f"node {self.node.name} has {len(used)} instances"
                f" ({join_names(item.name for item in used)}); move or remove them first"
            )
        detached = config.list_detached_disks(self.node.uuid)
        if detached:
            raise errors.make_state_error(
                f"node {self.node.name} holds {plural(len(detached), 'detached disk')}"
                f" ({join_names(disk.name or disk.uuid for disk in detached)}); remove them first"
                " (gnt-disk remove), or attach and move them"
            )

    def _parameters(self, config: Config) -> JsonObject:
        """New values of the node's fields, without the flags of its role."""
        op, node = self.op, self.node
        values: JsonObject = {}
        if op.ndparams is not None:
            values["ndparams"] = parameters.node(node.ndparams, op.ndparams, single=True)
        if op.hv_state is not None:
            values["hv_state_static"] = parameters.hv_state(node.hv_state_static, op.hv_state)
        if op.disk_state is not None:
            values["disk_state_static"] = parameters.disk_state(
                node.disk_state_static, op.disk_state
            )
        if op.powered is not None:
            values["powered"] = op.powered
        if op.vm_capable is not None:
            values["vm_capable"] = op.vm_capable
        return values

    def _check_answers(self) -> None:
        node = self.node
        try:
            self.ctx.rpc.call_one(candidates.online(node), NodeCalls.version)
        except errors.GanetiError as err:
            off = _has_helper(self.ctx.config, node) and not node.powered
            advice = "; it is recorded as switched off: gnt-node power on switches it on"
            raise errors.make_environment_error(
                f"node {node.name} cannot be set online, it does not answer: {errors.text(err)}"
                f"{advice if off else ''}"
            ) from err
        self.ctx.warn(
            f"node {node.name} is online again as it was; if it was away for long,"
            " use gnt-node add --readd"
        )

    def hooks(self) -> Hooks:
        op = self.op
        env = {
            "OP_TARGET": self.node.name,
            "MASTER_CANDIDATE": str(op.master_candidate),
            "OFFLINE": str(op.offline),
            "DRAINED": str(op.drained),
            "MASTER_CAPABLE": str(op.master_capable),
            "VM_CAPABLE": str(op.vm_capable),
        }
        nodes = list(dict.fromkeys([self.ctx.config.cluster.master_node, self.node.uuid]))
        return Hooks("node-modify", "NODE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def preview(self) -> Result:
        return []

    def run(self) -> Result:
        ctx = self.ctx
        for note in self.plan.decision.notes:
            ctx.log(note)
        promoted = [ctx.config.nodes[uuid] for uuid in self.plan.digests]
        if promoted:
            candidates.send_secrets(ctx, promoted)
        before = ctx.config
        ctx.store.change("node-modify", ctx.author, self._edit)
        after = ctx.config.nodes[self.node.uuid]
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        if "ndparams" in self.plan.values:
            switches.configure(ctx, switches.find_changed(before, ctx.config))
        if (self.node.master_candidate or self.node.offline) and not after.master_candidate:
            # One that comes back may not know that it is no longer a candidate.
            candidates.inform_demoted(ctx, [after])
        if before.candidates() != ctx.config.candidates() or self.node.offline != after.offline:
            ssh_keys.bring_up_to_date(ctx)
        changed = promoted or self.node.master_candidate != after.master_candidate
        if changed and ctx.config.images:
            images.distribute(ctx)
        return _differences(self.node, after)

    def _edit(self, draft: Draft) -> None:
        node = draft.config.nodes[self.node.uuid]
        if node_roles.decide(draft.config, node, self.op, self.locked) != self.plan.decision:
            raise errors.make_state_error(
                "another job changed the master candidates meanwhile; try again"
            )
        decision = self.plan.decision
        now, job = self.ctx.clock.now(), self.ctx.job.job_id
        fenced = fencing_record.update(node, self.op.proof, now, job, offline=decision.offline)
        draft.update(
            node,
            fenced=fenced,
            **self.plan.values,
            master_candidate=decision.master_candidate,
            drained=decision.drained,
            offline=decision.offline,
            master_capable=decision.master_capable,
        )
        if decision.instead:
            candidates.record(draft, {uuid: self.plan.digests[uuid] for uuid in decision.instead})
        if decision.master_candidate:
            certs = {**draft.cluster.candidate_certs, **self.plan.digests}
            if certs != draft.cluster.candidate_certs:
                draft.update_cluster(candidate_certs=certs)
        else:
            candidates.forget(draft, [self.node.uuid])


def _has_helper(config: Config, node: Node) -> bool:
    """Whether it is recorded of the node that it is switched on."""
    return bool(config.ndparams(node).get("oob_program"))


_SHOWN = {"hv_state_static": "hv_state", "disk_state_static": "disk_state"}


def _differences(before: Node, after: Node) -> Result:
    fields = (
        "master_candidate",
        "drained",
        "offline",
        "master_capable",
        "vm_capable",
        "powered",
        "secondary_ip",
        "ndparams",
        "hv_state_static",
        "disk_state_static",
    )
    result: Result = []
    for name in fields:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            shown = str(new) if isinstance(new, bool) else new
            result.append((_SHOWN.get(name, name), shown))
    return result
