"""Finding opcode classes by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest

import ganeti
from ganeti import errors
from ganeti.opcodes import describe, registry
from ganeti.opcodes.base import OpCode, class_name

OPCODES = registry.all_opcodes()


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_each_opcode_is_found_in_its_family(op_id: str) -> None:
    cls = OPCODES[op_id]
    assert registry.find(op_id) is cls
    assert cls.__name__ == class_name(op_id)
    assert cls.__module__ == f"ganeti.opcodes.{registry.family(op_id)}"


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_each_opcode_and_parameter_is_documented(op_id: str) -> None:
    cls = OPCODES[op_id]
    assert (cls.__doc__ or "").strip().endswith(".")
    undocumented = [p.name for p in describe.parameters(cls) if not p.description]
    assert not undocumented


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_an_unset_nullable_parameter_is_null(op_id: str) -> None:
    """Unset parameters are left out of the JSON form, so null must mean unset."""
    for parameter in describe.parameters(OPCODES[op_id]):
        if parameter.type.endswith("|null") and not parameter.required:
            assert parameter.default is None, parameter.name


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_names_in_rest_paths_are_parameters(op_id: str) -> None:
    cls = OPCODES[op_id]
    for request in cls.rest:
        method, path = request.split(" ")
        assert method in ("GET", "PUT", "POST", "DELETE")
        assert path.startswith("/2/")
        for part in path.split("/"):
            if part.startswith("{"):
                assert part.strip("{}") in cls.__struct_fields__


def test_no_rest_request_is_claimed_twice() -> None:
    requests = [request for cls in OPCODES.values() for request in cls.rest]
    assert len(set(requests)) == len(requests)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("OP_INSTANCE_CREAT", "OP_INSTANCE_CREATE"),
        ("instance_startup", "OP_INSTANCE_STARTUP"),
        ("OP_NODE_POWER_CYCLE", "OP_NODE_POWERCYCLE"),
    ],
)
def test_a_misspelt_opcode_gives_the_nearest_name(wrong: str, meant: str) -> None:
    with pytest.raises(errors.OpCodeUnknown, match=f"'{wrong}'; did you mean {meant}\\?"):
        registry.find(wrong)


@pytest.mark.parametrize("wrong", ["", "OP_", "OP_CODE", "OP_BASE_X", "OP_WIRE", "OP_os", "base"])
def test_other_modules_of_the_package_are_no_opcodes(wrong: str) -> None:
    with pytest.raises(errors.OpCodeUnknown):
        registry.find(wrong)


def test_a_very_long_opcode_is_not_repeated_in_full() -> None:
    with pytest.raises(errors.OpCodeUnknown) as caught:
        registry.find("OP_" + "X" * 100_000)
    assert len(str(caught.value)) < 200


def crashing_unions(kind: Any) -> list[Any]:
    parts = describe.members(kind)
    limited = [p for p in parts if describe.peel(p)[1] and describe.peel(p)[0] in (int, str, float)]
    fixed = [p for p in parts if get_origin(describe.peel(p)[0]) is tuple]
    found = [kind] if limited and fixed else []
    shape = getattr(describe.peel(kind)[0], "shape", None)
    inner = [*parts, *get_args(describe.peel(kind)[0]), *([] if shape is None else [shape])]
    return found + [bad for item in inner for bad in crashing_unions(item)]


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_no_type_crashes_msgspec(op_id: str) -> None:
    """Version 0.22 dies of a limited scalar in a union with a fixed-length tuple."""
    for field in msgspec.structs.fields(OPCODES[op_id]):
        assert crashing_unions(field.type) == []


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    root = Path(ganeti.__file__).parents[1]
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    families = {f"ganeti.opcodes.{name}" for name in registry.FAMILIES}
    return families & set(done.stdout.split())


def test_looking_up_one_opcode_imports_one_family() -> None:
    statement = "from ganeti.opcodes.registry import find; find('OP_INSTANCE_GROW_DISK')"
    assert loaded_after(statement) == {"ganeti.opcodes.instance_disks"}


def test_reading_and_writing_imports_no_family() -> None:
    assert loaded_after("import ganeti.opcodes.wire, ganeti.opcodes.base") == set()


def test_opcode_is_the_base_of_all() -> None:
    assert all(issubclass(cls, OpCode) for cls in OPCODES.values())
