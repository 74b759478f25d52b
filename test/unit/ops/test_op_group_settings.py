"""Names of node groups, their settings, and who would be split by moving nodes."""

from __future__ import annotations

import pytest
from op_samples import config, node, with_group, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.group import NodeGroup
from ganeti.opcodes import wire
from ganeti.opcodes.base import changes
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.ops.group.assign_nodes import split
from ganeti.ops.planning import group_settings


@pytest.mark.parametrize(
    "name",
    ["rack 1", "-rack", "a/b", "a,b", "a\n", "x" * 300, "11111111-2222-3333-4444-555555555555"],
)
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="cannot be the name"):
        group_settings.check_name(config(), name)


def test_names_that_are_taken() -> None:
    of = with_group(config(), "rack1")
    with pytest.raises(errors.OpPrereqError, match="already"):
        group_settings.check_name(of, "rack1")
    group_settings.check_name(of, "rack1", but="group-rack1")
    group_settings.check_name(of, "rack2")


def test_only_what_differs_is_a_change() -> None:
    group = NodeGroup(uuid="g", name="g", ndparams={"spindle_count": 2})
    op = wire.decode(
        OpGroupSetParams,
        {
            "group_name": "g",
            "alloc_policy": "preferred",
            "ndparams": {"spindle_count": "2"},
            "diskparams": {"plain": {"stripes": "4"}},
        },
    )
    assert changes(op)
    assert group_settings.values(config(), group, op) == {"diskparams": {"plain": {"stripes": 4}}}


def change(**params: object) -> OpGroupSetParams:
    return wire.decode(OpGroupSetParams, {"group_name": "g", **params})


@pytest.mark.parametrize(
    ("params", "field", "value"),
    [
        ({"alloc_policy": "last_resort"}, "alloc_policy", "last_resort"),
        ({"ndparams": {"spindle_count": 3}}, "ndparams", {"spindle_count": 3}),
        ({"diskparams": {"drbd": {"metavg": "meta"}}}, "diskparams", {"drbd": {"metavg": "meta"}}),
        ({"ipolicy": {"vcpu-ratio": 2}}, "ipolicy", {"vcpu-ratio": 2.0}),
        (
            {"hv_state": {"fake": {"mem_total": 4096}}},
            "hv_state_static",
            {"fake": {"mem_total": 4096}},
        ),
        (
            {"disk_state": {"plain": {"xenvg": {"disk_total": 1 << 20}}}},
            "disk_state_static",
            {"plain": {"xenvg": {"disk_total": 1 << 20}}},
        ),
    ],
)
def test_each_parameter_becomes_a_field_of_the_group(
    params: dict[str, object], field: str, value: object
) -> None:
    op = change(**params)
    assert changes(op)
    group = NodeGroup(uuid="g", name="g")
    assert group_settings.values(config(), group, op) == {field: value}
    same = base.replace(group, **{field: value})
    assert group_settings.values(config(), same, op) == {}


def test_a_change_that_names_nothing() -> None:
    assert not changes(change())
    assert group_settings.values(config(), NodeGroup(uuid="g", name="g"), change()) == {}


def test_the_longest_name() -> None:
    group_settings.check_name(config(), "x" * 255)
    with pytest.raises(errors.OpPrereqError, match=r"'x{255}' cannot be the name"):
        group_settings.check_name(config(), "x" * 256)


def test_split_instances() -> None:
    of = with_instance(config(node(2), node(3)), "web1", "node-2", "node-3")
    groups = {item.uuid: item.group for item in of.nodes.values()}
    assert split(of, groups) == []
    assert [i.name for i in split(of, {**groups, "node-2": "other"})] == ["web1"]
    assert split(of, {**groups, "node-2": "other", "node-3": "other"}) == []
