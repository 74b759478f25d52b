"""Disks of instances: activate, grow, add, remove, detach and attach; other settings."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from local_cluster import Cluster

from ganeti.luxi.client import Client

NAME = "web1.example.com"


@pytest.fixture(scope="module", autouse=True)
def web1(cluster: Cluster) -> Iterator[None]:
    """A stopped instance with a disk of 8 MiB, and room for more by policy."""
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs"
        " min:disk-size=1,nic-count=0/max:disk-size=1000000,memory-size=1000000"
    )
    assert cluster.add(NAME, "--no-start").code == 0
    yield
    cluster.gnt("instance shutdown", NAME)
    cluster.ok("instance remove -f", NAME)
    assert cluster.disks() == []
    cluster.ok("cluster verify")


def sizes(cluster: Cluster, name: str = NAME) -> str:
    return cluster.cells("instance list -o disk.sizes", name)[0][0]


def links(cluster: Cluster) -> list[str]:
    where = cluster.paths("node2").instance_disks
    return sorted(path.name for path in where.iterdir()) if where.exists() else []


def test_activate_and_deactivate(cluster: Cluster) -> None:
    shown = cluster.ok("instance activate-disks", NAME)
    node, disk, path = shown.lines[-1].split(":")
    assert (node, disk) == ("node2.example.com", "disk/0")
    assert path.endswith(".file.disk0")
    assert links(cluster) == [f"{NAME}:0"]
    assert cluster.cells("instance list -o disks_active", NAME) == [["Y"]]
    cluster.ok("instance deactivate-disks", NAME)
    assert links(cluster) == []
    assert cluster.cells("instance list -o disks_active", NAME) == [["N"]]


def test_disks_of_a_running_instance_stay(cluster: Cluster) -> None:
    cluster.ok("instance startup", NAME)
    refused = cluster.gnt("instance deactivate-disks", NAME)
    assert refused.code == 1
    assert "is running; stop it" in refused.err
    assert links(cluster) == [f"{NAME}:0"]
    cluster.ok("instance shutdown", NAME)


def test_grow(cluster: Cluster) -> None:
    dry = cluster.ok("instance grow-disk --dry-run", NAME, "0", "8m")
    assert "nothing was changed" in dry.out
    assert sizes(cluster) == "8"
    cluster.ok("instance grow-disk", NAME, "0", "8m")
    assert sizes(cluster) == "16"
    cluster.ok("instance grow-disk --absolute", NAME, "0", "24m")
    assert sizes(cluster) == "24"
    (path,) = cluster.disks()
    assert (cluster.directory / path).stat().st_size == 24 << 20
    assert links(cluster) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("1", "8m"), "has no disk 1; it has disks 0 to 0"),
        (("--absolute", "0", "8m"), "disks cannot shrink"),
        (("0", "900t"), "not between"),
        (("--ignore-ipolicy", "0", "900t"), "not enough space"),
    ],
)
def test_growth_that_cannot_be(cluster: Cluster, words: tuple[str, ...], text: str) -> None:
    options = [word for word in words if word.startswith("--")]
    rest = [word for word in words if not word.startswith("--")]
    before = cluster.config()
    ran = cluster.gnt("instance grow-disk", *options, NAME, *rest)
    assert ran.code == 1
    assert text in ran.err
    assert cluster.config() == before


def test_add_and_remove_disks(cluster: Cluster) -> None:
    ran = cluster.ok("instance modify --disk add:size=12m,name=data", NAME)
    assert "disk/1 -> add:size=12,mode=rw" in ran.out
    cluster.ok("instance modify --disk 0:add,size=4m", NAME)
    assert sizes(cluster) == "4,24,12"
    assert len(cluster.disks()) == 3
    cluster.ok("instance modify --disk 1:mode=ro --disk data:name=store", NAME)
    info = cluster.ok("instance info", NAME).out
    assert "mode: ro" in info
    assert "store" in info
    cluster.ok("instance modify --disk 0:remove --disk store:remove", NAME)
    assert sizes(cluster) == "24"
    assert len(cluster.disks()) == 1
    cluster.ok("cluster verify")


def test_a_failed_addition_leaves_nothing(cluster: Cluster) -> None:
    before = cluster.disks()
    ran = cluster.gnt(
        "instance modify --ignore-ipolicy --disk add:size=4m --disk add:size=900t", NAME
    )
    assert ran.code == 1
    assert "not enough space" in ran.err
    assert cluster.disks() == before
    assert sizes(cluster) == "24"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--disk 7:remove", "there is no disk 7"),
        ("--disk nosuch:remove", "no disk with the name or uuid 'nosuch'"),
        ("--disk 0:size=99m", "cannot be changed (see gnt-instance grow-disk)"),
        ("--disk 5:add,size=4m", "cannot be number 5"),
        ("--disk add:size=4m,colour=red", "unknown key colour"),
        ("--disk attach:uuid=nosuch", "is not known"),
        ("--disk attach,name=nosuch", "is not known"),
        ("--disk attach:uuid=nosuch,size=4m", "by either uuid= or name=, not by size, uuid"),
        ("--disk attach", "say which disk to attach"),
        ("--disk nosuch:attach,name=x", "a place by its index"),
        ("--disk 5:detach", "there is no disk 5"),
        ("--disk detach:force=1", "takes no other keys"),
        ("--disk add:size=4m,dev_type=plain", "plain is not enabled"),
        ("--disk add:size=4m,dev_type=drbd", "drbd is not enabled"),
        ("--disk 0:detach --disk attach:name=nosuch", "is not known"),
        ("--net 0:mac=aa:bb", "there is no NIC 0"),
        ("--net add:mac=aa:bb", "is not a MAC address"),
        ("--net add:mode=routed", "needs an IP address"),
        ("--net add:network=nosuch", "network 'nosuch' is not known"),
        ("-B minmem=9000", "larger than maxmem"),
        ("-B colour=red", "unknown backend parameter"),
        ("-H migration_mode=live", "parameters of the whole cluster"),
        ("-O colour=red", "colour"),
        ("-m 128m", "is not running"),
        ("--new-primary node3", "has no copy of the disks"),
    ],
)
def test_refused(cluster: Cluster, words: str, text: str) -> None:
    before = cluster.config()
    ran = cluster.gnt(f"instance modify {words}", NAME)
    assert ran.code == 1
    assert text in ran.err
    assert cluster.config() == before


def test_detach_and_attach_to_another(cluster: Cluster) -> None:
    assert cluster.add("web2.example.com", "--no-start").code == 0
    cluster.ok("instance modify --disk add:size=4m,name=moved", NAME)
    cluster.ok("instance modify --disk moved:detach", NAME)
    place = cluster.cells("disk list -o path", "moved")
    assert sizes(cluster) == "24"
    assert len(cluster.disks()) == 3
    cluster.ok("instance rename", NAME, "web9.example.com")
    cluster.ok("instance modify --disk attach:name=moved", "web2")
    cluster.ok("instance rename", "web9", NAME)
    assert sizes(cluster, "web2") == "8,4"
    cluster.ok("cluster verify")
    # neither attaching nor the new names of others move data
    assert cluster.cells("disk list -o path", "moved") == place
    assert sum("web2.example.com" in path for path in cluster.disks()) == 1
    taken = cluster.gnt("instance modify --disk attach:name=moved", NAME)
    assert "belongs to an instance" in taken.err
    cluster.ok("instance remove -f", "web2")
    assert len(cluster.disks()) == 1


def test_cards(cluster: Cluster) -> None:
    ran = cluster.ok("instance modify --net add:link=br1,name=outer", NAME)
    assert "nic.0 -> add:mac=" in ran.out
    cluster.ok("instance modify --net outer:ip=192.0.2.7,mode=routed", NAME)
    fields = "instance list -o nic.count,nic.ips,nic.modes,nic.links"
    assert cluster.cells(fields, NAME) == [["1", "192.0.2.7", "routed", "br1"]]
    mac = cluster.cells("instance list -o nic.macs", NAME)
    cluster.ok("instance modify --net 0:link=br2", NAME)
    assert cluster.cells("instance list -o nic.macs", NAME) == mac
    cluster.ok("instance modify --net 0:mac=generate", NAME)
    assert cluster.cells("instance list -o nic.macs", NAME) != mac
    cluster.ok("instance modify --net 0:remove", NAME)
    assert cluster.cells("instance list -o nic.count", NAME) == [["0"]]


def test_settings(cluster: Cluster) -> None:
    ran = cluster.ok("instance modify -B memory=256m,vcpus=2", NAME)
    assert "be/vcpus" in ran.out
    fields = "instance list -o be/maxmem,be/minmem,be/vcpus"
    assert cluster.cells(fields, NAME) == [["256", "256", "2"]]
    cluster.ok("instance modify -B -vcpus", NAME)
    assert cluster.cells("instance list -o be/vcpus", NAME) == [["1"]]
    cluster.ok("instance modify --offline", NAME)
    assert cluster.cells("instance list -o status", NAME) == [["ADMIN_offline"]]
    cluster.ok("instance modify --online", NAME)
    assert cluster.cells("instance list -o status", NAME) == [["ADMIN_down"]]


@pytest.fixture(scope="class")
def running_guest(cluster: Cluster) -> Iterator[None]:
    cluster.ok("instance startup", NAME)
    yield
    cluster.ok("instance shutdown", NAME)


@pytest.mark.usefixtures("running_guest")
class TestRunning:
    def test_devices_come_and_go(self, cluster: Cluster) -> None:
        cluster.ok("instance modify --disk add:size=4m --net add:link=br1", NAME)
        assert links(cluster) == [f"{NAME}:0", f"{NAME}:1"]
        assert sizes(cluster) == "24,4"
        cluster.ok("instance modify --disk 1:remove --net 0:remove", NAME)
        assert links(cluster) == [f"{NAME}:0"]
        assert len(cluster.disks()) == 1

    def test_a_disk_is_not_taken_away_under_the_guest(self, cluster: Cluster) -> None:
        cluster.ok("instance modify --disk add:size=4m", NAME)
        refused = cluster.gnt("instance modify --no-hotplug --disk 1:remove", NAME)
        assert refused.code == 1
        assert "cannot be removed or detached while" in refused.err
        assert sizes(cluster) == "24,4"
        script(cluster, {"unplug_disk": {"*": {"fail": "the guest holds it"}}})
        refused = cluster.gnt("instance modify --disk 1:remove", NAME)
        assert refused.code == 1
        assert "the guest holds it" in refused.err
        assert sizes(cluster) == "24,4"
        script(cluster, {})
        cluster.ok("instance modify --disk 1:remove", NAME)

    def test_what_the_guest_does_not_take_waits_for_its_start(self, cluster: Cluster) -> None:
        script(cluster, {"plug_disk": {"*": {"fail": "no slot is left"}}})
        ran = cluster.ok("instance modify --disk add:size=4m", NAME)
        assert "at its next start" in ran.out
        script(cluster, {})
        assert sizes(cluster) == "24,4"
        cluster.ok("instance modify --disk 1:remove", NAME)

    def test_a_grown_disk_is_seen(self, cluster: Cluster) -> None:
        script(cluster, {"resize_disk": {"*": {"fail": "the guest sleeps"}}})
        ran = cluster.ok("instance grow-disk", NAME, "0", "4m")
        assert "the guest sleeps" in ran.out
        script(cluster, {})
        ran = cluster.ok("instance grow-disk", NAME, "0", "4m")
        assert "WARNING" not in ran.out

    def test_limits_of_a_disk_now(self, cluster: Cluster) -> None:
        limits = "disk list -o max_iops,max_bandwidth"
        cluster.ok("instance modify --disk 0:max_iops=300,max_bandwidth=20", NAME)
        assert cluster.cells(limits, f'instance == "{NAME}" and index == 0') == [["300", "20"]]
        shown = cluster.ok("instance info", NAME).out
        assert "max bandwidth: 20 MiB/s" in shown
        script(cluster, {"limit_disk": {"*": {"fail": "the guest sleeps"}}})
        ran = cluster.ok("disk modify --max-iops 0", f"{NAME}/0")
        assert "keeps the old limits of disk 0 until its next start" in ran.out
        assert "the guest sleeps" in ran.out
        script(cluster, {})
        assert cluster.cells(limits, f'instance == "{NAME}" and index == 0') == [["0", "20"]]
        refused = cluster.gnt("instance modify --disk 0:max_iops=many", NAME)
        assert refused.code == 1
        assert "max_iops" in refused.err

    def test_processors_now(self, cluster: Cluster) -> None:
        vcpus = "instance list -o be/vcpus,oper_vcpus"
        ran = cluster.ok("instance modify -B vcpus=3", NAME)
        assert "WARNING" not in ran.out
        assert cluster.cells(vcpus, NAME) == [["3", "3"]]
        ran = cluster.ok("instance modify --no-hotplug -B vcpus=4", NAME)
        assert "has 4 processors after its next start: --no-hotplug was given" in ran.out
        assert cluster.cells(vcpus, NAME) == [["4", "3"]]
        with Client(cluster.paths().luxi_socket) as client:  # as clients of 3.0 ask for it
            job = client.submit_job(
                [
                    {
                        "OP_ID": "OP_INSTANCE_SET_PARAMS",
                        "instance_name": NAME,
                        "beparams": {"vcpus": 5},
                        "hotplug": False,
                        "hotplug_if_possible": True,
                    }
                ]
            )
        cluster.ok("job wait", str(job))
        assert cluster.cells(vcpus, NAME) == [["5", "5"]]
        script(cluster, {"set_vcpus": {"*": {"fail": "the guest keeps them"}}})
        ran = cluster.ok("instance modify -B vcpus=1", NAME)
        assert "the guest keeps them" in ran.out
        script(cluster, {})

    def test_memory_now(self, cluster: Cluster) -> None:
        cluster.ok("instance modify -B minmem=128m,maxmem=512m", NAME)
        ran = cluster.gnt("instance modify -m 600m", NAME)
        assert "between 128 and 512 MiB" in ran.err
        cluster.ok("instance modify -m 384m", NAME)
        assert cluster.cells("instance list -o oper_ram", NAME) == [["384"]]


def script(cluster: Cluster, rules: dict[str, object]) -> None:
    """What the fake hypervisor of node2 does wrong from now on."""
    path = cluster.paths("node2").conf / "fake-hypervisor.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(rules))
    fresh.rename(path)
