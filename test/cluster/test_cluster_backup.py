"""Exports on real daemons over real TLS: complete, or not there at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, copy_cluster
from waiting import wait_for

from ganeti import constants
from ganeti.guest_os import export_config

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "export_3_0_2.ini"
WEB = "web1.example.com"
NODES = ("node1", "node2", "node3")
_IMPORT = 'cat >"$IMPORT_DEVICE"; test "$IMPORT_INDEX" = 0'
_EXPORT = 'echo 5 >&$EXP_SIZE_FD; printf "%s" "$EXPORT_INDEX$OS_NAME"'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes, with an OS without scripts for export and import, and one with these."""
    with copy_cluster(3) as made:
        for node in NODES:
            for name in ("plain", "upper"):
                shutil.copytree(_noop(made), _os(made, node, name))
            for script in ("export", "import"):
                (_os(made, node, "plain") / script).unlink()
            _write(_os(made, node, "upper") / "export", _EXPORT)
            _write(_os(made, node, "upper") / "import", _IMPORT)
        yield made


def _os(cluster: Cluster, node: str, name: str) -> Path:
    return cluster.root(node) / "usr/local/lib/ganeti/os" / name


def _noop(cluster: Cluster) -> Path:
    found = [path / "noop" for path in cluster.paths().os_search_path]
    return next(path for path in found if path.is_dir())


def _write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh -e\n{script}\n")
    path.chmod(0o755)


def add(cluster: Cluster, name: str, *words: str, os_name: str = "plain") -> list[Path]:
    """A stopped instance on node2 with two disks that hold something; their files."""
    if "--disk" not in words:
        words = (*words, "--disk", "0:size=8M", "--disk", "1:size=4M")
    line = f"instance add -n node2 -o {os_name} -t file --no-nics --no-start"
    cluster.ok(line, *words, name)
    found = disks(cluster, "node2", name)
    for path in found:
        with path.open("r+b") as stream:
            stream.seek(70_000)
            stream.write(os.urandom(1_000_000))
    return found


def disks(cluster: Cluster, node: str, name: str) -> list[Path]:
    found = (cluster.root(node) / "srv/ganeti/file-storage" / name).iterdir()
    return sorted(found, key=lambda path: path.name.rpartition(".")[2])


def digests(paths: list[Path]) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def exports(cluster: Cluster) -> list[list[str]]:
    return [row for row in cluster.cells("backup list") if row[1] != "?"]


def test_there_and_back(cluster: Cluster) -> None:
    before = digests(add(cluster, WEB, "--tags=a,b", "-B", "memory=96M"))
    cluster.ok("backup export -n node3 --transport-compression=gzip-fast", WEB)
    assert exports(cluster) == [["node3.example.com", WEB]]
    directory = cluster.root("node3") / "srv/ganeti/export" / WEB
    config = export_config.parse((directory / "config.ini").read_text())
    dumps = [directory / disk.dump for disk in config.disks]
    assert digests(dumps) == before
    assert dumps[0].stat().st_blocks * 512 < 2_000_000  # holes are no bytes
    assert {path.stat().st_mode & 0o777 for path in (directory, *dumps)} == {0o700, 0o600}

    cluster.ok("instance remove -f", WEB)
    cluster.ok("backup import -n node1", WEB)
    assert digests(disks(cluster, "node1", WEB)) == before
    row = cluster.cells("instance list -o status,be/maxmem,tags,disk.sizes,os", WEB)
    assert row == [["running", "96", "a,b", "8,4", "plain"]]
    # a copy beside it, with another name
    cluster.ok(f"backup import -n node2 --src-dir={WEB}", "copy.example.com")
    assert digests(disks(cluster, "node2", "copy.example.com")) == before
    cluster.ok("backup remove", WEB)
    assert exports(cluster) == []
    cluster.ok("instance remove -f", WEB)
    cluster.ok("instance remove -f copy.example.com")


def test_scripts_of_the_os(cluster: Cluster) -> None:
    add(cluster, WEB, "--disk", "0:size=8M", os_name="upper")
    cluster.ok("backup export --remove-instance -f -n node1", WEB)
    assert cluster.cells("instance list") == []
    [dump] = [
        p for p in (cluster.root() / "srv/ganeti/export" / WEB).iterdir() if p.suffix != ".ini"
    ]
    assert dump.read_bytes() == b"0upper"
    cluster.ok("backup import -n node2", WEB)
    assert disks(cluster, "node2", WEB)[0].read_bytes() == b"0upper"
    cluster.ok("instance remove -f", WEB)
    cluster.ok("backup remove", WEB)


def test_a_script_that_fails_leaves_nothing(cluster: Cluster) -> None:
    add(cluster, WEB, "--disk", "0:size=8M", os_name="upper")
    script = _os(cluster, "node2", "upper") / "export"
    _write(script, "head -c 100000 /dev/zero; echo no dump today >&2; exit 3")
    try:
        ran = cluster.gnt("backup export -n node3", WEB)
    finally:
        _write(script, _EXPORT)
    assert ran.code == 1
    assert "failed with exit code 3: its output is in" in ran.err
    assert exports(cluster) == []
    assert list((cluster.root("node3") / "srv/ganeti/export").iterdir()) == []
    cluster.ok("instance remove -f", WEB)


