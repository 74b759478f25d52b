"""Configuration objects: the documented JSON form, in and out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import jsonio
from ganeti.model import base, marks
from ganeti.model.base import ConfigObject
from ganeti.model.cluster import Cluster
from ganeti.model.config import ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskMode, DiskTemplate, HypervisorName
from ganeti.model.filter_rule import FilterRule
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.node import Node

HERE = Path(__file__).parent
CLASSES: dict[str, type[ConfigObject]] = {
    "ConfigData": ConfigData,
    "Cluster": Cluster,
    "Node": Node,
    "NodeGroup": NodeGroup,
    "Network": Network,
    "FilterRule": FilterRule,
    "Instance": Instance,
    "Disk": Disk,
    "NIC": Nic,
}
#: Object -> key -> "always" or "optional" (left out when unset).
KEYS: dict[str, dict[str, str]] = json.loads((HERE / "config_objects.json").read_text())


def sample() -> dict[str, Any]:
    """A configuration that another implementation wrote."""
    value: dict[str, Any] = json.loads((HERE / "config_sample.json").read_text())
    return value


def minimal(cls: type[ConfigObject]) -> ConfigObject:
    """An object with nothing set that can be left out."""
    samples = {str: "x", int: 1, Cluster: None}
    given: dict[str, Any] = {}
    for info in msgspec.structs.fields(cls):
        if info.required:
            kind = marks.plain(info.type)
            plain = getattr(kind, "__supertype__", kind)
            given[info.name] = minimal(Cluster) if plain is Cluster else samples[plain]
    return cls(**given)


def test_a_configuration_of_another_implementation_survives() -> None:
    value = sample()
    data = base.from_wire(ConfigData, value, "config.data")
    assert base.to_wire(data) == value
    again = base.from_wire(ConfigData, jsonio.loads(jsonio.dumps(base.to_wire(data))), "again")
    assert again == data


#: Keys that only this implementation has; they are written only when they are used.
OWN_KEYS = {
    "Cluster": {
        "auto_failover_after",
        "auto_fence_after",
        "master_vote",
        "notifications",
        "notifying_node",
        "recovery_paused_until",
    },
    "ConfigData": {"images"},
    "Disk": {"tags", "max_iops", "max_bandwidth"},
    "Instance": {
        "reservation",
        "creating",
        "image",
        "cloud_init",
        "snapshots",
        "backup",
        "recovery",
    },
    "Network": {"dns", "mtu"},
    "NodeGroup": {"beparams"},
    "Node": {"maintenance", "fenced"},
}


def test_tags_of_a_disk_are_written_only_if_there_are_any() -> None:
    disk = Disk(uuid="d")
    assert "tags" not in base.to_wire(disk)
    tagged = base.to_wire(base.replace(disk, tags=("a", "b")))
    assert tagged["tags"] == ["a", "b"]
    assert base.from_wire(Disk, tagged, "disk").tags == ("a", "b")


@pytest.mark.parametrize("name", sorted(KEYS))
def test_objects_have_the_documented_keys(name: str) -> None:
    found = {info.name for info in msgspec.structs.fields(CLASSES[name])}
    assert found - OWN_KEYS.get(name, set()) == set(KEYS[name])


def test_keys_of_reservations_are_gone_from_an_instance_that_exists() -> None:
    instance = Instance(uuid="u", name="web1", reservation=None, creating=None)
    assert not OWN_KEYS["Instance"] & set(base.to_wire(instance))


@pytest.mark.parametrize("name", sorted(KEYS))
def test_only_optional_keys_are_left_out(name: str) -> None:
    written = base.to_wire(minimal(CLASSES[name]))
    always = {key for key, kind in KEYS[name].items() if kind == "always"}
    # Unset here; only a forthcoming object is without it.
    always -= {"Disk": {"dev_type"}, "Instance": {"hypervisor"}}.get(name, set())
    assert set(written) == always


def places(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all objects of the sample that are objects of the model."""
    yield ()
    yield ("cluster",)
    for container in ("nodes", "nodegroups", "instances", "networks", "disks"):
        for uuid in value[container]:
            yield (container, uuid)
    for uuid, instance in value["instances"].items():
        for index in range(len(instance["nics"])):
            yield ("instances", uuid, "nics", index)


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


@pytest.mark.parametrize(
    "place", list(places(sample())), ids=lambda place: "/".join(map(str, place))
)
def test_an_unknown_key_is_refused_wherever_it_is(place: tuple[Any, ...]) -> None:
    value = sample()
    at(value, place)["surprise"] = 1
    with pytest.raises(errors.ConfigurationError, match=r"config\.data: .*surprise"):
        base.from_wire(ConfigData, value, "config.data")


