"""Take a prepared server into the cluster."""

from __future__ import annotations

import uuid

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model import base, params
from ganeti.model.config import Config
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.model.params import NodeParams
from ganeti.net import resolve
from ganeti.opcodes.node import OpNodeAdd
from ganeti.ops.operation import Hooks, Operation
from ganeti.ops.planning import checks
from ganeti.ops.steps.nodes import candidates, shared_files
from ganeti.rpc.calls import NodeCalls


class NodeAdd(Operation[OpNodeAdd, None]):
    """The node daemon must run there already, with certificates of this cluster."""

    def check(self) -> None:
        op, config = self.op, self.ctx.config
        self.name = checks.host_name(op.node_name, "a node")
        self.old = next((n for n in config.nodes.values() if n.name == self.name), None)
        if op.readd and self.old is None:
            raise errors.not_known(
                f"node {self.name} is not in the cluster, so it cannot be added again"
            )
        if self.old is not None and not op.readd:
            raise errors.already_exists(
                f"node {self.name} is in the cluster already (--readd brings it back)"
            )
        self.primary_ip = op.primary_ip or self._address(self.name)
        self.secondary_ip = op.secondary_ip or self.primary_ip
        self.group = self._group(config)
        self._check_addresses(config)
        self.ndparams = params.check(NodeParams, op.ndparams or {}, "node")
        self._ask()

    @staticmethod
    def _address(name: str) -> str:
        try:
            return resolve.address(name)
        except errors.ResolverError as err:
            raise errors.unresolved(f"node name {name} has no address: {errors.text(err)}") from err

    def _group(self, config: Config) -> str:
        if self.op.group is not None:
            return config.group(self.op.group).uuid
        if self.old is not None:
            return self.old.group
        by_name = {group.name: group for group in config.groups.values()}
        return (by_name.get("default") or next(iter(config.groups.values()))).uuid

    def _check_addresses(self, config: Config) -> None:
        for node in config.nodes.values():
            if node is self.old:
                continue
            for address in (self.primary_ip, self.secondary_ip):
                if address in (node.primary_ip, node.secondary_ip):
                    raise errors.not_unique(f"address {address} belongs to node {node.name}")
        master = config.master
        if (master.primary_ip == master.secondary_ip) != (self.primary_ip == self.secondary_ip):
            raise errors.invalid(
                "either all nodes have a secondary address of their own, or none has one"
            )

    def _ask(self) -> None:
        """The node must answer, speak our protocol and tell the digest of its certificate."""
        rpc = self.ctx.rpc
        version = rpc.at(self.primary_ip, self.name, NodeCalls.version)
        if version != constants.PROTOCOL_VERSION:
            raise errors.bad_environment(
                f"node {self.name} speaks protocol {version}, this cluster"
                f" {constants.PROTOCOL_VERSION}: install the same version there"
            )
        tokens = rpc.at(
            self.primary_ip, self.name, NodeCalls.node_crypto_tokens, [("ssl", "get", {})]
        )
        self.digest = tokens[0][1]

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {
            "OP_TARGET": self.name,
            "NODE_NAME": self.name,
            "NODE_PIP": self.primary_ip,
            "NODE_SIP": self.secondary_ip,
            "MASTER_CAPABLE": self.op.master_capable is not False,
            "VM_CAPABLE": self.op.vm_capable is not False,
        }
        others = [node.uuid for node in config.nodes.values() if node.name != self.name]
        return Hooks("node-add", "NODE", env, others, list(config.nodes))

    def run(self) -> None:
        ctx = self.ctx
        node = self._node(ctx.config)

        def edit(draft: Draft) -> None:
            draft.put(node)
            if node.master_candidate:
                certs = {**draft.cluster.candidate_certs, node.uuid: self.digest}
                draft.update_cluster(candidate_certs=certs)

        ctx.store.change("node-add", ctx.author, edit)
        for level in (LockLevel.NODE, LockLevel.NODE_RES):
            ctx.locks.create(level, [node.uuid])
        self._distribute(node)

    def _distribute(self, node: Node) -> None:
        """Give the node what all nodes have, and if it is a candidate what those have."""
        ctx = self.ctx
        files = shared_files.for_all(ctx.paths)
        if node.master_candidate:
            files += shared_files.for_candidates(ctx.paths)
        failures = shared_files.send(ctx, [node], files)
        candidates.fill_up(ctx)
        for failure in [*failures, *ctx.services.distribute_ssconf()]:
            ctx.warn(failure)

    def _node(self, config: Config) -> Node:
        master_capable = self.op.master_capable is not False
        count = len([n for n in config.candidates() if n is not self.old])
        candidate = master_capable and count < config.cluster.candidate_pool_size
        values = {
            "primary_ip": self.primary_ip,
            "secondary_ip": self.secondary_ip,
            "master_candidate": candidate,
            "offline": False,
            "drained": False,
            "group": self.group,
            "master_capable": master_capable,
            "vm_capable": self.op.vm_capable is not False,
        }
        if self.old is not None:
            return base.replace(self.old, **values)
        return Node(uuid=str(uuid.uuid4()), name=self.name, ndparams=self.ndparams, **values)  # type: ignore[arg-type]
