"""Prove that a backup can be restored."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.backup import sign
from ganeti.model.enums import DiskTemplate
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.backup import OpBackupVerify
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.operation import Operation
from ganeti.ops.planning import checks, copy_guests
from ganeti.ops.steps import backups, node_checks
from ganeti.rpc.backups import BackupPlace, BootTest
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeInstance


class BackupVerify(Operation[OpBackupVerify, str]):
    """Returns the id of the backup, which is good; needs no locks, as nodes lock the files.

    A copy that is started is not an instance: its node keeps it, and removes it in any case.
    """

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupVerify) -> None:
        backups.check_repository(op.repository)
        if op.boot_until is not None:
            sign.parse(op.boot_until)
        if not op.boot and (op.boot_until is not None or op.boot_node is not None):
            raise errors.make_invalid_error(
                "--boot-until and --boot-node make no sense without --boot"
            )

    def run(self) -> str:
        ctx, op = self.ctx, self.op
        instance = ctx.config.find_instance(op.instance_name)
        name = instance.name if instance is not None else op.instance_name
        reader = backups.choose_reader(ctx, instance)
        repository = backups.find_repository(op.repository, instance)
        place = backups.find_place(ctx, reader, repository, name, op.backup)
        if instance is not None:
            backups.note(ctx, instance, verify_tried=ctx.clock.now())
        if op.boot:
            self._boot(place, reader, instance)
        else:
            ctx.log(f"* reading backup {place.id} of {name} on node {reader.name}")
            backups.follow(
                ctx,
                reader,
                name,
                name,
                lambda: ctx.rpc.call_one(reader, NodeCalls.backup_verify, place),
            )
        if instance is not None:
            now = ctx.clock.now()
            booted = {"booted_id": place.id, "booted_time": now} if op.boot else {}
            backups.note(ctx, instance, verified_id=place.id, verified_time=now, **booted)
        return place.id

    def _boot(self, place: BackupPlace, reader: Node, instance: Instance | None) -> None:
        ctx, op = self.ctx, self.op
        manifest = ctx.rpc.call_one(reader, NodeCalls.backup_find, place)
        guest = copy_guests.arrange(ctx, manifest)
        plan = backups.plan_of(instance)
        wanted = copy_guests.choose_sign(op.boot_until or plan.verify_until, guest)
        node = self._choose_node(guest, instance)
        ctx.log(f"* starting a copy of backup {place.id} of {place.instance} on node {node.name}")
        ctx.log(f" - it is good when {wanted.text} within {op.boot_timeout} s")
        test = BootTest(sign=wanted.encode(), timeout=op.boot_timeout)
        backups.follow(
            ctx,
            node,
            place.instance,
            place.instance,
            lambda: ctx.rpc.call_one(node, NodeCalls.backup_boot, place, guest, test),
        )
        proof = ctx.rpc.call_one(node, NodeCalls.backup_find, place).proof
        ctx.log(f" - it has booted: {proof.text if proof is not None else wanted.text}")

    def _choose_node(self, guest: NodeInstance, instance: Instance | None) -> Node:
        """The node that is named, or one that has the memory to spare; OpPrereqError."""
        ctx, config, memory = self.ctx, self.ctx.config, guest.backend("maxmem")
        if self.op.boot_node is not None:
            node = config.node(self.op.boot_node)
        else:
            group = None
            if instance is not None and instance.primary_node in config.nodes:
                group = config.groups[config.nodes[instance.primary_node].group].name
            name = config.cluster.default_iallocator or constants.BUILT_IN_ALLOCATOR
            [node] = allocator.place(
                ctx,
                name,
                NewInstance(
                    name=f"copy of {guest.name}",
                    template=str(DiskTemplate.DISKLESS),
                    memory=memory,
                    vcpus=guest.backend("vcpus"),
                    disks=[],
                    nics=[],
                    hypervisor=str(guest.hypervisor),
                    group_name=group,
                    ignore_policy=True,
                ),
            )
        checks.check_usable(node, "to start a copy")
        node_checks.resources(
            ctx,
            node,
            f"a copy of {guest.name}",
            memory=(str(guest.hypervisor), memory),
            claims={f"copy of {guest.uuid}": memory},
        )
        return node
