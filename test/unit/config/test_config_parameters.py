"""What clusters, groups and nodes accept as parameters."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.config import parameters, policy_parameters
from ganeti.model import ipolicy

REFUSED = (errors.OpPrereqError, errors.ParameterError)


def test_backend_is_complete_and_resets_to_builtin_values() -> None:
    full = parameters.backend({}, {"memory": "1G", "vcpus": "2"})
    assert (full["minmem"], full["maxmem"], full["vcpus"]) == (1024, 1024, 2)
    again = parameters.backend(full, {"vcpus": "default", "minmem": 512})
    assert (again["minmem"], again["maxmem"], again["vcpus"]) == (512, 1024, 1)


@pytest.mark.parametrize(
    "change", [{"memroy": 1}, {"vcpus": 0}, {"minmem": 256}, {"auto_balance": "perhaps"}]
)
def test_backend_refuses(change: dict[str, Any]) -> None:
    with pytest.raises(REFUSED) as caught:
        parameters.backend({}, change)
    assert next(iter(change)) in errors.text(caught.value)


@pytest.mark.parametrize("vlan", ["", "10", ".10", ":10:20", ".10:20"])
def test_nic_vlans(vlan: str) -> None:
    assert parameters.nic({}, {"vlan": vlan})["vlan"] == vlan


@pytest.mark.parametrize("change", [{"mode": "pool"}, {"link": ""}, {"vlan": "x"}, {"mac": "auto"}])
def test_nic_refuses(change: dict[str, Any]) -> None:
    with pytest.raises(REFUSED):
        parameters.nic({}, change)


def test_node_parameters_of_a_group_are_not_for_a_node() -> None:
    assert parameters.node({}, {"exclusive_storage": "true"}) == {"exclusive_storage": True}
    with pytest.raises(errors.OpPrereqError, match="exclusive_storage"):
        parameters.node({}, {"exclusive_storage": "true"}, single=True)
    assert parameters.node({"spindle_count": 4}, {"spindle_count": "default"}) == {}


def test_disk_parameters() -> None:
    assert parameters.disk({}, {"drbd": {"dynamic-resync": "true"}, "plain": {"stripes": "3"}}) == {
        "drbd": {"dynamic-resync": True},
        "plain": {"stripes": 3},
    }
    assert parameters.disk({"plain": {"stripes": 3}}, {"plain": {"stripes": "default"}}) == {}
    assert parameters.cluster_disk({"plain": {"stripes": 3}}, {})["plain"] == {"stripes": 3}
    for wrong in ({"plane": {}}, {"plain": {"strips": 1}}, {"plain": {"stripes": "many"}}):
        with pytest.raises(REFUSED):
            parameters.disk({}, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["aa:00", "zz:00:00", "aa-00-00", "01:00:00", "aa:00:00:00"])
def test_mac_prefixes_that_are_none(text: str) -> None:
    with pytest.raises(errors.OpPrereqError):
        parameters.mac_prefix(text)
    assert parameters.mac_prefix("AA:0B:00") == "aa:0b:00"


class TestPolicy:
    def test_given_bounds_replace_and_inherit_the_other_sizes(self) -> None:
        policy = policy_parameters.cluster_policy(
            ipolicy.defaults(), {"minmax": [{"max": {"cpu-count": 64}}], "vcpu-ratio": "2"}
        )
        assert policy["minmax"][0]["max"]["cpu-count"] == 64
        assert policy["minmax"][0]["max"]["memory-size"] == 32768
        assert policy["vcpu-ratio"] == 2.0

    def test_reset_gives_the_builtin_value(self) -> None:
        policy = {**ipolicy.defaults(), "vcpu-ratio": 9.0}
        assert (
            policy_parameters.cluster_policy(policy, {"vcpu-ratio": "default"})["vcpu-ratio"] == 4.0
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"minmax": []},
            {"minmax": [{"least": {}}]},
            {"minmax": [{"min": {"cpus": 1}}]},
            {"minmax": [{"min": {"cpu-count": -1}}]},
            {"minmax": [{"min": {"cpu-count": 9}, "max": {"cpu-count": 8}}]},
            {"std": {"memory-size": 1}},
            {"disk-templates": []},
            {"disk-templates": ["tape"]},
            {"vcpu-ratio": "many"},
            {"vcpu-ratio": 0},
            {"ratio": 1},
        ],
    )
    def test_refused(self, change: dict[str, Any]) -> None:
        with pytest.raises(errors.OpPrereqError):
            policy_parameters.cluster_policy(ipolicy.defaults(), change)

    def test_a_group_keeps_only_its_own_keys(self) -> None:
        cluster = ipolicy.defaults()
        own = policy_parameters.group_policy(cluster, {}, {"vcpu-ratio": 2})
        assert own == {"vcpu-ratio": 2.0}
        assert policy_parameters.group_policy(cluster, own, {"vcpu-ratio": "default"}) == {}
        # its bounds need not hold the standard size of the cluster
        own = policy_parameters.group_policy(
            cluster, {}, {"minmax": [{"min": {"memory-size": 4096}}]}
        )
        assert own["minmax"][0]["min"]["memory-size"] == 4096
        with pytest.raises(errors.OpPrereqError, match="standard"):
            policy_parameters.group_policy(cluster, {}, {"std": {}})


def test_states() -> None:
    state = parameters.hv_state(None, {"fake": {"mem_node": "100", "cpu_total": 4}})
    assert state == {"fake": {"mem_node": 100, "cpu_total": 4}}
    assert parameters.hv_state(state, {"fake": {"mem_node": "default"}}) == {
        "fake": {"cpu_total": 4}
    }
    assert parameters.disk_state(None, {"plain": {"x": {"disk_total": "9"}}}) == {
        "plain": {"x": {"disk_total": 9}}
    }
    with pytest.raises(errors.ParameterError, match="only volume groups have one, as plain/NAME"):
        parameters.disk_state(None, {"file": {"x": {"disk_total": "9"}}})
    with pytest.raises(errors.ParameterError, match=r"'disk_reserved' in .* is -1"):
        parameters.disk_state(None, {"plain": {"x": {"disk_reserved": -1}}})
    for wrong in ({"zen": {}}, {"fake": {"memory": 1}}, {"fake": 3}, {"fake": {"mem_hv": "x"}}):
        with pytest.raises(errors.ParameterError):
            parameters.hv_state(None, wrong)
