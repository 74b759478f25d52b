"""Opcodes for nodes; their storage is in ``node_storage``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import EvacMode, OobCommand
from ganeti.opcodes.scalars import NonEmpty, Number, doc

MasterCapable = Annotated[bool | None, doc("Whether the node may become master")]
VmCapable = Annotated[bool | None, doc("Whether the node may run instances")]
SecondaryIp = Annotated[
    NonEmpty | None, doc("Address for the replication of disks, if it has a network of its own")
]


class OpNodeAdd(OpCode, tag="OP_NODE_ADD", kw_only=True):
    """Add a prepared node to the cluster."""

    summary_field: ClassVar[str | None] = "node_name"
    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "null"

    node_name: p.NodeName
    hv_state: p.HvState = None
    disk_state: p.DiskState = None
    primary_ip: Annotated[NonEmpty | None, doc("Address of the node; unset to resolve it")] = None
    secondary_ip: SecondaryIp = None
    readd: Annotated[bool, doc("Add a node that was set up again")] = False
    group: Annotated[NonEmpty | None, doc("Node group; unset for the only one")] = None
    master_capable: MasterCapable = None
    vm_capable: VmCapable = None
    ndparams: p.NodeParams = None
    node_setup: Annotated[bool, doc("Set up SSH on the node first")] = False


class OpNodeRemove(OpCode, tag="OP_NODE_REMOVE", kw_only=True):
    """Remove a node without instances from the cluster."""

    summary_field: ClassVar[str | None] = "node_name"
    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "null"

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None


class OpNodeSetParams(OpCode, tag="OP_NODE_SET_PARAMS", kw_only=True):
    """Change the role or settings of a node; what is not given stays."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = (
        "POST /2/nodes/{node_name}/modify",
        "PUT /2/nodes/{node_name}/role",
    )
    result_type: ClassVar[str] = "[(nestr,any)]"
    says_how: ClassVar[frozenset[str]] = frozenset({"auto_promote", "force", "node_uuid"})
    within: ClassVar[Mark | None] = Mark.NODE

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    force: p.Force = False
    hv_state: p.HvState = None
    disk_state: p.DiskState = None
    master_candidate: Annotated[bool | None, doc("Whether the node is a master candidate")] = None
    offline: Annotated[
        bool | None, doc("Whether the node is offline: the master does not call it"), Mark.SAFE
    ] = None
    drained: Annotated[bool | None, doc("Whether the node gets no new instances"), Mark.SAFE] = None
    auto_promote: Annotated[
        bool, doc("Promote another node to master candidate if one is missing")
    ] = False
    master_capable: MasterCapable = None
    vm_capable: VmCapable = None
    secondary_ip: SecondaryIp = None
    ndparams: p.NodeParams = None
    powered: Annotated[bool | None, doc("Whether the node is recorded as switched on")] = None
    proof: Annotated[
        NonEmpty | None,
        doc("Proof that the node is dead, recorded when it is set offline; from gnt-node fence"),
    ] = None


class OpNodeFence(OpCode, tag="OP_NODE_FENCE", kw_only=True):
    """Prove that a node is dead, mark it offline, and start its instances elsewhere."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/nodes/{node_name}/fence",)
    result_type: ClassVar[str] = "JobIdListOnly"

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    confirm: Annotated[bool, doc("Confirm that the node is switched off")] = False
    all_instances: Annotated[
        bool, doc("Start all instances that can start elsewhere, whatever their ha and tags say")
    ] = False
    timeout: Annotated[int, doc("Seconds that a device gets to switch the node off")] = 60
    test: Annotated[
        bool, doc("Only ask the devices of the node whether it is on; nothing is changed")
    ] = False


class OpNodeEvacuate(OpCode, tag="OP_NODE_EVACUATE", kw_only=True):
    """Submit jobs that move instances off a node."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/nodes/{node_name}/evacuate",)
    result_type: ClassVar[str] = "JobIdListOnly"
    within: ClassVar[Mark | None] = Mark.NODE

    early_release: p.EarlyRelease = False
    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    remote_node: p.RemoteNode = None
    remote_node_uuid: p.RemoteNodeUuid = None
    iallocator: p.IAllocator = None
    mode: Annotated[
        EvacMode, doc("Which instances are evacuated, by the role of the node"), Mark.SAFE
    ]
    ignore_soft_errors: Annotated[
        bool | None, doc("Let the allocator ignore errors that can be repaired later")
    ] = None


class OpNodeMigrate(OpCode, tag="OP_NODE_MIGRATE", kw_only=True):
    """Submit jobs that live-migrate all instances off their primary node."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/nodes/{node_name}/migrate",)
    result_type: ClassVar[str] = "JobIdListOnly"
    within: ClassVar[Mark | None] = Mark.NODE

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    mode: p.MigrationModeParam = None
    live: p.Live = None
    target_node: p.TargetNode = None
    target_node_uuid: p.TargetNodeUuid = None
    allow_runtime_changes: p.AllowRuntimeChanges = True
    ignore_ipolicy: p.IgnoreIpolicy = False
    iallocator: p.IAllocator = None


class OpNodePowercycle(OpCode, tag="OP_NODE_POWERCYCLE", kw_only=True):
    """Reboot a node at once, without stopping its guests."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/nodes/{node_name}/powercycle",)
    result_type: ClassVar[str] = "nestr|null"
    within: ClassVar[Mark | None] = Mark.NODE

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    force: p.Force = False


class OpOobCommand(OpCode, tag="OP_OOB_COMMAND", kw_only=True):
    """Run the out-of-band helper (power, health) for nodes."""

    result_type: ClassVar[str] = "[[(enum:QueryResultCode,any)]]"

    node_names: p.NodeNames = []
    node_uuids: p.NodeUuids = None
    command: Annotated[OobCommand, doc("What the out-of-band helper does")]
    timeout: Annotated[int, doc("Seconds the out-of-band helper gets")] = 60
    ignore_status: Annotated[bool, doc("Switch off nodes that are not offline")] = False
    power_delay: Annotated[Number, doc("Seconds between switching on two nodes")] = 2.0


class OpRestrictedCommand(OpCode, tag="OP_RESTRICTED_COMMAND", kw_only=True):
    """Run a command that the administrator put into the directory for such commands."""

    result_type: ClassVar[str] = "[(bool,str)]"

    use_locking: p.UseLocking = False
    nodes: Annotated[list[NonEmpty], doc("Nodes to run it on")]
    node_uuids: p.NodeUuids = None
    command: Annotated[NonEmpty, doc("File name of the command")]
