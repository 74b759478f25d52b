"""What follows from a configuration: ssconf files, defects, claims."""

from __future__ import annotations

import re
import threading

import pytest
from config_samples import cluster, config, disk, instance, node

from ganeti import constants, errors
from ganeti.config import ssconf
from ganeti.config.job_claims import JobClaims
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.group import NodeGroup
from ganeti.model.nic import Nic
from ganeti.model.repair_tags import PREFIX


def volume(name: str, uuid: str = "") -> Disk:
    return disk(
        uuid or name,
        "x",
        dev_type=DiskTemplate.PLAIN,
        nodes=(),
        children=(),
        logical_id=("xenvg", uuid or "data"),
    )


SSCONF_KEYS = {
    "cluster_name",
    "cluster_tags",
    "enabled_user_shutdown",
    "file_storage_dir",
    "gluster_storage_dir",
    "hvparams_fake",
    "ha_instances",
    "hypervisor_list",
    "instance_list",
    "maintain_node_health",
    "master_candidates",
    "master_candidates_certs",
    "master_candidates_ips",
    "master_ip",
    "master_netdev",
    "master_netmask",
    "master_node",
    "networks",
    "node_list",
    "node_primary_ips",
    "node_secondary_ips",
    "node_vm_capable",
    "nodegroups",
    "offline_nodes",
    "online_nodes",
    "primary_ip_family",
    "recovery_paused_until",
    "release_version",
    "shared_file_storage_dir",
    "ssh_ports",
    "uid_pool",
}


class TestSsconf:
    def test_every_documented_file_is_there(self):
        assert set(ssconf.values(config())) == SSCONF_KEYS

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("cluster_name", "cluster.example.com"),
            ("cluster_tags", "prod\nweb"),
            ("enabled_user_shutdown", "False"),
            ("ha_instances", ""),
            ("hvparams_fake", "migration_mode=live"),
            ("hypervisor_list", "fake"),
            ("instance_list", "web1.example.com"),
            ("master_candidates", "node1.example.com"),
            ("master_candidates_certs", "node-1=ab:cd"),
            ("master_candidates_ips", "192.0.2.1"),
            ("master_netmask", "24"),
            ("master_node", "node1.example.com"),
            ("networks", "net-1 lan"),
            ("node_list", "node1.example.com\nnode2.example.com\nnode3.example.com"),
            (
                "node_primary_ips",
                "node1.example.com 192.0.2.1\nnode2.example.com 192.0.2.2\n"
                "node3.example.com 192.0.2.3",
            ),
            (
                "node_secondary_ips",
                "node1.example.com 198.51.100.1\nnode2.example.com"
                " 198.51.100.2\nnode3.example.com 198.51.100.3",
            ),
            (
                "node_vm_capable",
                "node1.example.com=True\nnode2.example.com=True\nnode3.example.com=True",
            ),
            ("nodegroups", "group-1 default"),
            ("offline_nodes", "node3.example.com"),
            ("online_nodes", "node1.example.com\nnode2.example.com"),
            ("primary_ip_family", "2"),
            ("recovery_paused_until", ""),
            ("release_version", constants.RELEASE_VERSION),
            ("ssh_ports", "node1.example.com=22\nnode2.example.com=22\nnode3.example.com=22"),
            ("uid_pool", ""),
        ],
    )
    def test_content(self, key, value):
        assert ssconf.values(config())[key] == value

    def test_parameters_have_python_words(self):
        params = {"kvm": {"acpi": True, "kernel_path": "", "serial_speed": 38400}}
        found = ssconf.values(config(cluster=cluster(hvparams=params)))
        assert found["hvparams_kvm"] == "acpi=True\nkernel_path=\nserial_speed=38400"

    def test_ports_follow_groups_and_nodes(self):
        group = NodeGroup(uuid="group-1", name="default", ndparams={"ssh_port": 2222})
        nodes = {
            n.uuid: n
            for n in (node(1, master_candidate=True), node(2, ndparams={"ssh_port": 2200}))
        }
        found = ssconf.values(config(nodegroups={"group-1": group}, nodes=nodes))
        assert found["ssh_ports"] == "node1.example.com=2222\nnode2.example.com=2200"

    @pytest.mark.parametrize(
        "change",
        [
            {"cluster": cluster(cluster_name="other")},
            {"nodes": {"node-1": node(1, offline=True)}},
            {"nodegroups": {"group-1": NodeGroup(uuid="group-1", name="other")}},
            {"networks": {}},
            {"instances": {}},
            {"instances": {"inst-1": instance(1, name="other")}},
        ],
    )
    def test_whatever_changes_a_file_is_noticed(self, change):
        before = config()
        after = Config(base.replace(before.data, **change))
        assert ssconf.values(before) != ssconf.values(after)
        assert ssconf.affects(before, after)

    @pytest.mark.parametrize(
        "change",
        [
            {"instances": {"inst-1": instance(1, beparams={"ha": "failover"})}},
            {"instances": {"inst-1": instance(1, tags=(f"{PREFIX}failover",))}},
        ],
    )
    def test_what_decides_who_is_ended_without_a_lease_is_noticed(self, change):
        before = config(instances={"inst-1": instance(1)})
        after = Config(base.replace(before.data, **change))
        assert ssconf.values(before)["ha_instances"] == ""
        assert ssconf.values(after)["ha_instances"] == "web1.example.com"
        assert ssconf.affects(before, after)

    def test_disks_decide_who_is_ended_without_a_lease(self):
        before = config(
            instances={"inst-1": instance(1, beparams={"ha": "failover"}, disks=("disk-1",))}
        )
        shared = disk("disk-1", "web1.example.com", dev_type=DiskTemplate.SHAREDFILE)
        after = Config(base.replace(before.data, disks={"disk-1": shared}))
        assert ssconf.values(before)["ha_instances"] == ""
        assert ssconf.values(after)["ha_instances"] == "web1.example.com"
        assert ssconf.affects(before, after)

    def test_what_changes_no_file_is_cheap(self):
        before = config()
        same_names = {"inst-1": instance(1, tags=("new",), disks=("disk-1",))}
        larger = {"disk-1": disk("disk-1", "web1.example.com", size=1024)}
        after = Config(base.replace(before.data, instances=same_names, disks=larger))
        assert ssconf.values(before) == ssconf.values(after)
        assert not ssconf.affects(before, after)


