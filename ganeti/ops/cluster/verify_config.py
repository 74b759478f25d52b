"""Verify what can be verified without asking a node."""

from __future__ import annotations

from ganeti.base import upgrade_intent
from ganeti.config import verify
from ganeti.locking.levels import LockLevel
from ganeti.model.instance import Instance
from ganeti.opcodes.cluster import OpClusterVerifyConfig
from ganeti.ops import locks
from ganeti.ops.operation import Operation
from ganeti.ops.planning import images as image_rules
from ganeti.ops.planning import restores, snapshots
from ganeti.ops.verification import certificates, images
from ganeti.ops.verification.report import Report


class ClusterVerifyConfig(Operation[OpClusterVerifyConfig, bool]):
    """True when nothing is wrong."""

    def run(self) -> bool:
        ctx = self.ctx
        report = Report(ctx, error_codes=self.op.error_codes, ignored=self.op.ignore_errors)
        report.section("Verifying cluster config")
        name = ctx.config.cluster.cluster_name
        for text in verify.defects(ctx.config):
            report.error("ECLUSTERCFG", "cluster", name, text)
        for node, group in verify.find_lost_nodes(ctx.config).items():
            text = f"belongs to node group {group}, which does not exist"
            report.error("ECLUSTERDANGLINGNODES", "node", node, text)
        for instance, node in verify.find_lost_instances(ctx.config).items():
            text = f"is the primary node of instance {instance}, but does not exist"
            report.error("ECLUSTERDANGLINGINST", "node", node, text)
        self._check_interrupted(report)
        self._check_upgrade(report)
        images.check_interrupted(report, ctx.config, ctx.claims.list_jobs(image_rules.NAMES))
        report.section("Verifying cluster certificate files")
        certificates.authority(report, name, ctx.paths, ctx.clock.now())
        certificates.renewal(report, ctx.config, ctx.paths)
        ctx.services.note_findings("", report.findings)
        return report.ok

    def _check_upgrade(self, report: Report) -> None:
        """An upgrade that nobody is at any more."""
        intent = upgrade_intent.read(self.ctx.paths)
        if intent is not None and not intent.is_at_work:
            report.error(
                "ECLUSTERCFG",
                "cluster",
                self.ctx.config.cluster.cluster_name,
                f"an upgrade from {intent.old} to {intent.new} did not come to its end: run"
                " 'gnt-cluster upgrade --resume'",
            )

    def _check_interrupted(self, report: Report) -> None:
        """Instances and disks whose creation did not end, and places that are none."""
        ctx = self.ctx
        busy = locks.locked_names(ctx, LockLevel.INSTANCE)
        making = locks.locked_names(ctx, LockLevel.DISK)
        for disk in ctx.config.disks.values():
            owner = ctx.config.owner(disk.uuid)
            if disk.forthcoming and owner is None and disk.uuid not in making:
                report.error(
                    "EINSTANCELAYOUT",
                    "disk",
                    disk.uuid,
                    "its creation was interrupted; remove what is left of it with gnt-disk remove"
                    f" {disk.uuid}",
                )
        for instance in ctx.config.instances.values():
            if instance.name in busy:
                continue
            for text in (*snapshots.list_interrupted(instance), restores.explain(instance)):
                if text is not None:
                    report.error("EINSTANCELAYOUT", "instance", instance.name, text)
        for instance in ctx.config.forthcoming:
            handle = instance.handle
            if handle in busy:
                continue
            if instance.interrupted:
                report.error("EINSTANCELAYOUT", "instance", handle, _repair(instance))
                continue
            for uuid in ctx.config.instance_nodes(instance):
                node = ctx.config.nodes.get(uuid)
                if node is not None and (node.offline or node.drained):
                    word = "offline" if node.offline else "drained"
                    report.warning(
                        "EINSTANCELAYOUT",
                        "instance",
                        handle,
                        f"it is reserved on node {node.name}, which is {word}; gnt-instance"
                        f" failover --target-node NODE {handle} moves it to another node",
                    )


def _repair(instance: Instance) -> str:
    """Explain an interrupted creation, with the commands that repair it."""
    handle = instance.handle
    if instance.removable_only:
        return (
            "its creation was interrupted; remove what is left of it with"
            f" gnt-instance remove {handle}"
        )
    return (
        f"job {instance.creating} was interrupted while it made an instance of this reservation;"
        f" gnt-instance add --commit {handle} starts over, gnt-instance remove {handle} gives it"
        " up"
    )
