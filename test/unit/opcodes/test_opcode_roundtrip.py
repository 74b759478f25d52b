"""Properties of all opcodes, with values made from the types of their parameters."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import jsonio
from ganeti.opcodes import describe, registry, wire
from ganeti.opcodes.addresses import Ipv4Address, Ipv4Network, Ipv6Address, Ipv6Network
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import (
    Change,
    DiskParams,
    DiskRecreation,
    DiskSource,
    Mebibytes,
    NicParams,
)
from ganeti.opcodes.hidden import Hidden
from ganeti.opcodes.values import JobDep

OPCODES = registry.all_opcodes()
QUICK = examples(60, database=None, suppress_health_check=[HealthCheck.too_slow])

TEXT = st.text(max_size=6)
WORD = st.text(min_size=1, max_size=6)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
SIZE = st.integers(0, 10**9) | st.sampled_from(["20G", "1.5t", "4", "128m"])
DISK = st.dictionaries(st.sampled_from(["x-pool", "replicas"]), JSON, max_size=2).flatmap(
    lambda ext: st.fixed_dictionaries(
        {}, optional={"size": SIZE, "mode": st.sampled_from(["ro", "rw"]), "vg": WORD}
    ).map(lambda known: {**ext, **known})
)
NIC = st.dictionaries(st.sampled_from(NicParams.__struct_fields__), TEXT | st.none(), max_size=3)
SOURCE = st.fixed_dictionaries(
    {"source": WORD}, optional={"format": st.none() | st.sampled_from(["raw", "vmdk"])}
)
INDEX = st.integers(0, 15)


def special(kind: Any) -> st.SearchStrategy[Any] | None:
    """JSON values of the types that have a wire form of their own."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Hidden):
        return JSON
    if issubclass(kind, Mebibytes):
        return SIZE
    if issubclass(kind, JobDep):
        job = st.integers(-9, 99) | st.integers(0, 99).map(str)
        return st.tuples(job, st.lists(st.sampled_from(["error", "success"]))).map(list)
    if issubclass(kind, DiskParams):
        return DISK
    if issubclass(kind, DiskRecreation):
        return INDEX | st.tuples(INDEX, DISK).map(list)
    if issubclass(kind, Change):
        params = NIC if kind.params_type is NicParams else DISK
        full = st.tuples(st.sampled_from(["add", "modify"]), st.integers() | WORD, params)
        short = st.tuples(st.sampled_from(["add", "remove", 0, 3]), params)
        return (full | short).map(list)
    if issubclass(kind, NicParams):
        return NIC
    if issubclass(kind, DiskSource):
        return SOURCE
    return address(kind)


def address(kind: type) -> st.SearchStrategy[Any] | None:
    for base, strategy in (
        (Ipv4Network, st.ip_addresses(v=4).map(lambda ip: f"{ip}/24")),
        (Ipv6Network, st.ip_addresses(v=6).map(lambda ip: f"{ip}/64")),
        (Ipv4Address, st.ip_addresses(v=4).map(str)),
        (Ipv6Address, st.ip_addresses(v=6).map(str)),
    ):
        if issubclass(kind, base):
            return strategy
    return None


def values(kind: Any) -> st.SearchStrategy[Any]:
    """JSON values that a type accepts."""
    parts = describe.members(kind)
    if parts:
        return st.one_of([values(part) for part in parts])
    kind, metas = describe.peel(kind)
    found = special(kind)
    if found is not None:
        return found
    if kind is int:
        low, above = describe.limit(metas, "ge"), describe.limit(metas, "gt")
        below = describe.limit(metas, "lt")
        lowest = above + 1 if above is not None else low
        return st.integers(lowest, None if below is None else below - 1)
    if kind is str:
        return WORD if describe.limit(metas, "min_length") else TEXT
    plain = {
        Any: JSON,
        bool: st.booleans(),
        float: st.floats(-1e15, 1e15) | st.integers(0, 99),
        type(None): st.none(),
    }
    return plain[kind] if kind in plain else compound(kind)


