"""What is refused because of a name, a node, a parameter or the instance policy."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, context, node, with_cluster, with_group

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.ipolicy import Shape
from ganeti.ops.planning import checks, tags


def group_of(of: Config) -> Any:
    [group] = of.groups
    return group


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("Web1.Example.COM.", "web1.example.com"),
        ("web_1", "web_1"),
        ("a" * 63, "a" * 63),
        (".".join(["a" * 60] * 4) + ".bbbbbbbbb", ".".join(["a" * 60] * 4) + ".bbbbbbbbb"),
    ],
)
def test_a_host_name_is_in_lower_case_without_the_last_dot(given: str, found: str) -> None:
    assert checks.host_name(given, "an instance") == found


@pytest.mark.parametrize(
    "name",
    ["", "a b", "-web", "web-", "web..example", "a" * 64, ".".join(["a" * 60] * 4) + ".bbbbbbbbbb"],
)
def test_a_name_that_no_host_can_have(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=f"'{name}' cannot be the name of a node: "):
        checks.host_name(name, "a node")


def test_a_hypervisor_that_the_cluster_does_not_use() -> None:
    ctx = context(config())
    assert checks.hypervisor_enabled(ctx, "fake") == "fake"
    with pytest.raises(errors.OpPrereqError, match=r"xen-pvm is not enabled .*; enabled: fake"):
        checks.hypervisor_enabled(ctx, "xen-pvm")


def test_hypervisor_parameters_of_an_instance() -> None:
    ctx = context(config())
    own = {"serial_console": True, "boot_order": "disk"}
    wanted = {"boot_order": "cdrom", "acpi": "default"}
    assert checks.check_hvparams(ctx, "kvm", "noop", own, wanted) == {"boot_order": "cdrom"}
    text = "of the whole cluster, not of an instance: migration_bandwidth, migration_port"
    with pytest.raises(errors.OpPrereqError, match=text):
        checks.check_hvparams(
            ctx, "kvm", "noop", {}, {"migration_port": 1, "acpi": True, "migration_bandwidth": 2}
        )
    with pytest.raises(errors.ParameterError, match="no_such"):
        checks.check_hvparams(ctx, "kvm", "noop", {}, {"no_such": 1})


def test_parameters_are_checked_together_with_those_that_the_instance_has() -> None:
    ctx = context(config())
    with pytest.raises(errors.ParameterError, match="boot_order"):
        checks.check_hvparams(ctx, "kvm", "noop", {"boot_order": "tape"}, {"acpi": True})


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"offline": True}, "offline"),
        ({"drained": True}, "drained"),
        ({"vm_capable": False}, "not able to run instances"),
    ],
)
def test_a_node_that_takes_no_instances(facts: dict[str, bool], word: str) -> None:
    text = rf"node node2\.example\.com is {word} and cannot be used as target"
    with pytest.raises(errors.OpPrereqError, match=text) as caught:
        checks.check_usable(node(2, **facts), "as target")
    assert caught.value.args[1] == errors.ErrorCode.STATE
    checks.check_usable(node(2), "as target")


def test_nodes_that_must_all_be_online() -> None:
    checks.all_online([node(2), node(3, drained=True)], "to copy disks")
    text = r"node node3\.example\.com is marked offline, but it is needed to copy disks"
    with pytest.raises(errors.OpPrereqError, match=text):
        checks.all_online([node(2), node(3, offline=True)], "to copy disks")


# instance policy ----------------------------------------------------------------------------------


def shape(memory: int = 512, vcpus: int = 1) -> Shape:
    return Shape(memory, vcpus, 1, (2048,), 1, ("file",))


def test_a_shape_that_the_policy_of_the_group_forbids() -> None:
    ctx = context(config())
    group = group_of(ctx.config)
    checks.shape_allowed(ctx, group, shape())
    with pytest.raises(
        errors.OpPrereqError,
        match=r"instance policy of the node group: memory-size 64 .*; cpu-count 9 .*"
        r" \(--ignore-ipolicy allows it\)",
    ):
        checks.shape_allowed(ctx, group, shape(64, 9))
    assert ctx.job.lines == []  # type: ignore[attr-defined]


def test_a_forbidden_shape_can_be_had_with_a_warning() -> None:
    ctx = context(config())
    checks.shape_allowed(ctx, group_of(ctx.config), shape(64), ignore=True)
    [line] = ctx.job.lines  # type: ignore[attr-defined]
    assert line.startswith("WARNING: instance policy of the node group: memory-size 64 ")


def test_what_was_forbidden_before_is_no_reason_to_refuse_a_change() -> None:
    ctx = context(config())
    group = group_of(ctx.config)
    checks.shape_allowed(ctx, group, shape(64), before=shape(64))
    with pytest.raises(errors.OpPrereqError) as caught:
        checks.shape_allowed(ctx, group, shape(64, 9), before=shape(64))
    assert "cpu-count" in str(caught.value)
    assert "memory-size" not in str(caught.value)


# spindles -----------------------------------------------------------------------------------------


def test_spindles_are_counted_only_where_storage_is_exclusive() -> None:
    of = config(node(2, "group-x"), node(3, "group-x"), node(4))
    of = with_group(of, "x", ndparams={"exclusive_storage": True})
    checks.spindles_count(of, "disk 0", ["node-2", "node-3"])
    for uuids in (["node-4"], ["node-2", "node-4"], []):
        with pytest.raises(errors.OpPrereqError, match="disk 0: spindles cannot be specified"):
            checks.spindles_count(of, "disk 0", uuids)
    everywhere = with_cluster(of, ndparams={**of.cluster.ndparams, "exclusive_storage": True})
    checks.spindles_count(everywhere, "disk 0", ["node-4"])


# tags ---------------------------------------------------------------------------------------------


def test_tags_have_letters_digits_and_a_few_signs() -> None:
    tags.check([])
    tags.check(["owner:alice@example.com", "a_b.c+d*e/f-g", "ü", "x" * 128])


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "a\n", "x" * 129, "x" * 500])
def test_what_is_not_a_tag(tag: str) -> None:
    with pytest.raises(errors.TagError) as caught:
        tags.check(["good", tag])
    text = str(caught.value)
    assert text.startswith(f"'{tag[:140]}' is not a tag: up to 128 letters")
    assert len(text) < 240
