"""What an upgrade says and refuses, and what is lost on the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import old_configs
import pytest

from ganeti import errors
from ganeti.base import jsonio
from ganeti.config.upgrade import versions
from ganeti.config.upgrade.downgrade import downgrade
from ganeti.config.upgrade.upgrade import problems, upgrade
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import DiskUuid

RECORDED = Path(__file__).parents[2] / "recorded" / "config_3_0_2.json"
V2_13 = 2_130_000


def read_recorded() -> Any:
    return jsonio.loads(RECORDED.read_bytes())


def render_old(version: int, seed: int = 3) -> Any:
    return old_configs.render(old_configs.facts(seed), version, seed)


def texts(raw: Any) -> list[str]:
    return [str(change) for change in upgrade(raw).report.changes]


def test_a_recorded_configuration_of_3_0_2_comes_up() -> None:
    found = upgrade(read_recorded())
    assert problems(found.config) == []
    assert found.report.unknown == []
    assert [disk.size for disk in found.config.disks_of(found.config.instance("inst1"))] == [20, 8]
    assert [str(change) for change in found.report.changes] == [
        "changed cluster/hvparams/kvm/disk_discard: default is called ignore",
        "dropped cluster/hvparams/xen-hvm/xen_cmd: since 3.1 xl is the only tool",
        "dropped cluster/hvparams/xen-pvm/xen_cmd: since 3.1 xl is the only tool",
        "added cluster/hvparams/kvm/accelerator: 'auto'",
        "added cluster/hvparams/kvm/firmware: 'bios'",
        "added cluster/hvparams/kvm/max_vcpus: 0",
        "added cluster/hvparams/xen-pvm/guest_type: 'pv'",
        "added cluster/beparams/default/ha: 'tags'",
        "added cluster/beparams/default/ha_attempts: 3",
        "added cluster/ndparams/fence_agent: ''",
        "added cluster/ndparams/watchdog: ''",
        "added cluster/ndparams/witness: False",
        "added cluster/diskparams/rbd/user-id: ''",
        "changed version: 3.0 becomes 3.2",
    ]


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (2_060_000, "upgrades begin at 2.7"),
        (3_030_000, "version 3.3, which is newer than this software"),
        (4_000_000, "newer than this software"),
        (12, "version 12 is not a version"),
        (-3, "is not a version"),
    ],
)
def test_versions_without_a_way_here_are_refused(version: int, wanted: str) -> None:
    raw = read_recorded() | {"version": version}
    with pytest.raises(errors.ConfigurationError, match=wanted):
        upgrade(raw)


def test_keys_that_nobody_knows_are_named_with_their_path() -> None:
    raw = read_recorded()
    raw["shiny"] = 1
    raw["cluster"]["colour"] = "red"
    raw["cluster"]["hvparams"]["kvm"]["turbo"] = True
    raw["cluster"]["hvparams"]["bhyve"] = {"whatever": 1}
    raw["cluster"]["ipolicy"]["minmax"][0]["min"]["gpu-count"] = 1
    instance = next(iter(raw["instances"].values()))
    instance["mood"], instance["nics"][0]["speed"] = "good", 1000
    next(iter(raw["disks"].values()))["colour"] = "blue"
    found = upgrade(raw)
    assert sorted(found.report.unknown) == [
        "cluster/colour",
        "cluster/hvparams/kvm/turbo",
        "cluster/ipolicy/minmax/0/min/gpu-count",
        "disks/root/colour",
        "instances/inst2.example.com/mood",
        "instances/inst2.example.com/nics/0/speed",
        "shiny",
    ]
    assert found.config.cluster.hvparams["bhyve"]["whatever"] == 1, "no driver here to judge it"


def test_objects_without_uuid_get_the_same_one_each_time() -> None:
    raw = render_old(2_070_000, 11)
    for node in raw["nodes"].values():
        del node["uuid"]
    for instance in raw["instances"].values():
        for disk in instance["disks"]:
            del disk["uuid"]
            for child in disk["children"]:
                del child["uuid"]
    first, second = upgrade(raw).config, upgrade(raw).config
    assert first.data == second.data
    assert problems(first) == []
    assert {node.name for node in first.nodes.values()} == set(raw["nodes"])
    assert len(first.disks) == sum(len(one["disks"]) for one in raw["instances"].values()) > 0
    assert all(child.uuid for disk in first.disks.values() for child in disk.children)


def test_an_old_policy_becomes_a_pair_and_a_group_takes_the_rest_from_the_cluster() -> None:
    raw = render_old(2_070_000)
    group = next(iter(raw["nodegroups"].values()))
    group["ipolicy"] = {"min": {"memory-size": 96}, "max": {}, "std": {"memory-size": 100}}
    found = upgrade(raw)
    policy = found.config.groups[group["uuid"]].ipolicy
    assert list(policy) == ["minmax"]
    assert policy["minmax"][0]["min"]["memory-size"] == 96
    assert policy["minmax"][0]["max"]["memory-size"] == 8192
    dropped = f"nodegroups/{group['name']}/ipolicy/std: only a cluster has a standard size"
    assert f"dropped {dropped}" in [str(change) for change in found.report.changes]


def test_templates_that_were_not_chosen_are_those_in_use_and_the_volume_group() -> None:
    raw = render_old(2_080_000)
    used = {instance["disk_template"] for instance in raw["instances"].values()}
    found = upgrade(raw).config.cluster.enabled_disk_templates
    assert set(found) == used | {"plain", "drbd"}


def test_private_values_are_not_in_the_report() -> None:
    raw = render_old(2_120_000)
    known = jsonio.dumps(texts(raw))
    assert "hidden" not in known
    assert "private" not in known.replace("osparams_private", "")
    assert "secret-" not in known


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        (("nodes",), [], "nodes must be an object, but is a list"),
        (("cluster",), "x", "has no cluster"),
        (("cluster", "hvparams", "kvm"), 3, "cluster/hvparams/kvm must be an object"),
        (("cluster", "master_netmask"), "24", r"\$\.cluster\.master_netmask"),
        (("cluster", "tags"), "prod", "cluster/tags must be a list, but is a text"),
        (("cluster", "ipolicy", "minmax"), [3], "cluster/ipolicy/minmax must be a list of objects"),
    ],
)
def test_a_damaged_value_is_refused_by_its_path(path: Any, value: Any, wanted: str) -> None:
    raw = read_recorded()
    inner = raw
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(errors.ConfigurationError, match=wanted):
        upgrade(raw)


def test_a_hypervisor_without_a_driver_is_a_problem() -> None:
    raw = read_recorded()
    raw["cluster"]["enabled_hypervisors"].append("bhyve")
    raw["cluster"]["hvparams"]["bhyve"] = {}
    assert problems(upgrade(raw).config) == [
        "hypervisor bhyve is enabled, but this software has no driver for it"
    ]


# the way back --------------------------------------------------------------------------------


def with_disk(config: Config, disk: Disk, *, owner: str | None = None) -> Config:
    """A configuration with one more disk, attached to an instance or to none."""
    instances = config.instances
    if owner is not None:
        instance = config.instance(owner)
        attached = base.replace(instance, disks=(*instance.disks, DiskUuid(disk.uuid)))
        instances = {**instances, instance.uuid: attached}
    disks = {**config.disks, disk.uuid: disk}
    return Config(base.replace(config.data, disks=disks, instances=instances))


def extra(index: int = 2) -> Disk:
    return Disk(
        uuid=f"9a6e5dbe-27d4-4c0c-8d0e-1ddf8b3a5d0{index}",
        dev_type=DiskTemplate.RBD,
        size=64,
        logical_id=("rbd", "spare"),
        iv_name=f"disk/{index}",
        name="spare",
    )


def test_mixed_templates_cannot_go_back_before_disks_were_objects() -> None:
    config = with_disk(upgrade(read_recorded()).config, extra(), owner="inst1")
    with pytest.raises(errors.OpPrereqError) as caught:
        downgrade(config, V2_13)
    text = errors.text(caught.value)
    assert "instance inst1.example.com has disks of several templates (file, file, rbd)" in text
    assert "gnt-instance modify --disk 2:detach inst1.example.com" in text
    assert downgrade(config, 3_000_000).report.warnings == []


def test_disks_of_nobody_are_listed_and_forgotten() -> None:
    config = with_disk(upgrade(read_recorded()).config, extra())
    found = downgrade(config, V2_13)
    assert len(found.report.warnings) == 1
    assert "disk spare" in found.report.warnings[0]
    assert "rbd/spare" in found.report.warnings[0]
    assert len(upgrade(found.raw).config.disks) == 2
    assert extra().uuid in downgrade(config, 3_000_000).raw["disks"]


def test_what_came_later_and_is_in_use_is_refused_with_its_place() -> None:
    raw = read_recorded()
    raw["cluster"]["hvparams"]["kvm"]["disk_aio"] = "io_uring"
    first = next(iter(raw["instances"].values()))
    first["nics"][0]["nicparams"]["mode"] = "ext"
    config = upgrade(raw).config
    with pytest.raises(errors.OpPrereqError) as caught:
        downgrade(config, 3_000_000)
    assert "cluster/hvparams/kvm/disk_aio is io_uring" in errors.text(caught.value)
    assert f"instances/{first['name']}/nics/0 has the mode ext" in errors.text(caught.value)
    with pytest.raises(errors.OpPrereqError) as caught:
        downgrade(config, 3_010_000)
    assert "disk_aio" not in errors.text(caught.value)


def test_own_parameters_that_differ_are_warned_about() -> None:
    raw = read_recorded()
    raw["cluster"]["hvparams"]["kvm"]["firmware"] = "uefi"
    found = downgrade(upgrade(raw).config, 3_010_000)
    assert found.report.warnings == [
        "cluster/hvparams/kvm/firmware will be forgotten (it is uefi): only this software has it"
    ]
    assert "firmware" not in found.raw["cluster"]["hvparams"]["kvm"]
    assert "accelerator" not in found.raw["cluster"]["hvparams"]["kvm"]


def test_tags_of_disks_are_ours_alone() -> None:
    config = with_disk(upgrade(read_recorded()).config, base.replace(extra(), tags=("gold",)))
    found = downgrade(config, 3_010_000)
    assert found.report.warnings == [
        "disks/spare/tags will be forgotten: only this software has it"
    ]
    assert all("tags" not in disk for disk in found.raw["disks"].values())


def test_planned_instances_go_only_where_they_are_known() -> None:
    raw = read_recorded()
    uuid = "c7e2b5a4-36b4-4a09-9c6f-d1b5a8a9f001"
    raw["instances"][uuid] = {"uuid": uuid, "forthcoming": True, "name": "later.example.com"}
    config = upgrade(raw).config
    assert config.instances[uuid].forthcoming
    assert uuid in downgrade(config, 3_000_000).raw["instances"]
    back = downgrade(config, V2_13)
    assert back.report.warnings == ["planned instance later.example.com will be forgotten"]
    assert uuid not in back.raw["instances"]


def test_what_is_planned_and_by_whom() -> None:
    raw = read_recorded()
    uuid = "c7e2b5a4-36b4-4a09-9c6f-d1b5a8a9f001"
    planned = {"uuid": uuid, "forthcoming": True, "name": "later.example.com"}
    raw["instances"][uuid] = planned | {"reservation": {"owner": "alice"}}
    found = downgrade(upgrade(raw).config, 3_000_000)
    assert found.report.warnings == [
        "instances/later.example.com/reservation will be forgotten: only this software has it"
    ]
    raw["instances"][uuid] = planned | {"creating": 7}
    with pytest.raises(errors.OpPrereqError, match="gnt-instance remove later"):
        downgrade(upgrade(raw).config, 3_000_000)


def test_only_some_versions_can_be_gone_back_to() -> None:
    assert versions.target("3.0") == 3_000_000
    with pytest.raises(errors.OpPrereqError, match=r"choose from 3\.1, 3\.0, 2\.13"):
        versions.target("2.9")
