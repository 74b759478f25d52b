"""A cluster that manages SSH: who can log in where, with a real SSH server on each node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster
from waiting import wait_for

SERVER = "/usr/sbin/sshd"
PEOPLE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB7 admin@home"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(SERVER) or shutil.which("ssh") is None,
    reason="needs root and openssh-server",
)


def address(cluster: Cluster, node: str) -> str:
    facts = json.loads((cluster.directory / "local-cluster.json").read_text())
    return str(facts["nodes"][f"{node}.example.com"])


def authorized(cluster: Cluster, node: str) -> Path:
    return cluster.root(node) / "root/.ssh/authorized_keys"


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes; each has an SSH server of its own, which reads the keys of that node."""
    directory = tmp_path_factory.mktemp("ssh") / "c"
    cluster = Cluster(directory, 3, "fake", "--ssh")
    servers = []
    try:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        for name in ("node1", "node2", "node3"):
            config = cluster.root(name) / "etc/ssh/sshd_config"
            config.write_text(
                f"ListenAddress {address(cluster, name)}\n"
                f"HostKey {cluster.root(name)}/etc/ssh/ssh_host_ecdsa_key\n"
                f"AuthorizedKeysFile {authorized(cluster, name)}\n"
                "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
            )
            servers.append(subprocess.Popen([SERVER, "-D", "-f", str(config)]))
        yield cluster
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        cluster.destroy()


def log_in(cluster: Cluster, source: str, target: str, *words: str, key: str = "id_rsa") -> bool:
    """Whether root of one node can run a command on another one, which no person confirms."""
    argv = ["ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"]
    argv += ["-oIdentitiesOnly=yes", f"-i{cluster.root(source)}/root/.ssh/{key}"]
    argv += [f"-oUserKnownHostsFile={cluster.paths(source).known_hosts}", *words]
    argv += ["-oGlobalKnownHostsFile=/dev/null", f"root@{address(cluster, target)}", "true"]
    return subprocess.run(argv, capture_output=True, timeout=30).returncode == 0


def list_logins(cluster: Cluster, source: str, *words: str, key: str = "id_rsa") -> list[str]:
    nodes = ("node1", "node2", "node3")
    return [node for node in nodes if log_in(cluster, source, node, *words, key=key)]


ALL = ["node1", "node2", "node3"]


def test_candidates_log_in_everywhere_and_others_nowhere(managed: Cluster) -> None:
    wait_for(lambda: log_in(managed, "node1", "node1"), "the SSH server")
    assert list_logins(managed, "node1") == list_logins(managed, "node3") == ALL
    # Scripts name the cluster for all of its nodes.
    assert list_logins(managed, "node2", "-oHostKeyAlias=cluster.example.com") == ALL
    authorized(managed, "node1").write_text(authorized(managed, "node1").read_text() + PEOPLE)
    managed.ok("node modify --master-candidate=no node3")
    assert list_logins(managed, "node3") == []
    assert not managed.paths("node3").ssh_public_keys.exists()
    assert list_logins(managed, "node2") == ALL
    assert managed.ok("cluster verify").code == 0
    managed.ok("node modify --master-candidate=yes node3")
    assert list_logins(managed, "node3") == ALL
    assert PEOPLE in authorized(managed, "node1").read_text()


def test_verify_names_who_may_not_log_in_and_redist_conf_mends_it(managed: Cluster) -> None:
    before = authorized(managed, "node2").read_text()
    authorized(managed, "node2").write_text("")
    ran = managed.gnt("cluster verify")
    assert ran.code == 1
    assert "node2.example.com: root of node1.example.com, node2.example.com" in ran.out
    assert "cannot log in here: a key is missing in" in ran.out
    managed.ok("cluster redist-conf")
    assert sorted(authorized(managed, "node2").read_text().splitlines()) == sorted(
        before.splitlines()
    )
    stale = before.splitlines()[0].split()[1][:-8]
    authorized(managed, "node2").write_text(f"{before}ssh-rsa {stale} root@node3.example.com\n")
    managed.ok("cluster verify")
    ran = managed.gnt("cluster verify --verify-ssh-clutter")
    assert "has a key with the name root@node3" in ran.out
    authorized(managed, "node2").write_text(before)


def test_new_keys_for_all_and_the_old_ones_are_refused(managed: Cluster) -> None:
    ran = managed.gnt("cluster renew-crypto --new-ssh-keys --ssh-key-type=ecdsa --ssh-key-bits=100")
    assert ran.code == 1
    assert "SSH keys of type ecdsa have 256, 384, 521 bits, not 100" in ran.err
    managed.ok("cluster renew-crypto --new-ssh-keys --ssh-key-type=ecdsa --ssh-key-bits=384")
    assert list_logins(managed, "node1", key="id_ecdsa") == ALL
    assert list_logins(managed, "node1") == []
    managed.ok("cluster renew-crypto --new-ssh-keys")
    assert list_logins(managed, "node3", key="id_ecdsa") == ALL
    assert list_logins(managed, "node3", key="id_ecdsa.old") == []
    assert "ssh_key_bits: 384" in managed.ok("cluster info").out
    assert len(managed.paths().ssh_public_keys.read_text().splitlines()) == 3
    managed.ok("cluster verify")


def test_a_node_without_the_consent_of_its_root_is_left_alone(managed: Cluster) -> None:
    mark = managed.paths("node2").ssh_managed
    mark.unlink()
    before = authorized(managed, "node2").read_text()
    assert "does not let the cluster manage SSH" in managed.gnt("cluster verify").out
    ran = managed.gnt("cluster renew-crypto --new-ssh-keys")
    assert ran.code == 1
    assert f"touch {mark}" in ran.err
    assert authorized(managed, "node2").read_text() == before
    mark.touch()
    managed.ok("cluster redist-conf")
    managed.ok("cluster verify")


def test_a_node_that_leaves_lets_nobody_in_any_more(managed: Cluster) -> None:
    key = managed.root("node3") / "root/.ssh/id_ecdsa.pub"
    managed.ok("node remove node3")
    assert authorized(managed, "node3").read_text() == ""
    assert key.read_text().split()[1] not in authorized(managed, "node1").read_text()
    assert not managed.paths("node3").ssh_managed.exists()
    managed.ok("cluster verify")


def test_without_ssh_nothing_is_changed(cluster: Cluster) -> None:
    assert not (cluster.root() / "root/.ssh").exists()
    ran = cluster.gnt("cluster renew-crypto --new-ssh-keys")
    assert ran.code == 1
    assert "it was made with --no-ssh-init" in ran.err
    ran = cluster.gnt("cluster renew-crypto --ssh-key-type=rsa")
    assert ran.code == 1
    assert "renew_ssh_keys makes" in ran.err
