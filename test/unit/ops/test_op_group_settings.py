"""Names of node groups, their settings, and who would be split by moving nodes."""

from __future__ import annotations

import pytest
from op_samples import config, node, with_group, with_instance

from ganeti import errors
from ganeti.model.group import NodeGroup
from ganeti.opcodes import wire
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
    assert group_settings.given(op)
    assert group_settings.values(config(), group, op) == {"diskparams": {"plain": {"stripes": 4}}}


def test_split_instances() -> None:
    of = with_instance(config(node(2), node(3)), "web1", "node-2", "node-3")
    groups = {item.uuid: item.group for item in of.nodes.values()}
    assert split(of, groups) == []
    assert [i.name for i in split(of, {**groups, "node-2": "other"})] == ["web1"]
    assert split(of, {**groups, "node-2": "other", "node-3": "other"}) == []