def compound(kind: Any) -> st.SearchStrategy[Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (list, frozenset):
        return st.lists(values(args[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if origin is tuple:
        return st.tuples(*(values(arg) for arg in args)).map(list)
    if origin is Literal:
        return st.sampled_from(args)
    if issubclass(kind, Enum):
        return st.sampled_from([item.value for item in kind])
    assert issubclass(kind, OpCode)
    return opcode(kind)


def opcode(cls: type[OpCode]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of an opcode with all required and some other parameters."""
    fields = msgspec.structs.fields(cls)
    required = {f.name: values(f.type) for f in fields if f.required}
    optional = {f.name: values(f.type) for f in fields if not f.required}
    op_id = {"OP_ID": st.just(str(cls.__struct_config__.tag))}
    return st.fixed_dictionaries(op_id | required, optional=optional)


RAW = {op_id: opcode(cls) for op_id, cls in OPCODES.items()}
ANY_RAW = st.sampled_from(sorted(RAW)).flatmap(RAW.__getitem__)


@given(ANY_RAW)
@QUICK
def test_what_is_written_is_read_back_equal(raw: dict[str, Any]) -> None:
    op = wire.from_wire(raw)
    written = wire.to_wire(op)
    assert wire.from_wire(jsonio.loads(jsonio.dumps(written))) == op
    assert wire.to_wire(wire.from_wire(written)) == written


@given(ANY_RAW)
@QUICK
def test_nothing_but_unset_parameters_is_left_out(raw: dict[str, Any]) -> None:
    op = wire.from_wire(raw)
    written = wire.to_wire(op)
    left_out = set(op.__struct_fields__) - set(written)
    assert all(getattr(op, name) is None for name in left_out)
    assert {"OP_ID", "depends", "comment", "priority", "reason"} <= set(written)


@given(st.data())
@QUICK
def test_no_secret_is_stored_and_nothing_hidden_is_logged(data: st.DataObject) -> None:
    raw = data.draw(RAW["OP_INSTANCE_CREATE"])
    raw |= {"osparams_secret": {"a": "XsecretX"}, "osparams_private": {"b": ["XprivateX"]}}
    op = wire.from_wire({"OP_ID": "OP_INSTANCE_MULTI_ALLOC", "instances": [raw]})
    assert "XsecretX" not in jsonio.dumps(wire.to_stored_form(op))
    assert "XprivateX" in jsonio.dumps(wire.to_stored_form(op))
    shown = jsonio.dumps(wire.to_wire(op, redact=True)) + repr(op)
    assert "XsecretX" not in shown
    assert "XprivateX" not in shown


def refusal_of(raw: dict[str, Any]) -> str | None:
    try:
        wire.from_wire(raw)
    except errors.OpPrereqError as err:
        return str(err.args[0])
    return None


@given(st.data())
@QUICK
def test_any_json_is_read_or_refused_in_words(data: st.DataObject) -> None:
    op_id = data.draw(st.sampled_from(sorted(RAW)))
    raw = data.draw(RAW[op_id])
    fields = OPCODES[op_id].__struct_fields__
    raw[data.draw(st.sampled_from(fields) | TEXT)] = data.draw(JSON)
    raw["OP_ID"] = op_id
    text = refusal_of(raw)
    if text is not None:
        assert text.startswith(f"{op_id}: ")
        assert "`" not in text or "`" in jsonio.dumps(raw)


@pytest.mark.parametrize("op_id", sorted(OPCODES))
def test_each_opcode_is_read_back_equal(op_id: str) -> None:
    @given(RAW[op_id])
    @settings(QUICK, max_examples=5)
    def check(raw: dict[str, Any]) -> None:
        op = wire.from_wire(raw)
        assert wire.from_wire(wire.to_wire(op)) == op

    check()
