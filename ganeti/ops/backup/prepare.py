"""Make what another cluster needs to trust an export to it."""

from __future__ import annotations

from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.net import cluster_trust
from ganeti.opcodes.backup import OpBackupPrepare
from ganeti.opcodes.enums import ExportMode
from ganeti.ops.operation import Needs
from ganeti.ops.steps.running import power
from ganeti.ops.targets.instance import InstanceOperation
from ganeti.rpc.calls import NodeCalls


class BackupPrepare(InstanceOperation[OpBackupPrepare, JsonObject | None]):
    """Nothing is needed for an export inside of the cluster."""

    def locks(self) -> Needs:
        yield from self.lock_instance(shared=True)
        yield from self.lock_nodes([self.instance.primary_node])

    def check(self) -> None:
        power.primary(self.ctx, self.instance)

    def run(self) -> JsonObject | None:
        ctx = self.ctx
        if self.op.mode is ExportMode.LOCAL:
            return None
        node = power.primary(ctx, self.instance)
        secret = files.read_text(ctx.paths.domain_secret).strip()
        ctx.log(f"* making a key for the export on node {node.name}")
        name, pem = ctx.rpc.call_one(node, NodeCalls.x509_cert_create, cluster_trust.VALIDITY)
        return {
            "handshake": cluster_trust.make_handshake(secret),
            "x509_key_name": cluster_trust.sign_key_name(secret, name),
            "x509_ca": cluster_trust.sign_certificate(secret, pem),
        }
