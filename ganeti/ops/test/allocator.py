"""Show the request to an allocator, or its answer."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.enums import IAllocatorMode, IAllocatorTestDir
from ganeti.opcodes.test import OpTestAllocator
from ganeti.ops.allocator import ask, request
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.operation import PlannedOperation
from ganeti.storage.registry import traits_of


@dataclass(frozen=True)
class _Plan:
    #: empty when only the question is shown
    allocator: str
    #: template whose storage matters
    template: str
    question: JsonObject


class TestAllocator(PlannedOperation[OpTestAllocator, _Plan, str]):
    """Returns JSON text; nothing changes whatever the allocator answers."""

    def decide(self) -> _Plan:
        op = self.op
        name = ""
        if op.direction is IAllocatorTestDir.OUT:
            name = ask.choose_allocator(self.ctx, op.iallocator, "to see an answer")
        placing = op.mode in (IAllocatorMode.ALLOCATE, IAllocatorMode.MULTI_ALLOCATE)
        if placing:
            for key in ("memory", "vcpus", "disks", "nics", "disk_template"):
                if getattr(op, key) is None:
                    raise errors.make_invalid_error(f"mode {op.mode} needs the parameter {key}")
            if self.ctx.config.has_instance_name(op.name):
                raise errors.make_exists_error(f"instance '{op.name}' exists already")
        template = str(op.disk_template or "")
        if op.mode is IAllocatorMode.RELOCATE:
            template = self.ctx.config.disk_template(self.ctx.config.instance(op.name))
        return _Plan(name, template, self._question())

    def _question(self) -> JsonObject:
        op, config = self.op, self.ctx.config
        match op.mode:
            case IAllocatorMode.ALLOCATE:
                return request.allocate(self._make_instance(op.name))
            case IAllocatorMode.MULTI_ALLOCATE:
                names = [f"{op.name}{number}" for number in range(op.count)]
                return request.multi_allocate([self._make_instance(name) for name in names])
            case IAllocatorMode.RELOCATE:
                item = config.instance(op.name)
                leave = config.secondary_nodes(item) or [item.primary_node]
                return request.relocate(config, item, [config.nodes[u].name for u in leave])
            case IAllocatorMode.ALLOCATE_SECONDARY:
                return request.allocate_secondary(config.instance(op.name))
            case IAllocatorMode.NODE_EVACUATE:
                return request.node_evacuate(self._names(), str(op.evac_mode or "all"))
            case IAllocatorMode.CHANGE_GROUP:
                groups = [config.group(name).uuid for name in op.target_groups or ()]
                return request.change_group(self._names(), groups)

    def _names(self) -> list[str]:
        return [self.ctx.config.instance(name).name for name in self.op.instances or [self.op.name]]

    def _make_instance(self, name: str) -> NewInstance:
        op = self.op
        template = str(op.disk_template or "")
        disks: list[JsonObject] = [dict(item) for item in op.disks or ()]
        return NewInstance(
            name=name,
            template=template,
            memory=op.memory or 0,
            vcpus=op.vcpus or 0,
            spindle_use=op.spindle_use,
            disks=disks,
            nics=[{"mac": nic.mac, "ip": nic.ip} for nic in op.nics or ()],
            hypervisor=str(op.hypervisor or self.ctx.config.cluster.enabled_hypervisors[0]),
            os=op.os or "",
            tags=op.tags,
            group_name=op.group_name,
            nodes=traits_of(template).nodes_needed,
        )

    def run(self) -> str:
        text = ask.format_request(self.ctx, self.plan.question, self.plan.template)
        if not self.plan.allocator:
            return text
        return ask.run(self.ctx, self.plan.allocator, text)
