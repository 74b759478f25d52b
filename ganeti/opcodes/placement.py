"""Opcodes about where instances are: what fits, what is wrong, what would be better."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import Mebibytes
from ganeti.opcodes.scalars import NonEmpty, Positive, UInt, doc

WhatIf = Annotated[
    list[NonEmpty],
    doc("Plan as if this were changed: 'remove node3', 'add 2 like node1', 'memory node4 +64G'"),
]
Memory = Annotated[
    Mebibytes | None, doc("Memory of an instance; unset for the value of the policy")
]
Disk = Annotated[Mebibytes | None, doc("Disk of an instance; unset for the value of the policy")]
Vcpus = Annotated[
    Positive | None, doc("Virtual processors of an instance; unset for the value of the policy")
]
MaxParallel = Annotated[Positive, doc("Maximum number of moves that run at the same time")]
AllowFailover = Annotated[bool, doc("Stop and start guests that cannot be migrated live")]


class OpClusterCapacity(OpCode, tag="OP_CLUSTER_CAPACITY", kw_only=True):
    """Return how many more instances fit, and which resource is used up first."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/placement/capacity",)
    result_type: ClassVar[str] = "{any:any}"

    group_name: p.OptionalGroupName = None
    disk_template: p.OptionalDiskTemplate = None
    memory: Memory = None
    disk: Disk = None
    vcpus: Vcpus = None
    what_if: WhatIf = []


class OpClusterPlace(OpCode, tag="OP_CLUSTER_PLACE", kw_only=True):
    """Return where a new instance would go, and why it would not go to other nodes."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/placement/place",)
    result_type: ClassVar[str] = "{any:any}"

    group_name: p.OptionalGroupName = None
    disk_template: p.OptionalDiskTemplate = None
    memory: Memory = None
    disk: Disk = None
    vcpus: Vcpus = None
    tags: Annotated[list[NonEmpty], doc("Tags of the instance")] = []
    what_if: WhatIf = []


class OpClusterCheck(OpCode, tag="OP_CLUSTER_CHECK", kw_only=True):
    """Return whether the cluster survives the loss of a node, and whether balancing helps."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/placement/check",)
    result_type: ClassVar[str] = "{any:any}"

    group_name: p.OptionalGroupName = None
    what_if: WhatIf = []


class OpClusterBalance(OpCode, tag="OP_CLUSTER_BALANCE", kw_only=True):
    """Submit jobs that move instances to where they balance the cluster."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/placement/balance",)
    result_type: ClassVar[str] = "{any:any}"

    group_name: p.OptionalGroupName = None
    max_moves: Annotated[UInt | None, doc("Maximum number of moves; unset for no limit")] = None
    max_data: Annotated[
        Mebibytes | None, doc("Maximum amount of disk and memory to copy; unset for no limit")
    ] = None
    max_parallel: MaxParallel = 4
    allow_failover: AllowFailover = False
    disk_moves: Annotated[bool, doc("Also copy disks to other nodes")] = True
    explain: Annotated[
        bool, doc("Show for each move the reason, what it copies and when it begins")
    ] = False
    what_if: WhatIf = []


class OpInstanceCheckMove(OpCode, tag="OP_INSTANCE_CHECK_MOVE", kw_only=True):
    """Refuse a planned move that does not suit the cluster any more."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "null"

    instance_name: p.InstanceName
    from_nodes: Annotated[list[NonEmpty], doc("Nodes it was planned from, the primary one first")]
    to_nodes: Annotated[list[NonEmpty], doc("Nodes it goes to, the primary one first")]
    present: Annotated[list[NonEmpty], doc("Nodes that must be there")] = []
    must_gain: Annotated[bool, doc("Refuse a move that makes the balance worse")] = False


class OpNodeMaintenance(OpCode, tag="OP_NODE_MAINTENANCE", kw_only=True):
    """Move instances off nodes for maintenance, or bring them back."""

    summary_field: ClassVar[str | None] = "node_names"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/placement/maintenance",)
    result_type: ClassVar[str] = "{any:any}"

    node_names: Annotated[list[NonEmpty], doc("Names of the nodes"), Mark.NODE]
    on: Annotated[bool, doc("Whether maintenance begins; else it ends")]
    disks_too: Annotated[bool, doc("Also move second copies of mirrored disks to other nodes")] = (
        False
    )
    allow_failover: AllowFailover = False
    max_parallel: MaxParallel = 4
