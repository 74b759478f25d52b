"""Two clusters with one domain secret: instances move from one to the other, or stay whole."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, Ran, copy_cluster
from rapi_daemon import RapiDaemon

from ganeti.base import files
from ganeti.tools import move_instance

WEB = "web1.example.com"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    with copy_cluster(1) as here, copy_cluster(1) as there:
        given = tmp_path_factory.mktemp("secret") / "secret"
        files.write_atomic(given, here.paths().domain_secret.read_bytes(), mode=0o600)
        there.ok("cluster renew-crypto", f"--cluster-domain-secret={given}")
        for cluster in (here, there):
            for name in ("plain", "broken"):
                _copy_os(cluster, name)
            _write(_os(cluster, "broken") / "export", _HALF)
            _write(_os(cluster, "broken") / "import", 'exec cat >"$IMPORT_DEVICE"')
        yield here, there


#: Exports the first disk, and fails with the second.
_HALF = 'test "$EXPORT_INDEX" = 0 && exec cat "$EXPORT_DEVICE"\nexit 3'


def _os(cluster: Cluster, name: str) -> Path:
    return cluster.root() / "usr/local/lib/ganeti/os" / name


def _copy_os(cluster: Cluster, name: str) -> None:
    """An OS without scripts for export and import: disks are copied as they are."""
    noop = next(p / "noop" for p in cluster.paths().os_search_path if (p / "noop").is_dir())
    shutil.copytree(noop, _os(cluster, name))
    for script in ("export", "import"):
        (_os(cluster, name) / script).unlink()


def _write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def move(source: Cluster, target: Cluster, place: Path, *words: str) -> Ran:
    """Run move-instance between two clusters."""
    argv, names = [], []
    for side, cluster in (("src", source), ("dest", target)):
        rapi = RapiDaemon(cluster)
        password = place / f"{side}.password"
        files.write_atomic(password, rapi.password.encode(), mode=0o600)
        argv += [f"--{side}-rapi-port={rapi.port}", f"--{side}-ca-file={rapi.env['RAPI_CA']}"]
        argv += [f"--{side}-username={rapi.user}", f"--{side}-password-file={password}"]
        names.append(rapi.host)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = move_instance.main([*argv, *names, *words])
    return Ran(code, out.getvalue(), err.getvalue())


def add(cluster: Cluster, name: str, *words: str) -> list[bytes]:
    """An instance with two disks that hold something; what they hold."""
    cluster.ok(
        "instance add -n node1 -o plain -t file --disk 0:size=4M --disk 1:size=4M,name=data",
        *("--tags=blue", "-B", "memory=96M", *words),
        name,
    )
    for path in _paths(cluster, name):
        with path.open("r+b") as stream:
            stream.seek(70_000)
            stream.write(os.urandom(1_000_000))
    return disks(cluster, name)


def _paths(cluster: Cluster, name: str) -> list[Path]:
    found = (cluster.root() / "srv/ganeti/file-storage" / name).iterdir()
    return sorted(found, key=lambda path: path.name.rpartition(".")[2])


def disks(cluster: Cluster, name: str) -> list[bytes]:
    return [path.read_bytes() for path in _paths(cluster, name)]


def names(cluster: Cluster) -> list[list[str]]:
    return cluster.cells("instance list -o name,status")


def test_there_and_back_again(clusters: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    here, there = clusters
    before = add(here, WEB, "--net", "0:mac=aa:00:00:11:22:33,ip=192.0.2.7")
    ran = move(here, there, tmp_path, WEB)
    assert ran.code == 0, ran.out + ran.err
    assert f"{WEB}: moved" in ran.out
    assert ran.lines[-1] == "1 of 1 instances were moved"
    assert (names(here), names(there)) == ([], [[WEB, "running"]])
    assert disks(there, WEB) == before
    row = there.cells("instance list -o nic.mac/0,nic.ip/0,be/maxmem,tags,disk.name/1", WEB)
    assert row == [["aa:00:00:11:22:33", "192.0.2.7", "96", "blue", "data"]]

    there.ok("instance shutdown --timeout=5", WEB)
    words = ("--dest-instance-name=back.example.com", "--keep-source-instance", "-B", "memory=64M")
    ran = move(there, here, tmp_path, *words, "--compress=gzip", "--net", "0:ip=none", WEB)
    assert ran.code == 0, ran.out + ran.err
    assert f"{WEB} stays in the source cluster, stopped" in ran.out
    assert names(here) == [["back.example.com", "ADMIN_down"]]
    assert names(there) == [[WEB, "ADMIN_down"]]
    assert disks(here, "back.example.com") == before
    assert here.cells("instance list -o be/maxmem,nic.ip/0") == [["64", "-"]]
    # no key, no transfer and no job is left
    for cluster in clusters:
        assert not [path for path in cluster.paths().crypto.glob("*") if path.is_dir()]
        cluster.ok("cluster verify")
    here.ok("instance remove -f back.example.com")
    there.ok("instance remove -f", WEB)


def test_several_at_a_time(clusters: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    here, there = clusters
    wanted = ["a.example.com", "b.example.com"]
    for name in wanted:
        add(here, name, "--no-nics", "--no-start")
    ran = move(here, there, tmp_path, "-p", "2", *wanted, "c.example.com")
    assert ran.code == 1
    assert "c.example.com: FAILED: " in ran.out
    assert ran.lines[-1] == "2 of 3 instances were moved"
    assert names(there) == [[name, "ADMIN_down"] for name in wanted]
    for name in wanted:
        there.ok("instance remove -f", name)


def test_a_transfer_that_fails_leaves_the_instance_running_where_it_was(
    clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    here, there = clusters
    before = add(here, WEB, "--no-nics")
    here.ok("instance modify --os-type=broken", WEB)
    ran = move(here, there, tmp_path, WEB)
    assert ran.code == 1
    assert "the instance runs again where it was" in ran.out, ran.out
    assert (names(here), names(there)) == ([[WEB, "running"]], [])
    assert disks(here, WEB) == before
    assert there.disks() == []
    here.ok("instance remove -f", WEB)


def test_clusters_that_do_not_trust_each_other(
    clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    here, there = clusters
    add(here, WEB, "--no-nics")
    secret = there.paths().domain_secret.read_bytes()
    there.ok("cluster renew-crypto --new-cluster-domain-secret")
    ran = move(here, there, tmp_path, WEB)
    assert ran.code == 1
    assert "both clusters need the same one" in ran.out, ran.out
    assert names(here) == [[WEB, "running"]]
    files.write_atomic(tmp_path / "secret", secret, mode=0o600)
    there.ok("cluster renew-crypto", f"--cluster-domain-secret={tmp_path / 'secret'}")
    here.ok("instance remove -f", WEB)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--net", "3:link=br0", WEB), "so there is none with the number 3"),
        (("--net", "x:link=br0", WEB), "begin with the number of a NIC"),
        (("--dest-instance-name=x", WEB, "web2"), "with one instance only"),
        (("-I", "hail", "--dest-primary-node=node1", WEB), "--iallocator chooses the nodes"),
        (("--dest-secondary-node=node1", WEB), "needs --dest-primary-node"),
        (("--dest-primary-node=node9", WEB), "node9"),
        (("--compress=rar", WEB), "rar"),
        (("-B", "memory=much", WEB), "much"),
        (("-H", "hyper:a=b", WEB), "hyper"),
        (("--dest-ca-file=/nonexistent", WEB), "/nonexistent"),
        (("--src-password-file=/dev/null", WEB), "the first line has no password"),
        (("--src-rapi-port=1", WEB), "source cluster: "),
        ((WEB, WEB), "named twice"),
        (("-p", "0", WEB), "at least 1"),
    ],
)
def test_what_is_refused(
    clusters: tuple[Cluster, Cluster], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    here, there = clusters
    if not names(here):
        add(here, WEB, "--no-start")
    ran = move(here, there, tmp_path, *words)
    assert ran.code == 1
    assert said in ran.out + ran.err, ran.out + ran.err
    assert names(there) == []
    assert names(here) == [[WEB, "ADMIN_down"]]
