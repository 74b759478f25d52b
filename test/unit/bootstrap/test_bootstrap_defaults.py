"""The first configuration of a cluster: builtin values, choices, and choices that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.base import jsonio
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import verify
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base, ipolicy
from ganeti.model.config import Config, ConfigData
from ganeti.model.enums import AllocPolicy, DiskTemplate
from ganeti.storage.registry import default_params


def make(**choices: Any) -> ConfigData:
    settings = InitSettings(cluster_name="cluster.example.com", **choices)
    return defaults.configuration(
        settings,
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.9",
        certificate_digest=":".join(["AA"] * 20),
        now=1234.5,
    )


def check_refused(
    words: str, kind: type[errors.GanetiError] = errors.GanetiError, **choices: Any
) -> None:
    with pytest.raises(kind, match=words):
        make(**choices)


def test_a_new_cluster_has_one_node_in_one_group() -> None:
    data = make()
    (node,) = data.nodes.values()
    (group,) = data.nodegroups.values()
    assert Config(data).master == node
    assert (node.name, node.primary_ip, node.secondary_ip) == (
        "node1.example.com",
        "192.0.2.1",
        "192.0.2.1",
    )
    assert node.master_candidate
    assert (node.offline, node.drained) == (False, False)
    assert (group.name, group.alloc_policy) == ("default", AllocPolicy.PREFERRED)
    assert node.group == group.uuid
    assert data.cluster.candidate_certs == {node.uuid: ":".join(["AA"] * 20)}
    assert {obj.ctime for obj in (data, data.cluster, node, group)} == {1234.5}
    assert len({data.cluster.uuid, node.uuid, group.uuid}) == 3


def test_a_new_configuration_is_sound_and_survives_a_file() -> None:
    data = make()
    assert verify.problems(Config(data)) == []
    wire = jsonio.loads(jsonio.dumps(base.to_wire(data)))
    assert base.from_wire(ConfigData, wire, "config.data") == data


def test_builtin_values_are_complete() -> None:
    cluster = make().cluster
    assert set(cluster.hvparams) == set(HYPERVISORS.names())
    assert set(cluster.diskparams) == set(DiskTemplate)
    assert cluster.beparams["default"] == {
        "always_failover": False,
        "auto_balance": True,
        "ha": "tags",
        "ha_attempts": 3,
        "maxmem": 128,
        "minmem": 128,
        "spindle_use": 1,
        "vcpus": 1,
    }
    assert cluster.nicparams["default"]["mode"] == "bridged"
    assert cluster.ndparams["ssh_port"] == 22
    allowed = list(defaults.DEFAULT_TEMPLATES)
    assert cluster.ipolicy == {**ipolicy.defaults(), "disk-templates": allowed}
    assert cluster.mac_prefix == "aa:00:00"
    assert cluster.primary_ip_family == 2
    assert cluster.candidate_pool_size == 10
    assert set(cluster.enabled_disk_templates) <= set(DiskTemplate)


def test_builtin_values_are_never_shared_between_clusters() -> None:
    first = make().cluster
    first.diskparams["drbd"]["c-max-rate"] = 1
    first.ipolicy["minmax"][0]["max"]["cpu-count"] = 1
    assert make().cluster.diskparams["drbd"]["c-max-rate"] == 61440
    assert make().cluster.ipolicy["minmax"] == ipolicy.defaults()["minmax"]
    assert default_params()["drbd"]["c-max-rate"] == 61440


def test_choices_are_taken() -> None:
    cluster = make(
        enabled_hypervisors=["fake"],
        enabled_disk_templates=["file", "diskless"],
        beparams={"memory": "1G", "vcpus": "2"},
        nicparams={"link": "br1"},
        ndparams={"ssh_port": "2222"},
        diskparams={"drbd": {"c-max-rate": "1000", "metavg": "vg"}},
        mac_prefix="BA:0c:11",
        candidate_pool_size=3,
        primary_ip_version=6,
        master_netdev="eth0",
        master_netmask=24,
        secondary_ip="198.51.100.1",
        uid_pool=[(1000, 1100)],
        modify_etc_hosts=False,
        file_storage_dir="/srv/disks",
        vg_name="",
    ).cluster
    assert cluster.enabled_hypervisors == ("fake",)
    assert cluster.enabled_disk_templates == ("file", "diskless")
    be = cluster.beparams["default"]
    assert (be["minmem"], be["maxmem"], be["vcpus"]) == (1024, 1024, 2)
    assert cluster.nicparams["default"] == {"link": "br1", "mode": "bridged", "vlan": ""}
    assert cluster.ndparams["ssh_port"] == 2222
    assert cluster.diskparams["drbd"]["c-max-rate"] == 1000
    assert cluster.diskparams["drbd"]["metavg"] == "vg"
    assert cluster.diskparams["drbd"]["protocol"] == "C"
    assert cluster.mac_prefix == "ba:0c:11"
    assert (cluster.candidate_pool_size, cluster.primary_ip_family) == (3, 10)
    assert (cluster.master_netdev, cluster.master_netmask) == ("eth0", 24)
    assert cluster.uid_pool == ((1000, 1100),)
    assert cluster.modify_etc_hosts is False
    assert cluster.file_storage_dir == "/srv/disks"
    assert cluster.volume_group_name is None


@pytest.mark.parametrize("name", HYPERVISORS.names())
def test_hypervisor_parameters_are_complete_whatever_was_chosen(name: str) -> None:
    plain = make().cluster.hvparams[name]
    key, value = next(iter(plain.items()))
    assert make(hvparams={name: {key: value}}).cluster.hvparams[name] == plain


@pytest.mark.parametrize(
    "prefix", ["aa:00", "aa:00:00:00", "aa-00-00", "zz:00:00", "a:0:0", "", " aa:00:00", "aa:00:0²"]
)
def test_what_is_no_mac_prefix_is_refused(prefix: str) -> None:
    if prefix:
        check_refused("is not a prefix of MAC addresses", errors.OpPrereqError, mac_prefix=prefix)
    else:
        assert make(mac_prefix=prefix).cluster.mac_prefix == "aa:00:00"


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("minmem 512 is larger than maxmem 256", {"beparams": {"minmem": 512, "maxmem": "256M"}}),
        ("unknown backend parameter 'cpus'", {"beparams": {"cpus": 1}}),
        ("unknown NIC parameter 'bridge'", {"nicparams": {"bridge": "br0"}}),
        ("unknown node parameter 'port'", {"ndparams": {"port": 1}}),
        ("unknown disk template 'floppy'", {"enabled_disk_templates": ["floppy"]}),
        ("unknown disk template 'floppy' in disk", {"diskparams": {"floppy": {}}}),
        ("unknown parameter 'rate' of disk template drbd", {"diskparams": {"drbd": {"rate": 1}}}),
        (r"stripes.* of .*plain: ", {"diskparams": {"plain": {"stripes": "many"}}}),
        ("multicast", {"mac_prefix": "01:00:5e"}),
        ("unknown hypervisor 'vmware'", {"enabled_hypervisors": ["vmware"]}),
        ("unknown hypervisor 'vmware'", {"hvparams": {"vmware": {}}}),
        ("unknown hypervisor fake parameter 'x'", {"hvparams": {"fake": {"x": 1}}}),
    ],
)
def test_choices_that_make_no_sense_are_refused_in_words(
    words: str, choices: dict[str, Any]
) -> None:
    with pytest.raises(errors.GanetiError, match=words):
        make(**choices)


@pytest.mark.parametrize(
    ("choices", "allowed"),
    [
        ({}, ["file", "sharedfile", "diskless"]),
        ({"enabled_disk_templates": ["file", "diskless"]}, ["file", "diskless"]),
        (
            {
                "enabled_disk_templates": ["file", "diskless"],
                "ipolicy": {"disk-templates": ["file"]},
            },
            ["file"],
        ),
    ],
)
def test_the_policy_allows_the_enabled_templates(
    choices: dict[str, Any], allowed: list[str]
) -> None:
    assert make(**choices).cluster.ipolicy["disk-templates"] == allowed
