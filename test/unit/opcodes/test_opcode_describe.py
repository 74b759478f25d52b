"""Documentation and schemas that are derived from opcodes."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti.base import jsonio
from ganeti.opcodes import describe, registry
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.describe import Parameter

GROW = registry.find("OP_INSTANCE_GROW_DISK")


def by_name(op_id: str) -> dict[str, Parameter]:
    return {p.name: p for p in describe.parameters(registry.find(op_id))}


def test_parameters_of_an_opcode_without_the_common_ones() -> None:
    names = [p.name for p in describe.parameters(GROW)]
    assert names == [
        "instance_name",
        "instance_uuid",
        "wait_for_sync",
        "disk",
        "amount",
        "absolute",
        "ignore_ipolicy",
    ]
    assert by_name("OP_INSTANCE_GROW_DISK")["disk"] == Parameter(
        name="disk", type="int 0..15", required=True, default=None, description="Index of the disk"
    )


def test_common_parameters() -> None:
    assert [p.name for p in describe.parameters(OpCode)] == [
        "dry_run",
        "debug_level",
        "priority",
        "depends",
        "comment",
        "reason",
    ]


@pytest.mark.parametrize(
    ("op_id", "name", "text"),
    [
        ("OP_INSTANCE_CREATE", "instance_name", "str"),
        ("OP_INSTANCE_CREATE", "iallocator", "nestr|null"),
        ("OP_INSTANCE_CREATE", "mode", "enum:InstCreateMode"),
        ("OP_INSTANCE_CREATE", "disks", "[IDiskParams]"),
        ("OP_INSTANCE_CREATE", "osparams_secret", "{str:secret<any>}|null"),
        ("OP_INSTANCE_CREATE", "source_shutdown_timeout", "uint"),
        ("OP_INSTANCE_MULTI_ALLOC", "instances", "[OP_INSTANCE_CREATE]"),
        ("OP_CLUSTER_SET_PARAMS", "uid_pool", "[(int,int)]|null"),
        ("OP_CLUSTER_SET_PARAMS", "diskparams", "{enum:DiskTemplate:{str:any}}|null"),
        ("OP_CLUSTER_VERIFY", "skip_checks", "set[enum:VerifyOptionalChecks]"),
        ("OP_BACKUP_EXPORT", "target_node", "nestr|[any]"),
        ("OP_TEST_DUMMY", "result", "any"),
    ],
)
def test_type_texts(op_id: str, name: str, text: str) -> None:
    assert by_name(op_id)[name].type == text


def test_defaults_are_in_json_form() -> None:
    assert by_name("OP_BACKUP_EXPORT")["mode"].default == "local"
    assert type(by_name("OP_BACKUP_EXPORT")["mode"].default) is str
    assert by_name("OP_CLUSTER_VERIFY")["ignore_errors"].default == []


@pytest.mark.parametrize("op_id", sorted(registry.all_opcodes()))
def test_each_schema_is_complete_and_is_json(op_id: str) -> None:
    schema = describe.json_schema(registry.find(op_id))
    assert jsonio.loads(jsonio.dumps(schema)) == schema
    assert "$ref" not in jsonio.dumps(schema)
    assert schema["properties"]["OP_ID"] == {"enum": [op_id]}
    assert schema["additionalProperties"] is False
    required = [p.name for p in describe.parameters(registry.find(op_id)) if p.required]
    assert schema["required"] == ["OP_ID", *required]


def alternatives(schema: dict[str, Any]) -> list[Any]:
    return [part.get("type") for part in schema["anyOf"]]


def test_the_schema_of_a_disk_tells_what_is_accepted() -> None:
    schema = describe.json_schema(registry.find("OP_INSTANCE_CREATE"))
    disk = schema["properties"]["disks"]["items"]
    assert disk["title"] == "DiskParams"
    assert disk.get("additionalProperties") is not False
    size, null = disk["properties"]["size"]["anyOf"]
    assert alternatives(size) == ["integer", "string"]
    assert null == {"type": "null"}


def test_the_schema_of_a_change_names_the_actions() -> None:
    schema = describe.json_schema(registry.find("OP_INSTANCE_SET_PARAMS"))
    action, item, nic = schema["properties"]["nics"]["items"]["prefixItems"]
    assert action["enum"] == ["add", "attach", "detach", "modify", "remove"]
    assert alternatives(item) == ["integer", "string"]
    assert "vlan" in nic["properties"]
