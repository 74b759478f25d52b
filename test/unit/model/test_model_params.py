"""Parameter sets: defaults, values as people write them, the instance policy, names on wires."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.locking.levels import LockLevel
from ganeti.model import enums, ipolicy, params, ssconf_keys
from ganeti.model.ipolicy import Shape
from ganeti.model.params import BackendParams, NicParams, NodeParams

maps = st.dictionaries(st.sampled_from("abcd"), st.integers(), max_size=4)


def test_builtin_defaults() -> None:
    def defaults(schema: type[msgspec.Struct]) -> dict[str, Any]:
        return params.check(schema, {}, "x", partial=False)

    assert defaults(BackendParams) == {
        "always_failover": False,
        "auto_balance": True,
        "ha": "tags",
        "ha_attempts": 3,
        "maxmem": 128,
        "minmem": 128,
        "spindle_use": 1,
        "vcpus": 1,
    }
    assert defaults(NicParams) == {"link": "xen-br0", "mode": "bridged", "vlan": ""}
    assert defaults(NodeParams) == {
        "cpu_speed": 1.0,
        "exclusive_storage": False,
        "fence_agent": "",
        "oob_program": "",
        "ovs": False,
        "ovs_link": "",
        "ovs_name": "switch1",
        "spindle_count": 1,
        "ssh_port": 22,
        "watchdog": "",
        "witness": False,
    }


@given(st.lists(maps, max_size=4))
def test_the_most_special_level_wins(levels: list[dict[str, int]]) -> None:
    filled = params.fill(*levels)
    for key in "abcd":
        values = [level[key] for level in levels if key in level]
        assert filled.get(key) == (values[-1] if values else None)


def test_text_becomes_the_type_of_the_parameter() -> None:
    given = {"maxmem": "1.5G", "minmem": "512", "vcpus": "4", "auto_balance": "False"}
    assert params.check(BackendParams, given, "backend") == {
        "maxmem": 1536,
        "minmem": 512,
        "vcpus": 4,
        "auto_balance": False,
    }
    typed = {"maxmem": 1536, "vcpus": 4, "auto_balance": False}
    assert params.check(BackendParams, typed, "backend") == typed


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("True", True), ("FALSE", False), ("", False)],
)
def test_truth_as_ganeti_reads_it(text: str, value: bool) -> None:
    assert params.check(NodeParams, {"ovs": text}, "node") == {"ovs": value}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"vcpu": 1},
            r"unknown backend parameter 'vcpu' \(did you mean vcpus\?\); choose from alw",
        ),
        ({"vcpus": "many"}, "backend parameter: .*vcpus"),
        ({"vcpus": 0}, "backend parameter: .*vcpus"),
        ({"vcpus": None}, "backend parameter: .*vcpus"),
        ({"vcpus": [1]}, "backend parameter: .*vcpus"),
        ({"maxmem": "lots"}, "backend parameter 'maxmem': 'lots' is not a size"),
        ({"maxmem": "1k"}, "backend parameter 'maxmem': '1k' has the unknown unit"),
        ({"maxmem": -4}, "backend parameter: .*maxmem"),
        ({"auto_balance": "perhaps"}, "'auto_balance' must be true or false, not 'perhaps'"),
        ({"auto_balance": 7}, "backend parameter: .*auto_balance"),
        (
            {"ha": "always"},
            "invalid value 'always' for backend parameter 'ha'; choose from tags, none, restart",
        ),
    ],
)
def test_a_wrong_parameter_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.ParameterError, match=words):
        params.check(BackendParams, values, "backend")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"watchdog": "/tmp/dog"},
            "node parameter 'watchdog' must be a file below /dev, not '/tmp/dog'",
        ),
        (
            {"fence_agent": "rm -rf"},
            "node parameter 'fence_agent' must be the name of a fence agent, not 'rm -rf'",
        ),
    ],
)
def test_a_wrong_form_is_explained_in_words(values: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.ParameterError, match=words):
        params.check(NodeParams, values, "node")


@pytest.mark.parametrize("port", [0, 65536, "ssh"])
def test_ports_are_ports(port: Any) -> None:
    with pytest.raises(errors.ParameterError, match="ssh_port"):
        params.check(NodeParams, {"ssh_port": port}, "node")


def test_the_old_spelling_of_memory() -> None:
    assert params.expand_backend({"memory": "1G"}) == {"maxmem": "1G", "minmem": "1G"}
    assert params.expand_backend({"memory": 8, "minmem": 4}) == {"maxmem": 8, "minmem": 4}
    given = {"vcpus": 1}
    assert params.expand_backend(given) == given


def test_asking_for_the_default_takes_a_value_out() -> None:
    assert params.drop_defaults({"a": "default", "b": 0, "c": None}) == {"b": 0, "c": None}


# the instance policy


def shape(**facts: Any) -> Shape:
    good: dict[str, Any] = {
        "memory": 512,
        "vcpus": 1,
        "spindle_use": 1,
        "disks": [1024],
        "nics": 1,
        "templates": ("file",),
    }
    return Shape(**{**good, **facts})


def test_the_builtin_policy_is_the_documented_one() -> None:
    policy = ipolicy.defaults()
    (pair,) = policy["minmax"]
    assert set(policy) == {"minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio"}
    assert set(pair["min"]) == set(pair["max"]) == set(policy["std"]) == set(ipolicy.SPEC_KEYS)
    assert policy["disk-templates"] == sorted(enums.DiskTemplate)
    assert all(pair["min"][key] <= policy["std"][key] <= pair["max"][key] for key in policy["std"])
    assert ipolicy.violations(policy, shape()) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"memory": 64}, "memory-size 64 is not between 128 and 32768"),
        ({"vcpus": 9}, "cpu-count 9 is not between 1 and 8"),
        ({"spindle_use": 13}, "spindle-use 13 is not between 1 and 12"),
        ({"disks": []}, "disk-count 0 is not between 1 and 16"),
        ({"nics": 0}, "nic-count 0 is not between 1 and 8"),
        ({"disks": [1024, 4]}, "disk-size of disk 1 4 is not between 1024 and 1048576"),
    ],
)
def test_each_limit_is_kept(facts: dict[str, Any], words: str) -> None:
    assert ipolicy.violations(ipolicy.defaults(), shape(**facts)) == [words]


def test_a_diskless_instance_needs_no_disks() -> None:
    assert ipolicy.violations(ipolicy.defaults(), shape(disks=[], templates=("diskless",))) == []


def test_a_forbidden_template_is_named_with_the_allowed_ones() -> None:
    policy = {**ipolicy.defaults(), "disk-templates": ["drbd", "plain"]}
    (found,) = ipolicy.violations(policy, shape())
    assert found == "disk template file is not allowed (allowed are drbd, plain)"


def test_one_of_several_ranges_is_enough_and_else_the_nearest_is_told() -> None:
    def pair(low: int, high: int, cpus: int) -> dict[str, dict[str, int]]:
        return {
            "min": {"memory-size": low, "cpu-count": cpus},
            "max": {"memory-size": high, "cpu-count": cpus},
        }

    policy = {"minmax": [pair(0, 100, 2), pair(1000, 2000, 1)]}
    assert ipolicy.violations(policy, shape(memory=1500)) == []
    assert ipolicy.violations(policy, shape(memory=50, vcpus=2)) == []
    assert ipolicy.violations(policy, shape(memory=500)) == [
        "memory-size 500 is not between 1000 and 2000"
    ]
    assert ipolicy.violations({}, shape(memory=10**9)) == []


# names on wires


def test_levels_of_locks_are_in_order() -> None:
    assert [level.label for level in sorted(LockLevel)] == [
        "cluster",
        "instance",
        "disk",
        "nodegroup",
        "node",
        "node-res",
        "network",
    ]


@pytest.mark.parametrize(
    ("enumeration", "values"),
    [
        (enums.HypervisorName, "chroot fake kvm lxc xen-hvm xen-pvm"),
        (enums.DiskTemplate, "blockdev diskless drbd ext file gluster plain rbd sharedfile"),
        (enums.AdminState, "down offline up"),
        (enums.AllocPolicy, "last_resort preferred unallocable"),
        (enums.NicMode, "bridged ext openvswitch routed"),
        (enums.RebootType, "full hard soft"),
        (enums.NodeRole, "C D M O R"),
        (enums.DiskMode, "ro rw"),
        (enums.TagKind, "cluster disk instance network node nodegroup"),
        (
            enums.InstanceStatus,
            "ADMIN_down ADMIN_offline ERROR_down ERROR_nodedown ERROR_nodeoffline ERROR_up"
            " ERROR_wrongnode USER_down running",
        ),
    ],
)
def test_values_are_those_of_the_wire(enumeration: Any, values: str) -> None:
    assert sorted(str(item) for item in enumeration) == values.split()


def test_facts_that_every_node_has_as_files() -> None:
    assert len(ssconf_keys.KEYS) == 36
    assert list(ssconf_keys.KEYS) == sorted(set(ssconf_keys.KEYS))
    assert "hvparams_xen-pvm" in ssconf_keys.KEYS
