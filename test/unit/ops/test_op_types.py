"""What types cannot say of operations, and what they say without an assertion."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ganeti.ops
from ganeti import errors
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid, InstanceUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.registry import all_opcodes
from ganeti.ops import registry
from ganeti.ops.targets.disk import DiskOperation
from ganeti.ops.targets.group import GroupOperation
from ganeti.ops.targets.instance import InstanceOperation
from ganeti.ops.targets.network import ConnectionOperation, NetworkOperation
from ganeti.ops.targets.node import NodeOperation

ROOT = Path(ganeti.ops.__file__).parent

#: Base of operations -> fields that it reads of the opcode.
READ = {
    ConnectionOperation: {"network_name", "group_name"},
    DiskOperation: {"disk_name"},
    GroupOperation: {"group_name"},
    InstanceOperation: {"instance_name", "instance_uuid"},
    NetworkOperation: {"network_name"},
    NodeOperation: {"node_name", "node_uuid"},
}


def test_operations_assert_nothing() -> None:
    """What may be missing is refused with an error that says so."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assert)
    ]
    assert not found


def test_what_a_reservation_may_not_have_yet_is_an_error_with_its_name() -> None:
    reserved = Instance(uuid=InstanceUuid("u-1"), name="web1")
    with pytest.raises(errors.ConfigurationError, match="instance 'web1' has no hypervisor"):
        _ = reserved.real_hypervisor
    with pytest.raises(errors.ConfigurationError, match="disk d-1 has no template"):
        _ = Disk(uuid=DiskUuid("d-1")).real_template


@pytest.mark.parametrize("base", READ, ids=lambda base: base.__name__)
def test_opcodes_have_what_the_base_of_their_operation_reads(base: type) -> None:
    seen = 0
    for op_id, opcode in all_opcodes().items():
        if registry.is_built(op_id) and issubclass(registry.find(op_id), base):
            seen += 1
            assert READ[base] <= set(opcode.__struct_fields__), op_id
    assert seen