@pytest.mark.parametrize(
    ("place", "key", "wrong"),
    [
        ((), "version", "3000000"),
        ((), "nodes", []),
        (("cluster",), "master_netmask", "24"),
        (("cluster",), "uid_pool", [[1]]),
        (("cluster",), "tags", [1]),
        (("cluster",), "cluster_name", None),
        (("instances", "de3dd924-ef78-4b90-a69a-431a09ff140f"), "admin_state", "UP"),
        (("instances", "de3dd924-ef78-4b90-a69a-431a09ff140f"), "hypervisor", "vmware"),
        (("instances", "de3dd924-ef78-4b90-a69a-431a09ff140f"), "disks_active", 1),
        (("disks", "681b2187-67a7-4c37-b345-c511a1c9c9f2"), "dev_type", "floppy"),
        (("disks", "681b2187-67a7-4c37-b345-c511a1c9c9f2"), "size", 20.5),
        (("disks", "681b2187-67a7-4c37-b345-c511a1c9c9f2"), "mode", "w"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    place: tuple[Any, ...], key: str, wrong: Any
) -> None:
    value = sample()
    at(value, place)[key] = wrong
    with pytest.raises(errors.ConfigurationError) as caught:
        base.from_wire(ConfigData, value, "config.data")
    assert errors.text(caught.value).startswith("config.data: ")
    assert f".{key}" in errors.text(caught.value)


@pytest.mark.parametrize("key", ["version", "cluster"])
def test_a_missing_key_is_named(key: str) -> None:
    value = sample()
    del value[key]
    with pytest.raises(errors.ConfigurationError, match=f"`{key}`"):
        base.from_wire(ConfigData, value, "config.data")


@pytest.mark.parametrize("value", [None, [], "x", 1, {}])
def test_what_is_no_configuration_is_refused(value: Any) -> None:
    with pytest.raises(errors.ConfigurationError, match="a file"):
        base.from_wire(ConfigData, value, "a file")


def test_a_forthcoming_instance_may_lack_everything_but_its_uuid() -> None:
    value = {"uuid": "u1", "forthcoming": True}
    instance = base.from_wire(Instance, value, "instance")
    assert instance.forthcoming
    wire = base.to_wire(instance)
    assert wire["uuid"] == "u1"
    assert wire["forthcoming"] is True
    assert not [key for key, item in wire.items() if item in ("", [], {}, None, False)]
    assert base.from_wire(Instance, wire, "instance") == instance


def test_nothing_can_be_changed_in_place() -> None:
    data = base.from_wire(ConfigData, sample(), "config.data")
    node = next(iter(data.nodes.values()))
    with pytest.raises(AttributeError):
        node.offline = True  # type: ignore[misc]
    changed = base.replace(node, offline=True)
    assert (node.offline, changed.offline) == (False, True)
    assert base.replace(changed, offline=False) == node


names = st.text("abc.-0", min_size=1, max_size=8)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
params = st.dictionaries(names, anything, max_size=3)
stamps = {
    "uuid": names,
    "ctime": st.floats(0, 2**32),
    "mtime": st.floats(0, 2**32),
    "serial_no": st.integers(1),
}
disks = st.recursive(
    st.builds(Disk, dev_type=st.sampled_from(DiskTemplate), size=st.integers(0), **stamps),
    lambda inner: st.builds(
        Disk,
        dev_type=st.sampled_from(DiskTemplate),
        logical_id=st.lists(st.integers() | names, max_size=3).map(tuple),
        children=st.lists(inner, max_size=2).map(tuple),
        nodes=st.lists(names, max_size=2).map(tuple),
        mode=st.sampled_from(DiskMode),
        name=st.none() | names,
        spindles=st.none() | st.integers(0),
        params=st.none() | params,
        **stamps,
    ),
    max_leaves=3,
)
nics = st.builds(Nic, mac=names, uuid=names, ip=st.none() | names, nicparams=params)
instances = st.builds(
    Instance,
    name=names,
    hypervisor=st.sampled_from(HypervisorName),
    hvparams=params,
    admin_state=st.sampled_from(AdminState),
    nics=st.lists(nics, max_size=2).map(tuple),
    network_port=st.none() | st.integers(1, 65535),
    tags=st.lists(names, max_size=2).map(tuple),
    forthcoming=st.sampled_from([None, True]),
    **stamps,
)


@given(disks | instances | nics)
def test_any_object_survives_its_way_through_a_file(obj: ConfigObject) -> None:
    text = jsonio.dumps(base.to_wire(obj))
    assert base.from_wire(type(obj), jsonio.loads(text), "x") == obj


@given(instances)
def test_writing_an_object_gives_nothing_away_that_could_change_it(obj: Instance) -> None:
    before = copy.deepcopy(base.to_wire(obj))
    wire = base.to_wire(obj)
    wire["hvparams"] = {"x": 1}
    wire.setdefault("nics", []).append("x")
    assert base.to_wire(obj) == before
