"""Opcodes that test the cluster manager itself."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import NicParams
from ganeti.opcodes.enums import EvacMode, IAllocatorMode, IAllocatorTestDir
from ganeti.opcodes.scalars import NonEmpty, Number, UInt, doc

_NANOSECONDS = 1_000_000_000


class OpTestDelay(OpCode, tag="OP_TEST_DELAY", kw_only=True):
    """Do nothing for a while."""

    summary_field: ClassVar[str | None] = "duration"
    result_type: ClassVar[str] = "null"

    duration: Annotated[Number, doc("Seconds to wait")]
    on_master: Annotated[bool, doc("Wait on the master")] = True
    on_nodes: Annotated[list[NonEmpty], doc("Nodes that wait")] = []
    on_node_uuids: Annotated[list[NonEmpty] | None, doc("UUIDs of the nodes that wait")] = None
    repeat: Annotated[UInt, doc("How often to wait; 0 for once without a report")] = 0
    interruptible: Annotated[bool, doc("A connection to a socket can end the wait")] = False
    no_locks: Annotated[bool, doc("Hold no locks while waiting")] = True

    def summary_value(self) -> object:
        """The duration in whole nanoseconds."""
        return f"{round(self.duration * _NANOSECONDS)} ns"


class OpTestAllocator(OpCode, tag="OP_TEST_ALLOCATOR", kw_only=True):
    """Show the request to an allocator, or its answer."""

    summary_field: ClassVar[str | None] = "iallocator"
    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "str"

    direction: Annotated[IAllocatorTestDir, doc("Show the request (in) or the answer (out)")]
    mode: Annotated[IAllocatorMode, doc("Type of the request")]
    name: Annotated[NonEmpty, doc("Name of the instance asked about")]
    nics: Annotated[list[NicParams] | None, doc("NICs of the instance")] = None
    disks: Annotated[p.AnyList | None, doc("Disks of the instance")] = None
    hypervisor: p.OptionalHypervisor = None
    iallocator: p.IAllocator = None
    tags: Annotated[list[NonEmpty], doc("Tags of the instance")] = []
    memory: Annotated[UInt | None, doc("Memory of the instance in MiB")] = None
    vcpus: Annotated[UInt | None, doc("Processors of the instance")] = None
    os: Annotated[NonEmpty | None, doc("OS of the instance")] = None
    disk_template: p.OptionalDiskTemplate = None
    instances: Annotated[list[NonEmpty] | None, doc("Instances to move")] = None
    evac_mode: Annotated[EvacMode | None, doc("Which instances are evacuated")] = None
    target_groups: p.TargetGroups = None
    spindle_use: Annotated[UInt, doc("Share of a spindle the instance uses")] = 1
    count: Annotated[UInt, doc("How many instances to place")] = 1
    group_name: Annotated[NonEmpty | None, doc("Node group to place in")] = None


class OpTestJqueue(OpCode, tag="OP_TEST_JQUEUE", kw_only=True):
    """Exercise messages and notifications of a running job."""

    result_type: ClassVar[str] = "bool"

    notify_waitlock: Annotated[bool, doc("Tell when locks are about to be taken")] = False
    notify_exec: Annotated[bool, doc("Tell when execution starts")] = False
    log_messages: Annotated[list[str], doc("Messages to write to the log of the job")] = []
    fail: Annotated[bool, doc("Fail at the end")] = False


class OpTestDummy(OpCode, tag="OP_TEST_DUMMY", kw_only=True):
    """Stand for any opcode in tests; no operation belongs to it."""

    result_type: ClassVar[str] = "null"

    result: Annotated[Any, doc("Result to give")] = None
    messages: Annotated[Any, doc("Messages to log")] = None
    fail: Annotated[Any, doc("Whether to fail")] = None
    submit_jobs: Annotated[Any, doc("Jobs to submit")] = None


class OpTestOsParams(OpCode, tag="OP_TEST_OS_PARAMS", kw_only=True):
    """Check that secret OS parameters reach a running job and nothing else."""

    result_type: ClassVar[str] = "null"

    osparams_secret: p.OsParamsSecret = None