def test_an_export_of_ganeti_3_0_2(cluster: Cluster) -> None:
    """What the node daemon of Debian's 3.0.2 wrote, for an instance of another cluster."""
    directory = cluster.root("node3") / "srv/ganeti/export/old.example.com"
    directory.mkdir(parents=True, mode=0o700)
    text = RECORDED.read_text()
    (directory / "config.ini").write_text(text)
    content = os.urandom(1_000_000)
    (directory / "disk-uuid").write_bytes(content)
    ran = cluster.ok(
        "backup import -n node1 -t file -H fake --net 0:mode=routed,ip=10.1.1.1", "old.example.com"
    )
    assert "web1.example.com becomes old.example.com" in ran.out
    [path] = disks(cluster, "node1", "old.example.com")
    assert path.read_bytes()[: len(content)] == content
    assert cluster.cells("instance list -o os,disk.sizes,be/vcpus,be/minmem,tags", "old") == [
        ["plain", "16", "2", "256", "t1,t2"]
    ]
    cluster.ok("instance remove -f old.example.com")
    cluster.ok("backup remove old.example.com")


@pytest.mark.parametrize("victim", ["master", "source", "target"])
def test_killed_in_the_middle(cluster: Cluster, victim: str) -> None:
    """Whoever dies while a dump travels: the old export stays the only one that is listed."""
    add(cluster, WEB, "--disk", "0:size=8M", os_name="upper")
    cluster.ok("backup export -n node3", WEB)
    _write(_os(cluster, "node2", "upper") / "export", "printf new; sleep 30")
    ended = threading.Thread(target=cluster.gnt, args=("backup export -n node3", WEB))
    ended.start()
    unfinished = cluster.root("node3") / f"srv/ganeti/export/{WEB}.new"
    wait_for(lambda: unfinished.is_dir() and any(unfinished.iterdir()), "the dump begins")
    if victim == "master":
        cluster.kill_master()
    else:
        node = "node2" if victim == "source" else "node3"
        pid = cluster.pid(constants.NODED, node)
        assert pid is not None
        os.kill(pid, 9)
        cluster.start_daemon(constants.NODED, node)
    if victim == "master":
        assert cluster.start_master().code == 0
    ended.join()
    # the daemon that was killed may not serve yet
    wait_for(lambda: cluster.cells("node list -o mtotal", "node3") != [["?"]], "node3 answers")
    assert exports(cluster) == [["node3.example.com", WEB]]
    [dump] = [p for p in (unfinished.with_name(WEB)).iterdir() if p.suffix != ".ini"]
    assert dump.read_bytes() == b"0upper"
    if unfinished.is_dir():
        told = cluster.gnt("cluster verify").out
        assert f"{WEB}.new" in told
        assert "gnt-backup" in told
    _write(_os(cluster, "node2", "upper") / "export", _EXPORT)
    # the daemon that was killed may not serve yet
    wait_for(lambda: cluster.gnt("backup export -n node3", WEB).code == 0, "it is exported")
    assert not unfinished.exists()
    cluster.ok("instance remove -f", WEB)
    cluster.ok("backup remove", WEB)


def test_what_is_refused(cluster: Cluster) -> None:
    add(cluster, WEB)
    for line, said in (
        ("backup export", "choose the node with --node"),
        ("backup export -n node3 --zero-free-space", "has no helper guests; kvm has"),
        ("backup export -n node3 --zero-free-space --noshutdown", "omit --noshutdown"),
        ("backup export -n node3 --zeroing-timeout-fixed=5", "only with --zero-free-space"),
        ("backup export -n node3 --noshutdown --remove-instance -f", "omit --noshutdown"),
        ("backup export -n node3 --transport-compression=xz", "choose from none, gzip"),
        ("backup import -n node1 --src-dir=../../etc", "no node has an export"),
        ("backup import -n node1 --src-node=node2 --src-dir=../../../etc", "is not below"),
        ("backup remove", "has an export"),
    ):
        ran = cluster.gnt(line, WEB if "import" not in line else "new.example.com")
        assert ran.code == 1, line
        assert said in ran.err, line
    cluster.ok("instance remove -f", WEB)


def test_the_usual_tool_reads_what_it_packs() -> None:
    from ganeti.node import streams

    for tool in ("gzip", "gzip-fast", "gzip-slow", "lzop", "xz"):
        if shutil.which(streams.pack_argv(tool)[0]) is None:
            continue
        packed = subprocess.run(streams.pack_argv(tool), input=b"x" * 99, stdout=-1, check=True)
        plain = subprocess.run(
            streams.unpack_argv(tool), input=packed.stdout, stdout=-1, check=True
        )
        assert plain.stdout == b"x" * 99


def test_a_schedule_with_a_time_of_day_counts_whole_days(cluster: Cluster) -> None:
    name = "night1.example.com"
    add(cluster, name)
    cluster.ok("backup schedule --every=24 --at=02:30", name)
    fields = "instance list --no-headers -o backup.every,backup.at"
    assert cluster.cells(fields, name) == [["24.0", "02:30"]]
    for words, said in (
        ("--at=24:00", "is a time of day from 00:00 to 23:59"),
        ("--at=2:30", "is a time of day from 00:00 to 23:59"),
        ("--every=36", "whole days apart"),
    ):
        ran = cluster.gnt(f"backup schedule {words}", name)
        assert ran.code == 1, words
        assert said in ran.err, ran.err
    cluster.ok("backup schedule --at= --every=36", name)
    assert cluster.cells(fields, name) == [["36.0", "-"]]
    cluster.ok("instance remove -f", name)
