"""Add a node to the cluster."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.base import releases
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model import base, params
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.model.params import NodeParams
from ganeti.net import resolve
from ganeti.opcodes.node import OpNodeAdd
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import checks, fencing_record
from ganeti.ops.steps.nodes import candidates, hosts_files, shared_files, ssh_keys, switches
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    name: str
    #: the node as it was, when it is added again
    old: Node | None
    primary_ip: str
    secondary_ip: str
    #: uuid of its node group
    group: GroupUuid
    ndparams: JsonObject
    #: digest of its certificate
    digest: str


class NodeAdd(PlannedOperation[OpNodeAdd, _Plan, None]):
    """The node daemon must run there already, with certificates of this cluster."""

    def decide(self) -> _Plan:
        op, config = self.op, self.ctx.config
        name = checks.host_name(op.node_name, "a node")
        old = next((node for node in config.nodes.values() if node.name == name), None)
        if op.readd and old is None:
            raise errors.make_unknown_error(
                f"node {name} is not in the cluster, so it cannot be added again"
            )
        if old is not None and not op.readd:
            raise errors.make_exists_error(f"node {name} is in the cluster already (see --readd)")
        primary_ip = op.primary_ip or self._address(name)
        secondary_ip = op.secondary_ip or primary_ip
        group = self._group(config, old)
        self._check_addresses(config, old, primary_ip, secondary_ip)
        ndparams = params.check(NodeParams, op.ndparams or {}, "node")
        digest = self._ask(name, primary_ip)
        return _Plan(name, old, primary_ip, secondary_ip, group, ndparams, digest)

    @staticmethod
    def _address(name: str) -> str:
        try:
            return resolve.address(name)
        except errors.ResolverError as err:
            raise errors.make_unresolved_error(
                f"node name {name} has no address: {errors.text(err)}"
            ) from err

    def _group(self, config: Config, old: Node | None) -> GroupUuid:
        if self.op.group is not None:
            return config.group(self.op.group).uuid
        if old is not None:
            return old.group
        by_name = {group.name: group for group in config.groups.values()}
        return (by_name.get("default") or next(iter(config.groups.values()))).uuid

    def _check_addresses(
        self, config: Config, old: Node | None, primary_ip: str, secondary_ip: str
    ) -> None:
        for node in config.nodes.values():
            if node is old:
                continue
            for address in (primary_ip, secondary_ip):
                if address in (node.primary_ip, node.secondary_ip):
                    raise errors.make_not_unique_error(
                        f"address {address} belongs to node {node.name}"
                    )
        master = config.master
        if (master.primary_ip == master.secondary_ip) != (primary_ip == secondary_ip):
            raise errors.make_invalid_error(
                "either all nodes have a secondary address of their own, or none has one"
            )

    def _ask(self, name: str, address: str) -> str:
        """The digest of its certificate; OpPrereqError when it speaks another protocol."""
        rpc = self.ctx.rpc
        version = rpc.call_address(address, name, NodeCalls.version)
        if version != constants.PROTOCOL_VERSION:
            raise errors.make_environment_error(
                f"node {name} speaks protocol {version}, this cluster"
                f" {constants.PROTOCOL_VERSION}: install version {releases.OWN} there, and run"
                f" 'ganeti-daemon-util switch-version {releases.OWN}' there if it has several"
            )
        tokens = rpc.call_address(address, name, NodeCalls.node_crypto_tokens, [("ssl", "get", {})])
        return tokens[0][1]

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {
            "OP_TARGET": self.plan.name,
            "NODE_NAME": self.plan.name,
            "NODE_PIP": self.plan.primary_ip,
            "NODE_SIP": self.plan.secondary_ip,
            "MASTER_CAPABLE": self.op.master_capable is not False,
            "VM_CAPABLE": self.op.vm_capable is not False,
        }
        others = [node.uuid for node in config.nodes.values() if node.name != self.plan.name]
        return Hooks("node-add", "NODE", env, others, list(config.nodes))

    def run(self) -> None:
        ctx = self.ctx
        node = self._node(ctx.config)

        def edit(draft: Draft) -> None:
            draft.put(node)
            if node.master_candidate:
                certs = {**draft.cluster.candidate_certs, node.uuid: self.plan.digest}
                draft.update_cluster(candidate_certs=certs)

        ctx.store.change("node-add", ctx.author, edit)
        for level in (LockLevel.NODE, LockLevel.NODE_RES):
            ctx.locks.create(level, [node.uuid])
        self._distribute(node)

    def _distribute(self, node: Node) -> None:
        """Send the node the files of all nodes, and of candidates if it is one."""
        ctx = self.ctx
        files = shared_files.list_for_all(ctx.paths)
        if node.master_candidate:
            files += shared_files.list_for_candidates(ctx.paths)
        failures = shared_files.send(ctx, [node], files)
        candidates.fill_up(ctx)
        for failure in [*failures, *ctx.services.distribute_ssconf()]:
            ctx.warn(failure)
        ssh_keys.bring_up_to_date(ctx)
        hosts_files.add(ctx, node)
        switches.configure(ctx, [ctx.config.nodes[node.uuid]])

    def _node(self, config: Config) -> Node:
        master_capable = self.op.master_capable is not False
        count = len([n for n in config.candidates() if n is not self.plan.old])
        candidate = master_capable and count < config.cluster.candidate_pool_size
        plan = self.plan
        values: JsonObject = {
            "primary_ip": self.plan.primary_ip,
            "secondary_ip": self.plan.secondary_ip,
            "master_candidate": candidate,
            "offline": False,
            "drained": False,
            "group": self.plan.group,
            "master_capable": master_capable,
            "vm_capable": self.op.vm_capable is not False,
        }
        if plan.old is not None:
            fenced = fencing_record.update(
                plan.old, None, self.ctx.clock.now(), self.ctx.job.job_id, offline=False
            )
            return base.replace(plan.old, **values, fenced=fenced)
        return Node(
            uuid=NodeUuid(str(uuid.uuid4())), name=plan.name, ndparams=plan.ndparams, **values
        )
