"""What changes of the cluster's settings come to."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import change as change_instance
from op_samples import config, node, with_cluster, with_group, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.nic import Nic
from ganeti.opcodes import wire
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.ops.planning import cluster_settings, policy

REFUSED = (errors.OpPrereqError, errors.ParameterError)


def decide(of: Config, **change: Any) -> cluster_settings.Decision:
    return cluster_settings.decide(of, wire.decode(OpClusterSetParams, change))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"candidate_pool_size": 3}, {"candidate_pool_size": 3}),
        ({"candidate_pool_size": 10}, {}),
        ({"mac_prefix": "02:AA:00"}, {"mac_prefix": "02:aa:00"}),
        (
            {"uid_pool": [[5, 9]], "add_uids": [[20, 20]], "remove_uids": [[6, 7]]},
            {"uid_pool": ((5, 5), (8, 9), (20, 20))},
        ),
        ({"hidden_os": [["add", "a"], ["add", "b"], ["remove", "a"]]}, {"hidden_os": ("b",)}),
        ({"compression_tools": ["gzip", "lzop"]}, {"compression_tools": ("gzip", "lzop")}),
        ({"reserved_lvs": ["xenvg/.*"]}, {"reserved_lvs": ("xenvg/.*",)}),
        ({"vg_name": ""}, {}),
        ({"vg_name": "xenvg"}, {"volume_group_name": "xenvg"}),
        ({"file_storage_dir": "/srv//disks/"}, {"file_storage_dir": "/srv/disks"}),
        ({"install_image": "https://example.com/x"}, {"install_image": "https://example.com/x"}),
        ({"osparams": {"noop": {"a": "1"}}}, {"osparams": {"noop": {"a": "1"}}}),
        ({"default_iallocator": "most-free"}, {"default_iallocator": "most-free"}),
        (
            {"default_iallocator_params": {"a": 1, "b": "default"}},
            {"default_iallocator_params": {"a": 1}},
        ),
        ({"uid_pool": [[5, 9]]}, {"uid_pool": ((5, 9),)}),
        ({"add_uids": [[5, 9]]}, {"uid_pool": ((5, 9),)}),
        ({"master_netdev": "br0"}, {"master_netdev": "br0"}),
        ({"master_netmask": 1}, {"master_netmask": 1}),
        ({"drbd_helper": "/bin/true"}, {"drbd_usermode_helper": "/bin/true"}),
        (
            {"hv_state": {"fake": {"mem_node": 512}}},
            {"hv_state_static": {"fake": {"mem_node": 512}}},
        ),
    ],
)
def test_values(change: dict[str, Any], expected: dict[str, Any]) -> None:
    assert decide(config(), **change).values == expected


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"enabled_hypervisors": []}, "at least one"),
        ({"enabled_hypervisors": ["vserver"]}, "vserver"),
        ({"enabled_disk_templates": ["floppy"]}, "floppy"),
        ({"hvparams": {"zen": {}}}, "zen"),
        ({"hvparams": {"fake": {"colour": 1}}}, "colour"),
        ({"os_hvp": {"noop": {"fake": {"migration_mode": "live"}}}}, "whole cluster"),
        ({"os_hvp": {"noop": {"fake": 3}}}, "mapping"),
        ({"nicparams": {"mac": "auto"}}, "mac"),
        ({"nicparams": {"mode": "pool"}}, "pool"),
        ({"master_netmask": 0}, "netmask"),
        ({"master_netmask": 33}, "33"),
        ({"master_netdev": "a/b"}, "a/b"),
        ({"mac_prefix": "01:00:00"}, "multicast"),
        ({"drbd_helper": "true"}, "absolute"),
        ({"file_storage_dir": ""}, "--file-storage-dir"),
        ({"file_storage_dir": "/a/../b"}, ".."),
        ({"file_storage_dir": "srv/disks"}, "absolute"),
        ({"enabled_disk_templates": ["plain"]}, "--vg-name"),
        ({"enabled_disk_templates": ["drbd"], "vg_name": "xenvg"}, "--drbd-usermode-helper"),
        ({"enabled_data_collectors": {"x": True}}, "unknown data collector 'x'"),
        ({"install_image": "image"}, "URL"),
        ({"compression_tools": ["lzop"]}, "gzip"),
        ({"compression_tools": ["gzip", "rm -rf"]}, "rm -rf"),
        ({"reserved_lvs": ["("]}, "regular expression"),
        ({"default_iallocator": "../x"}, "allocator"),
        ({"enabled_data_collectors": {"lvs": True}}, "did you mean lv"),
        ({"data_collector_interval": {"lv": 0}}, "positive"),
        ({"remove_uids": [[1, 2]]}, "not in the pool"),
        ({"hidden_os": [["attach", "a"]]}, "attach"),
    ],
)
def test_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(REFUSED) as caught:
        decide(config(), **change)
    assert text in errors.text(caught.value)


def test_what_instances_use_cannot_be_disabled() -> None:
    of = with_instance(config(node(2)), "web1", "node-2")
    with pytest.raises(errors.OpPrereqError, match="1 instances"):
        decide(of, enabled_hypervisors=["kvm"])
    with pytest.raises(errors.OpPrereqError, match="template file"):
        decide(of, enabled_disk_templates=["diskless"])
    assert decide(of, enabled_disk_templates=["file"]).values
    with pytest.raises(errors.OpPrereqError, match="without one"):
        decide(of, nicparams={"mode": "routed", "link": "100"})
    mirrored = with_instance(config(node(2)), "web1", "node-2", "node-3")
    with pytest.raises(errors.OpPrereqError, match="instances have disks"):
        decide(mirrored, vg_name="")


def test_each_change_of_parameters_leaves_the_others() -> None:
    before = config().cluster
    after = decide(
        config(),
        beparams={"maxmem": 1024},
        nicparams={"vlan": "7"},
        ndparams={"spindle_count": 3},
        diskparams={"drbd": {"resync-rate": 100}},
        disk_state={"plain": {"xenvg": {"disk_reserved": 5}}},
    ).values
    assert after["beparams"] == {"default": {**before.beparams["default"], "maxmem": 1024}}
    assert after["nicparams"] == {"default": {**before.nicparams["default"], "vlan": "7"}}
    assert after["ndparams"] == {**before.ndparams, "spindle_count": 3}
    drbd = {**before.diskparams["drbd"], "resync-rate": 100}
    assert after["diskparams"] == {**before.diskparams, "drbd": drbd}
    assert after["disk_state_static"]["plain"]["xenvg"]["disk_reserved"] == 5


def test_a_hypervisor_that_is_enabled_gets_its_parameters() -> None:
    before = config(hvparams={"fake": {"migration_mode": "live"}})
    after = decide(before, enabled_hypervisors=["fake", "kvm"]).values
    assert after["enabled_hypervisors"] == ("fake", "kvm")
    assert after["hvparams"]["fake"] == {"migration_mode": "live"}
    assert after["hvparams"]["kvm"]["acpi"] is True


def test_parameters_of_a_hypervisor_are_kept_while_it_is_disabled() -> None:
    before = config(enabled_hypervisors=("fake", "kvm"), hvparams={"kvm": {"acpi": False}})
    after = decide(before, enabled_hypervisors=["fake"]).values
    assert after["enabled_hypervisors"] == ("fake",)
    assert after["hvparams"]["kvm"] == {"acpi": False}


def test_longest_netmask_of_ipv6() -> None:
    of = config(primary_ip_family=10)
    assert decide(of, master_netmask=128).values == {"master_netmask": 128}
    with pytest.raises(errors.OpPrereqError, match="not between 1 and 128"):
        decide(of, master_netmask=129)


def test_a_setting_of_a_data_collector_leaves_the_others() -> None:
    lv = {"active": True, "interval": 7_000_000}
    of = config(data_collectors={"lv": lv})
    off = decide(of, enabled_data_collectors={"lv": False}).values["data_collectors"]
    assert off == {"lv": {**lv, "active": False}}
    quick = decide(of, data_collector_interval={"drbd": 1}).values["data_collectors"]
    assert quick == {"lv": lv, "drbd": {"active": True, "interval": 1}}
    new = decide(of, enabled_data_collectors={"drbd": False}).values["data_collectors"]
    assert new == {"lv": lv, "drbd": {"active": False, "interval": 5_000_000}}


def _with_nic(nic: Nic) -> Config:
    return change_instance(with_instance(config(node(2)), "web1", "node-2"), nics=(nic,))


@pytest.mark.parametrize(
    "nic",
    [
        {"ip": "192.0.2.7"},
        {"network": "net-1"},
        {"nicparams": {"mode": "bridged"}},
    ],
)
def test_nics_that_work_when_the_default_becomes_routed(nic: dict[str, Any]) -> None:
    of = _with_nic(Nic(uuid="nic", mac="aa:00:00:00:00:01", **nic))
    after = decide(of, nicparams={"mode": "routed", "link": "100"}).values
    assert after["nicparams"]["default"]["mode"] == "routed"


def test_a_cluster_with_routed_nics_can_get_another_link() -> None:
    of = with_cluster(
        _with_nic(Nic(uuid="nic", mac="aa:00:00:00:00:01")),
        nicparams={"default": {"mode": "routed", "link": "100", "vlan": ""}},
    )
    after = decide(of, nicparams={"link": "200"}).values
    assert after["nicparams"]["default"]["link"] == "200"


def test_what_mirrored_disks_need_cannot_be_removed() -> None:
    mirrored = with_cluster(
        with_instance(config(node(2), node(3)), "web1", "node-2", "node-3"),
        volume_group_name="xenvg",
        drbd_usermode_helper="/bin/true",
    )
    with pytest.raises(
        errors.OpPrereqError, match="user-mode helper of DRBD cannot be removed: 1 instances"
    ):
        decide(mirrored, drbd_helper="")
    assert decide(mirrored, drbd_helper="/bin/false", vg_name="other").values == {
        "drbd_usermode_helper": "/bin/false",
        "volume_group_name": "other",
    }


def test_diskless_instances_use_their_template() -> None:
    of = with_instance(config(node(2)), "web1", "node-2")
    of = with_cluster(change_instance(of, disks=()), enabled_disk_templates=("diskless", "file"))
    with pytest.raises(errors.OpPrereqError, match="template diskless cannot be disabled, 1 "):
        decide(of, enabled_disk_templates=["file"])
    assert decide(of, enabled_disk_templates=["diskless"]).values["enabled_disk_templates"] == (
        "diskless",
    )


def test_a_change_of_lists_that_is_none_is_only_noted() -> None:
    decision = decide(config(), hidden_os=[["remove", "a"]], blacklisted_os=[["remove", "b"]])
    assert decision.values == {}
    assert decision.notes == ("OS a is not hidden", "OS b is not blacklisted")


def test_os_parameters_are_public_or_private() -> None:
    with pytest.raises(errors.OpPrereqError, match="public and private"):
        decide(
            config(), osparams={"noop": {"a": "1"}}, osparams_private_cluster={"noop": {"a": "2"}}
        )
    of = config(osparams={"noop": {"a": "1"}})
    private = {"noop": {"b": "2"}}
    assert decide(of, osparams_private_cluster=private).values == {
        "osparams_private_cluster": private
    }
    assert decide(of, osparams={"noop": {"a": "default"}}).values == {"osparams": {}}


def test_overrides_of_an_os_can_be_removed() -> None:
    of = config(os_hvp={"noop": {"kvm": {"acpi": False, "boot_order": "cdrom"}}})
    reset = decide(of, os_hvp={"noop": {"kvm": {"acpi": "default"}}}).values
    assert reset == {"os_hvp": {"noop": {"kvm": {"boot_order": "cdrom"}}}}
    for nothing in (None, False):
        assert decide(of, os_hvp={"noop": {"kvm": nothing}}).values == {"os_hvp": {}}
    with pytest.raises(errors.OpPrereqError, match="must be a mapping"):
        decide(of, os_hvp={"noop": {"kvm": True}})


def test_policies_that_allow_no_enabled_template_are_noted() -> None:
    of = with_group(config(), "b", ipolicy={"disk-templates": ["plain"]})
    notes = decide(of, enabled_disk_templates=["file"]).notes
    assert ["of node group b allows no enabled" in note for note in notes] == [True]


def test_violations_of_a_new_policy_are_found_once() -> None:
    of = with_instance(config(node(2)), "web1", "node-2")
    change = {"ipolicy": {"minmax": [{"max": {"disk-size": 2000}}]}}
    decision = decide(of, **change)
    after = of.apply([], [], base.replace(of.cluster, **decision.values), mtime=3.0)
    [text] = policy.find_new_violations(of, after)
    assert "web1" in text
    assert "2048" in text
    assert policy.find_new_violations(after, after) == []


def test_settings_without_effect_say_so() -> None:
    assert decide(config(), max_running_jobs=3, maintain_node_health=False).notes == ()
    [health] = decide(config(), max_tracked_jobs=3, maintain_node_health=True).notes
    assert "can ask ganeti-confd" in health


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"enabled_disk_templates": ["file", "sharedfile"]}, ["file", "sharedfile"]),
        (
            {
                "enabled_disk_templates": ["file", "sharedfile"],
                "ipolicy": {"disk-templates": ["file"]},
            },
            ["file"],
        ),
        ({"enabled_disk_templates": ["file", "diskless"]}, ["file"]),
    ],
)
def test_the_policy_allows_templates_from_when_they_are_enabled(
    change: dict[str, Any], allowed: list[str]
) -> None:
    before = config()
    policy = {**before.cluster.ipolicy, "disk-templates": ["file"]}
    cluster = base.replace(
        before.cluster,
        enabled_disk_templates=("file", "diskless"),
        ipolicy=policy,
        shared_file_storage_dir="/srv/shared",
    )
    found = decide(Config(base.replace(before.data, cluster=cluster)), **change).values
    assert found.get("ipolicy", policy)["disk-templates"] == allowed
