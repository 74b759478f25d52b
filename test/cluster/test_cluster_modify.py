"""Settings of the cluster, its address and its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster


def show(cluster: Cluster, key: str) -> str:
    """A line of gnt-cluster info."""
    for line in cluster.ok("cluster info").lines:
        name, _, value = line.strip().partition(": ")
        if name == key:
            return value
    raise AssertionError(f"gnt-cluster info shows no {key}")


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("-m 02:00:01", "mac prefix", "02:00:01"),
        ("--uid-pool 100-109,120", "uid pool", "100-109, 120"),
        ("--remove-uids 101 --add-uids 130", "uid pool", "100, 102-109, 120, 130"),
        ("--max-running-jobs 7", "maximal number of jobs running simultaneously", "7"),
        ("--reserved-lvs xenvg/.*,other", "lvm reserved volumes", "xenvg/.*, other"),
        ("--reserved-lvs=", "lvm reserved volumes", "(none)"),
        ("--enabled-disk-templates file,diskless", "enabled disk templates", "file, diskless"),
        ("--ipolicy-vcpu-ratio 8", "vcpu-ratio", "8.0"),
        ("-B vcpus=3", "vcpus", "3"),
        ("-B vcpus=default", "vcpus", "1"),
        ("-N link=br7", "link", "br7"),
        ("-D plain:stripes=2", "stripes", "2"),
        ("-H fake:migration_mode=non-live", "migration_mode", "non-live"),
        ("--maintain-node-health yes", "maintenance of node health", "True"),
        ("--install-image /srv/image", "install image", "/srv/image"),
    ],
)
def test_settings(cluster: Cluster, words: str, key: str, value: str) -> None:
    cluster.ok(f"cluster modify {words}")
    assert show(cluster, key) == value


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", "Nothing to change"),
        ("-m zz:00:00", "zz:00:00"),
        ("--enabled-hypervisors vserver", "vserver"),
        ("--enabled-disk-templates floppy", "floppy"),
        ("--enabled-disk-templates nosuch", "nosuch"),
        ("--enabled-disk-templates=", "template"),
        ("--enabled-hypervisors=", "hypervisor"),
        ("--compression-tools=", "gzip"),
        ("-B minmem=4096", "maxmem"),
        ("-H fake:colour=red", "colour"),
        ("--uid-pool 9-1", "9-1"),
        ("--master-netmask 99", "99"),
        ("--ipolicy-std-specs cpu-count=9999", "cpu-count"),
        ("--compression-tools lzop", "gzip"),
        ("--enabled-data-collectors nosuch=yes", "nosuch"),
        ("--file-storage-dir files", "absolute"),
    ],
)
def test_refused(cluster: Cluster, words: str, text: str) -> None:
    before = cluster.config()
    ran = cluster.gnt(f"cluster modify {words}")
    assert ran.code == 1, ran
    assert text in ran.err
    assert cluster.config() == before


@pytest.fixture(scope="class")
def web1(cluster: Cluster) -> Iterator[None]:
    """An instance with a disk of 8 MiB."""
    assert cluster.add("web1.example.com").code == 0
    yield
    cluster.ok("instance remove -f", "web1.example.com")


@pytest.mark.usefixtures("web1")
class TestWithAnInstance:
    def test_what_it_uses_stays(self, cluster: Cluster) -> None:
        for words in ("--enabled-disk-templates diskless", "--enabled-hypervisors kvm --force"):
            ran = cluster.gnt(f"cluster modify {words}")
            assert ran.code == 1
            assert "cannot be disabled, 1 instances use it" in ran.err

    def test_a_stricter_policy_only_warns(self, cluster: Cluster) -> None:
        words = "--ipolicy-bounds-specs min:disk-size={}/max:disk-size=1000000"
        ran = cluster.ok(f"cluster modify {words.format(64)}")
        assert "WARNING: instance web1.example.com violates" in ran.out
        assert "WARNING" not in cluster.ok(f"cluster modify {words.format(1)}").out


def test_nodes_are_asked_before_a_hypervisor_is_enabled(cluster: Cluster) -> None:
    refused = cluster.gnt("cluster modify --enabled-hypervisors fake,kvm -H kvm:kernel_path=/none")
    assert refused.code == 1
    assert "/none" in refused.err
    assert "--force" in refused.err
    cluster.ok("cluster modify --enabled-hypervisors fake,kvm -H kvm:kernel_path=,initrd_path=")
    assert show(cluster, "Enabled hypervisors") == "fake, kvm"
    cluster.ok("cluster modify --enabled-hypervisors fake")


def test_os_settings(cluster: Cluster) -> None:
    cluster.ok("os modify --hidden yes --blacklisted yes", "noop")
    assert show(cluster, "Hidden OSes") == "noop"
    assert "blacklisted" in cluster.add("web9.example.com").err
    assert "already" in cluster.ok("os modify --hidden yes", "noop").out
    cluster.ok("os modify --hidden no --blacklisted no", "noop")
    ran = cluster.gnt("os modify -O colour=red", "noop")
    assert ran.code == 1
    assert "colour" in ran.err


def test_files_reach_every_node(cluster: Cluster) -> None:
    cluster.ok("cluster modify --uid-pool 500-509")
    for node in ("node1", "node2", "node3"):
        assert cluster.paths(node).ssconf("uid_pool").read_text() == "500-509\n"
    users = cluster.paths().data / "rapi" / "users"
    users.parent.mkdir(exist_ok=True)
    users.write_text("jack secret write\n")
    users.chmod(0o640)
    (cluster.paths().data / "known_hosts").write_text("example.com ssh-rsa AAAA\n")
    cluster.ok("cluster redist-conf")
    for node in ("node2", "node3"):
        data = cluster.paths(node).data
        assert (data / "rapi" / "users").read_text() == "jack secret write\n"
        assert (data / "known_hosts").exists()


class TestAddress:
    def state(self, cluster: Cluster) -> list[str]:
        path = cluster.paths().master_ip_state
        return path.read_text().split() if path.exists() else []

    def test_up_and_down(self, cluster: Cluster) -> None:
        for _ in range(2):
            ran = cluster.ok("cluster activate-master-ip")
            assert "no network interface was changed" in ran.out
        address = cluster.paths().ssconf("master_ip").read_text().strip()
        assert self.state(cluster)[0] == address
        cluster.ok("cluster modify --master-netmask 24")
        assert self.state(cluster) == [address, "24", "lo"]
        cluster.ok("cluster modify --master-netdev eth7")
        assert self.state(cluster) == [address, "24", "eth7"]
        for _ in range(2):
            cluster.ok("cluster deactivate-master-ip --yes")
        assert self.state(cluster) == []
        # a question that nobody answers changes nothing
        cluster.ok("cluster activate-master-ip")
        assert cluster.gnt("cluster deactivate-master-ip").code == 1
        assert self.state(cluster)

    def test_a_script_of_ones_own(self, cluster: Cluster) -> None:
        refused = cluster.gnt("cluster modify --use-external-mip-script yes")
        assert refused.code == 1
        assert "master-ip-setup" in refused.err
        script = cluster.paths().master_ip_script
        script.parent.mkdir(parents=True)
        said = cluster.directory / "mip"
        script.write_text(f'#!/bin/sh\necho "$1 $MASTER_NETDEV" >>{said}\n')
        script.chmod(0o755)
        cluster.ok("cluster modify --use-external-mip-script yes")
        cluster.ok("cluster activate-master-ip")
        cluster.ok("cluster deactivate-master-ip --yes")
        lines = [line.split()[0] for line in said.read_text().splitlines()]
        assert lines == ["start", "stop"]
        cluster.ok("cluster modify --use-external-mip-script no")


def test_rename(cluster: Cluster) -> None:
    hosts = cluster.paths().hosts
    old = cluster.paths().ssconf("master_ip").read_text().strip()
    new = f"{old.rpartition('.')[0]}.253"
    with hosts.open("a") as file:
        file.write(f"{new} other.example.com\n{old} alias.example.com\n")
    assert "nosuch" in cluster.gnt("cluster rename -f", "nosuch.example.com").err
    taken = cluster.gnt("cluster rename -f", "node2.example.com")
    assert taken.code == 1
    assert "belongs to node" in taken.err
    ran = cluster.ok("cluster rename -f", "other.example.com")
    assert "other.example.com" in ran.out
    for node in ("node1", "node2", "node3"):
        assert cluster.paths(node).ssconf("cluster_name").read_text() == "other.example.com\n"
        assert cluster.paths(node).ssconf("master_ip").read_text() == f"{new}\n"
    assert cluster.paths().master_ip_state.read_text().split()[0] == new
    again = cluster.gnt("cluster rename -f", "other.example.com")
    assert again.code == 1
    assert "already" in again.err
    cluster.ok("cluster rename -f", "alias.example.com")
    cluster.ok("cluster verify")


def test_a_notification_is_changed_and_keeps_the_rest(cluster: Cluster) -> None:
    def show() -> list[str]:
        (row,) = cluster.cells("cluster notify list")
        return row[1:4]

    cluster.ok("cluster notify add --command=pager", "--filter=object =~ /x/", "ops")
    modify = "cluster notify modify"
    cluster.ok(modify, "--command=pager --team db", "ops")
    assert show() == ["command", "pager --team db", "object =~ /x/"]
    cluster.ok(modify, "--filter=", "ops")
    assert show()[2] == "-"
    made = cluster.ok(modify, "--webhook=https://localhost:1/s3cr3t", "ops").out
    assert "not shown again" in made
    assert show()[:2] == ["webhook", "https://localhost:1/..."]
    moved = cluster.ok(modify, "--webhook=https://localhost:2/s3cr3t", "ops")
    assert "not shown again" not in moved.out
    for words, said in (
        (["ops"], "nothing to change"),
        (["--filter=nosuch == 1", "ops"], "nosuch"),
        (["--mail=a@example.com", "--command=x", "ops"], "one of webhook, mail and command"),
        (["--interval=5", "opa"], "there is no notification 'opa' (did you mean ops?)"),
    ):
        ran = cluster.gnt(modify, *words)
        assert ran.code == 1
        assert said in ran.err
    cluster.ok("cluster notify remove ops")
