"""Configurations of every version come up without loss, and go back and come again the same."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import old_configs
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.config.upgrade import versions
from ganeti.config.upgrade.downgrade import downgrade
from ganeti.config.upgrade.upgrade import problems, upgrade
from ganeti.model import base
from ganeti.model.config import Config, ConfigData

SEEDS = st.integers(0, 2**32)
VERSIONS = st.sampled_from(old_configs.VERSIONS)


def wire(config: Config) -> dict[str, Any]:
    return base.to_wire(config.data)


@examples(60)
@given(seed=SEEDS, version=VERSIONS)
def test_what_a_user_would_miss_is_there_after_the_upgrade(seed: int, version: int) -> None:
    known = old_configs.facts(seed)
    raw = old_configs.render(known, version, seed)
    before = copy.deepcopy(raw)
    found = upgrade(raw)
    config = found.config
    assert raw == before, "the given value was changed"
    assert (found.version, found.report.unknown) == (version, [])
    assert problems(config) == []
    assert config.data.version == constants.CONFIG_VERSION
    assert {key: (n.name, list(n.tags), n.group, n.offline) for key, n in config.nodes.items()} == {
        key: (n["name"], n["tags"], n["group"], n["offline"]) for key, n in known.nodes.items()
    }
    assert {key: (g.name, list(g.tags)) for key, g in config.groups.items()} == {
        key: (g["name"], g["tags"]) for key, g in known.groups.items()
    }
    assert {key: n.name for key, n in config.networks.items()} == {
        key: n["name"] for key, n in known.networks.items()
    }
    assert list(config.cluster.tags) == known.tags
    assert set(config.instances) == {one.uuid for one in known.instances}
    assert sum(len(one.disks) for one in known.instances) == len(config.disks)
    for one in known.instances:
        same_instance(config, one, version)


def children(raw: Any) -> list[dict[str, Any]]:
    """Everything below a disk, wherever versions keep disks."""
    if isinstance(raw, list):
        return [found for item in raw for found in children(item)]
    if not isinstance(raw, dict):
        return []
    own = [item for item in raw.get("children", []) if isinstance(item, dict)]
    return own + [found for item in raw.values() for found in children(item)]


@pytest.mark.parametrize("way", [{"uuid": None}, {"uuid": ""}, {}])
@pytest.mark.parametrize("version", old_configs.VERSIONS)
def test_parts_of_disks_without_a_uuid_get_one(version: int, way: dict[str, Any]) -> None:
    """As many released versions wrote them; always the same one, also below a part."""
    known = old_configs.facts(7)
    raw = old_configs.render(known, version, 7)
    found = children(raw)
    for number, child in enumerate(found):
        del child["uuid"]
        child |= way
        below = {"dev_type": "plain", "logical_id": ["xenvg", f"below{number}"], "size": 4}
        child["children"] = [below]
    assert found, "this seed has no mirrored disks"
    first, second = upgrade(copy.deepcopy(raw)), upgrade(raw)
    assert problems(first.config) == []
    assert wire(first.config) == wire(second.config)
    made = [
        part.uuid
        for disk in first.config.disks.values()
        for child in disk.children
        for part in (child, *child.children)
    ]
    assert len(made) == len(set(made)) == 2 * len(found)
    assert all(
        child.nodes == disk.nodes for disk in first.config.disks.values() for child in disk.children
    )


def same_instance(config: Config, one: old_configs.FactInstance, version: int) -> None:
    instance = config.instance(one.name)
    assert instance.uuid == one.uuid
    assert list(instance.tags) == one.tags
    assert (instance.primary_node, config.secondary_nodes(instance)) == (
        one.primary,
        [one.secondary] if one.secondary else [],
    )
    assert (instance.admin_state == "up", instance.network_port) == (one.up, one.port)
    assert config.beparams(instance)["maxmem"] == one.memory
    assert config.disk_template(instance) == one.template
    assert [nic.mac for nic in instance.nics] == [nic["mac"] for nic in one.nics]
    assert [nic.network for nic in instance.nics] == [nic.get("network") for nic in one.nics]
    disks = config.disks_of(instance)
    assert [(d.uuid, d.size, list(d.logical_id)) for d in disks] == [
        (d.uuid, d.size, d.place) for d in one.disks
    ]
    if version >= 2_080_000:
        assert [disk.name for disk in disks] == [disk.name for disk in one.disks]
        assert [nic.uuid for nic in instance.nics] == [nic["uuid"] for nic in one.nics]
    parts = [[(c.uuid, *c.logical_id, c.size) for c in disk.children] for disk in disks]
    assert parts == [disk.parts for disk in one.disks]


@examples(60)
@given(seed=SEEDS, version=VERSIONS)
def test_a_second_upgrade_changes_nothing(seed: int, version: int) -> None:
    first = upgrade(old_configs.render(old_configs.facts(seed), version, seed))
    raw = jsonio.loads(jsonio.dumps(wire(first.config)))
    second = upgrade(raw)
    assert second.report.changes == []
    assert wire(second.config) == wire(first.config)
    assert base.from_wire(ConfigData, raw, "it") == first.config.data


@examples(50)
@given(seed=SEEDS, version=VERSIONS, target=st.sampled_from(versions.TARGETS))
def test_down_and_up_again_is_the_same(seed: int, version: int, target: int) -> None:
    config = upgrade(old_configs.render(old_configs.facts(seed), version, seed)).config
    down = downgrade(config, target)
    assert down.raw["version"] == target
    assert down.report.warnings == []
    again = upgrade(jsonio.loads(jsonio.dumps(down.raw)))
    assert again.report.unknown == []
    assert comparable(again.config, target) == comparable(config, target)


def comparable(config: Config, target: int) -> dict[str, Any]:
    """Everything but what the older version has no place for."""
    raw = wire(config)
    if target < 2_140_000:
        for key in ("ssh_key_type", "ssh_key_bits"):
            del raw["cluster"][key]
        for disk in raw["disks"].values():
            for one in (disk, *disk["children"]):
                for key in ("ctime", "mtime", "serial_no"):
                    one.pop(key, None)
    return raw


PATHS = st.lists(st.integers(0, 30), min_size=1, max_size=6)
JUNK = st.sampled_from([None, 1, -5.5, "x", [], {}, [None], {"a": 1}, True, [[1]], {"x": {"y": 2}}])


@examples(100)
@given(seed=st.integers(0, 50), version=VERSIONS, path=PATHS, junk=JUNK)
@example(seed=0, version=2070000, path=[16, 0, 1], junk="x")  # the address of a network
def test_junk_anywhere_is_refused_by_name_or_taken(
    seed: int, version: int, path: list[int], junk: Any
) -> None:
    """A damaged value never ends in anything but a ConfigurationError."""
    raw = old_configs.render(old_configs.facts(seed), version, seed)
    damage(raw, path, junk)
    found: Any = None
    with contextlib.suppress(errors.ConfigurationError):
        found = problems(upgrade(raw).config)
    assert found is None or isinstance(found, list)


def damage(value: Any, path: list[int], junk: Any) -> None:
    """Put junk somewhere."""
    for step in path:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = keys[step % len(keys)]
        if step is path[-1] or not isinstance(value[key], dict | list):
            value[key] = junk
            return
        value = value[key]


def test_every_version_of_the_list_is_tried_at_least_once() -> None:
    known = old_configs.facts(7)
    texts = [
        versions.text(v)
        for v in old_configs.VERSIONS
        if not problems(upgrade(old_configs.render(known, v)).config)
    ]
    assert texts == [versions.text(v) for v in old_configs.VERSIONS]


@pytest.mark.parametrize("value", [{}, [], 3, "x", {"version": "3"}, {"version": True}])
def test_what_is_no_configuration_is_refused(value: Any) -> None:
    with pytest.raises(errors.ConfigurationError, match="not a cluster configuration"):
        upgrade(value)
