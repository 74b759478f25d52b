"""What an instance policy sees of an instance, and who breaks one."""

from __future__ import annotations

from typing import Any

from op_samples import change, config, node, put, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.ops.planning import policy

EMPTY = config(node(2))
CONFIG = with_instance(EMPTY, "web1", "node-2")
FILE = Disk(uuid="f", dev_type=DiskTemplate.FILE, size=10)
STRICT = {"ipolicy": {"disk-templates": ["plain"]}}


def shape(of: Config = CONFIG, **given: Any) -> Any:
    return policy.shape(of, of.instances["inst-web1"], **given)


def limit(of: Config, group: str) -> Config:
    return put(of, "nodegroups", base.replace(of.groups[group], **STRICT))


def test_the_shape_is_that_of_the_parameters_and_the_disks() -> None:
    of = change(CONFIG, beparams={"maxmem": 512, "minmem": 128, "vcpus": 3, "spindle_use": 5})
    found = shape(of)
    assert (found.memory, found.vcpus, found.spindle_use, found.nics) == (512, 3, 5, 1)
    assert list(found.disks) == [2048]
    assert found.templates == ("file",)


def test_other_disks_count_in_place_of_its_own() -> None:
    other = base.replace(FILE, dev_type=DiskTemplate.PLAIN, size=20)
    found = shape(disks=[FILE, other])
    assert (list(found.disks), found.templates) == ([10, 20], ("file", "plain"))
    found = shape(disks=[])
    assert (list(found.disks), found.templates) == ([], ("diskless",))
    assert shape(disks=[FILE], template="rbd").templates == ("rbd",)
    assert shape(disks=[base.replace(FILE, dev_type=None)]).templates == ("diskless",)


def test_the_policy_of_the_group_of_the_primary_node_counts() -> None:
    group = CONFIG.nodes["node-2"].group
    item = CONFIG.instances["inst-web1"]
    assert policy.violations(CONFIG, item) == []
    [text] = policy.violations(limit(CONFIG, group), item)
    assert "template file is not allowed" in text
    nowhere = base.replace(item, primary_node="")
    assert policy.violations(limit(CONFIG, group), nowhere) == []


def test_a_change_names_whom_it_makes_break_the_policy() -> None:
    after = limit(CONFIG, CONFIG.nodes["node-2"].group)
    [text] = policy.find_new_violations(CONFIG, after)
    assert text.startswith("instance web1 violates the instance policy now: ")
    assert policy.find_new_violations(CONFIG, after, []) == []
    assert policy.find_new_violations(after, after) == []


def test_only_what_is_new_is_named() -> None:
    before = limit(CONFIG, CONFIG.nodes["node-2"].group)
    after = change(before, name="web1", beparams={"vcpus": 1000})
    [text] = policy.find_new_violations(before, after)
    assert "template" not in text