class TestJobClaims:
    def test_a_claim_keeps_others_away_until_its_job_ends(self):
        claims = JobClaims()
        claims.claim("IP address", "10.0.0.5", 7)
        claims.claim("IP address", "10.0.0.5", 7)
        claims.claim("TCP port", "10.0.0.5", 8)  # another kind
        with pytest.raises(errors.ReservationError, match=r"10\.0\.0\.5 is being used by job 7"):
            claims.claim("IP address", "10.0.0.5", 8)
        claims.release(7)
        claims.release(7)
        claims.claim("IP address", "10.0.0.5", 8)

    @pytest.mark.parametrize("wanted", ["auto", "generate"])
    def test_a_mac_address_is_made(self, wanted):
        mac = JobClaims().claim_mac(wanted, config(), "aa:00:42", 1)
        assert re.fullmatch(r"aa:00:42(:[0-9a-f]{2}){3}", mac)

    def test_a_given_mac_address_must_be_free(self):
        claims = JobClaims()
        assert claims.claim_mac("aa:00:00:00:00:77", config(), "aa:00:00", 1) == "aa:00:00:00:00:77"
        with pytest.raises(errors.ReservationError, match="used by job 1"):
            claims.claim_mac("aa:00:00:00:00:77", config(), "aa:00:00", 2)
        with pytest.raises(errors.ReservationError, match="used in the cluster"):
            claims.claim_mac("aa:00:00:00:00:01", config(), "aa:00:00", 2)

    def test_no_free_address_is_an_error(self, monkeypatch):
        monkeypatch.setattr("secrets.token_bytes", lambda count: b"\1" * count)
        claims = JobClaims()
        assert claims.claim_mac("auto", config(), "aa:00:42", 1) == "aa:00:42:01:01:01"
        with pytest.raises(errors.ReservationError, match="no free MAC address"):
            claims.claim_mac("auto", config(), "aa:00:42", 1)
        used = {"inst-9": instance(9, nics=(Nic(uuid="n", mac="aa:00:42:01:01:01"),))}
        with pytest.raises(errors.ReservationError, match="no free MAC address"):
            JobClaims().claim_mac("auto", config(instances=used), "aa:00:42", 1)

    def test_jobs_never_share(self):
        claims = JobClaims()
        got: list[tuple[int, str]] = []

        def take(job: int) -> None:
            for number in range(50):
                try:
                    claims.claim("name", str(number), job)
                except errors.ReservationError:
                    continue
                got.append((job, str(number)))

        threads = [threading.Thread(target=take, args=(job,)) for job in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(int(name) for _job, name in got) == list(range(50))
