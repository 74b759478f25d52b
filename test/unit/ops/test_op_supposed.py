"""What a question about placement is about: groups, a disk template, a size."""

from __future__ import annotations

import pytest
from op_samples import config, with_cluster, with_group

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.placement import OpClusterCapacity
from ganeti.ops.planning import supposed
from ganeti.placement.facts import Cluster, Group
from ganeti.placement.headroom import Wanted
from ganeti.placement.what_if import Supposed

CLUSTER = Cluster((Group("two", "group-two"), Group("one", "group-one")), (), (), policy=None)  # type: ignore[arg-type]


def test_the_named_group_or_all_by_name() -> None:
    of = with_group(with_group(config(), "one"), "two")
    assert [group.name for group in supposed.groups(of, CLUSTER, None)] == ["one", "two"]
    assert [group.name for group in supposed.groups(of, CLUSTER, "two")] == ["two"]
    assert [group.name for group in supposed.groups(of, CLUSTER, "group-one")] == ["one"]
    with pytest.raises(errors.OpPrereqError, match="three"):
        supposed.groups(of, CLUSTER, "three")


def test_the_first_enabled_template_unless_another_one_is_named() -> None:
    of = with_cluster(config(), enabled_disk_templates=("plain", "drbd"))
    assert supposed.template(of, None) == "plain"
    assert supposed.template(of, DiskTemplate.DRBD) == "drbd"
    with pytest.raises(errors.OpPrereqError, match="file is not enabled; enabled are plain, drbd"):
        supposed.template(of, DiskTemplate.FILE)


def test_a_size_has_what_was_given_and_the_overhead_of_the_template() -> None:
    nothing = supposed.make_wanted(OpClusterCapacity(), "plain")
    assert nothing == Wanted("plain", None, None, None, 0)
    given = OpClusterCapacity(memory=512, disk=2048, vcpus=3)  # type: ignore[arg-type]
    assert supposed.make_wanted(given, "drbd") == Wanted("drbd", 512, 2048, 3, 128)


def test_an_answer_names_what_was_supposed_and_what_nobody_knows() -> None:
    made = Supposed(CLUSTER, notes=("web1 would go to node2",), lost=("web2",))
    assert supposed.describe_assumptions(["remove node1"], made, ["node3"]) == {
        "what_if": ["remove node1"],
        "notes": ["web1 would go to node2"],
        "lost": ["web2"],
        "silent": ["node3"],
    }
    with pytest.raises(errors.OpPrereqError, match="fly"):
        supposed.suppose(CLUSTER, ["fly node1"])
    assert supposed.suppose(CLUSTER, []).cluster == CLUSTER
