"""The nodes of a new instance: named ones, or those that an allocator chooses."""

from __future__ import annotations

from ganeti import errors
from ganeti.config import parameters
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.operation import Context, Finding
from ganeti.ops.planning import disk_layout, nics
from ganeti.storage.registry import traits_of


class NewPlace:
    """How the nodes of one creation are found."""

    def __init__(self, ctx: Context, op: OpInstanceCreate, name: str) -> None:
        """Raises OpPrereqError unless the request names either nodes or an allocator."""
        self._ctx = ctx
        self._op = op
        self._name = name
        self._allocator = ""
        if op.pnode is None and op.pnode_uuid is None:
            self._allocator = allocator.choose_allocator(
                ctx, op.iallocator, "say where to create the instance with --node NAME"
            )
        elif op.iallocator is not None:
            raise errors.make_invalid_error("give either nodes or an allocator, not both")

    def find(self) -> Finding[list[Node]]:
        """Lock the nodes and return them, the primary first.

        With an allocator all are locked at first, and those not chosen are released.
        """
        ctx = self._ctx
        if not self._allocator:
            yield Need(
                LockLevel.NODE, sorted({n.uuid for n in self._find_named_nodes()}), shared=True
            )
            return self._find_named_nodes()
        yield Need(
            LockLevel.NODE,
            self._candidates(),
            shared=True,
            opportunistic=self._op.opportunistic_locking,
        )
        nodes = self._ask_allocator()
        ctx.release(LockLevel.NODE, keep=[node.uuid for node in nodes])
        return nodes

    def _find_named_nodes(self) -> list[Node]:
        op, config = self._op, self._ctx.config
        names = [op.pnode_uuid or op.pnode, op.snode_uuid or op.snode]
        return [config.node(name) for name in names if name]

    def _candidates(self) -> list[str]:
        config = self._ctx.config
        if self._op.group_name is None:
            return list(config.nodes)
        group = config.group(self._op.group_name)
        return [node.uuid for node in config.group_nodes(group.uuid)]

    def _ask_allocator(self) -> list[Node]:
        ctx = self._ctx
        held = ctx.list_held(LockLevel.NODE)
        free = None
        if self._op.opportunistic_locking:
            free = sorted(ctx.config.nodes[NodeUuid(uuid)].name for uuid in held)
        return allocator.place(
            ctx, self._allocator, describe_instance(ctx, self._op, self._name), free
        )


def describe_instance(ctx: Context, op: OpInstanceCreate, name: str) -> NewInstance:
    """The description of a new instance for an allocator.

    Raises:
        OpPrereqError, ParameterError: template or backend parameters that cannot be used.
    """
    config = ctx.config
    template = disk_layout.template(ctx, op)
    be = config.beparams_for(parameters.change_own_backend(config, {}, op.beparams))
    return NewInstance(
        name=name,
        template=str(template),
        memory=be["maxmem"],
        vcpus=be["vcpus"],
        spindle_use=be["spindle_use"],
        disks=[
            {
                "size": item.size or 0,
                "mode": str(item.mode or "rw"),
                "vg": item.vg,
                "name": item.name,
                "dev_type": item.dev_type or str(template),
                "spindles": item.spindles,
            }
            for item in op.disks
        ],
        nics=[
            {
                "mac": nic.mac or "auto",
                "ip": nic.ip,
                "network": nics.network_of(config, nic),
                "nicparams": {},
            }
            for nic in op.nics
        ],
        hypervisor=str(op.hypervisor or config.cluster.enabled_hypervisors[0]),
        os=op.os_type or "",
        tags=op.tags,
        group_name=op.group_name,
        nodes=traits_of(template).nodes_needed,
        ignore_policy=op.ignore_ipolicy,
    )
