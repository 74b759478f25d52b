"""Repositories of restic and borg that are full, damaged, locked, or go away in the middle.

No backup is listed that cannot be restored, the next one is good, and nothing else stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_bench import describe
from backup_copies import find_left
from local_cluster import Cluster, copy_cluster, tool
from test_cluster_moves import kill_noded
from waiting import wait_for

from ganeti.backup import definition, piping
from ganeti.backup.definition import Definition

pytestmark = pytest.mark.skipif(not shutil.which("qemu-nbd"), reason="qemu-nbd is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
NAME = "web1.example.com"
MIB = 1 << 20


class Place:
    """A stopped instance, and a repository that it is backed up to."""

    def __init__(self, cluster: Cluster, known: Definition) -> None:
        self.cluster, self.known = cluster, known
        [self.disk] = (cluster.paths().file_storage / NAME).resolve().iterdir()

    @property
    def directory(self) -> Path:
        variables = self.known.environment
        return Path(variables.get("RESTIC_REPOSITORY") or variables["BORG_REPO"])

    def write(self) -> None:
        with self.disk.open("r+b") as stream:
            stream.write(os.urandom(6 * MIB))

    def begin(self, *options: str) -> str:
        """The job of a slow backup, once a program takes what is read."""
        words = ["--bandwidth=1", "--submit", "--print-jobid", *options]
        job = self.cluster.ok("backup run", *words, NAME).out.split()[-1]
        wait_for(self.find_writers, "the program to begin", 60)
        return job

    def find_writers(self) -> list[int]:
        """Programs that get what is read."""
        verb = "backup" if self.known.program.name == "restic" else "create"
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().decode(errors="replace").split("\0")
                if verb in words and any(f"{NAME}-" in word for word in words):
                    found.append(int(path.parent.name))
        return found

    def find_items(self) -> list[str]:
        """Names of all that is in the repository."""
        argv = self.known.program.build_list(wait=False)
        with piping.start(self.known, argv, lambda: None) as child:
            items = self.known.program.parse_list(child.read_all().decode())
        return sorted(item.name for item in items)

    def list_backups(self) -> list[str]:
        return [row[0] for row in self.cluster.cells("backup history -o id", NAME)]

    def check(self) -> None:
        """The next backup is good, all that are listed are, and there is nothing else."""
        self.cluster.ok("backup run", NAME, timeout=120)
        found = self.list_backups()
        for backup in found:
            self.cluster.ok("backup verify", f"--backup={backup}", NAME)
        items = [name for name in self.find_items() if not name.endswith(".proof")]
        assert {name.removeprefix(f"{NAME}-")[:15] for name in items} == set(found)
        assert len(items) == 3 * len(found), items
        truth = hashlib.sha256(self.disk.read_bytes()).hexdigest()
        self.write()
        self.cluster.ok("backup restore -f", NAME)
        assert hashlib.sha256(self.disk.read_bytes()).hexdigest() == truth
        assert find_left(self.cluster, "node1") == []
        self.cluster.ok("cluster verify")


@pytest.fixture(scope="module", params=["restic", "borg"])
def program(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@contextlib.contextmanager
def make_place(program: str, directory: Path, **variables: str) -> Iterator[Place]:
    with copy_cluster(1) as made:
        assert made.add(NAME, "--no-start", node="node1").code == 0
        known = describe(directory / "of", program)
        if variables:
            lines = "".join(f"{name}='{value}'\n" for name, value in variables.items())
            Path(known.file).write_text(Path(known.file).read_text() + lines)
            known = definition.load(Path(known.file))
        made.paths().backup_repositories.mkdir(mode=0o700)
        shutil.copy(known.file, made.paths().backup_repositories)
        made.ok("backup schedule --repository=offsite", NAME)
        place = Place(made, known)
        place.write()
        made.ok("backup run", NAME)
        yield place


@pytest.fixture(scope="module")
def place(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with make_place(program, tmp_path_factory.mktemp("place")) as made:
        yield made


def test_a_killed_node_daemon(place: Place) -> None:
    """The program stores the part that it has read, and this part is not listed as a backup."""
    place.write()
    before = place.list_backups()
    job = place.begin()
    kill_noded(place.cluster, "node1")
    wait_for(lambda: place.find_writers() == [], "the program to end", 60)
    assert tool("start-node", place.cluster.directory, "node1").code == 0
    assert place.cluster.gnt("job watch", job).code == 1
    assert place.list_backups() == before
    place.check()


def test_a_node_that_lost_power(place: Place) -> None:
    """Its locks are those of processes that are dead."""
    place.write()
    before = place.list_backups()
    job = place.begin()
    programs = place.find_writers()
    kill_noded(place.cluster, "node1")
    for pid in programs:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert tool("start-node", place.cluster.directory, "node1").code == 0
    assert place.cluster.gnt("job watch", job).code == 1
    assert place.list_backups() == before
    place.check()


def test_a_program_that_dies(place: Place) -> None:
    place.write()
    job = place.begin()
    for pid in place.find_writers():
        os.kill(pid, signal.SIGKILL)
    ran = place.cluster.gnt("job watch", job)
    assert ran.code == 1
    assert "repository offsite: " in ran.out + ran.err
    place.check()


def test_locked_by_somebody_else(place: Place) -> None:
    """A backup to borg waits, and can be canceled; restic lets both work."""
    argv = place.known.program.build_put("other", "")
    with piping.start(place.known, argv, lambda: None) as other:
        other.write(b"some")
        wait_for(lambda: find_locks(place), "the lock", 60)
        if place.known.program.name == "restic":
            place.cluster.ok("backup run", NAME)
        else:
            ran = place.cluster.ok("backup run --submit --print-jobid", NAME)
            job = ran.out.split()[-1]
            wait_for(lambda: find_left(place.cluster, "node1"), "the backup to begin")
            place.cluster.gnt("job cancel --force", job)
            wait_for(lambda: find_left(place.cluster, "node1") == [], "its end", 60)
            assert place.cluster.gnt("job watch", job).code == 1
    place.check()


def find_locks(place: Place) -> list[Path]:
    return [*place.directory.glob("locks/*"), *place.directory.glob("lock.exclusive")]


@needs_root
def test_a_full_repository(program: str, tmp_path: Path) -> None:
    with make_place(program, tmp_path) as place:
        target = place.directory
        moved = target.with_name("moved")
        target.rename(moved)
        target.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=9M", "none", str(target)]
        subprocess.run(mount, check=True)
        try:
            shutil.copytree(moved, target, dirs_exist_ok=True)
            place.write()
            before = place.list_backups()
            ran = place.cluster.gnt("backup run", NAME, timeout=120)
            assert ran.code == 1
            assert "it is full: remove backups with gnt-backup prune, or make it larger" in ran.err
            assert place.list_backups() == before
            # borg needs room for the proof, too
            ran = place.cluster.gnt("backup verify", NAME)
            assert ran.code == 0 or "it is full: " in ran.err, ran.err
            subprocess.run(["mount", "-o", "remount,size=2G", str(target)], check=True)
            place.check()
        finally:
            subprocess.run(["umount", str(target)], check=True)


def test_a_damaged_repository(program: str, tmp_path: Path) -> None:
    with make_place(program, tmp_path) as place:
        largest = max(place.directory.glob("data/**/*"), key=lambda path: path.stat().st_size)
        data = bytearray(largest.read_bytes())
        for at in range(MIB, len(data) - MIB, 4096):
            data[at] ^= 0xFF
        largest.chmod(0o600)
        largest.write_bytes(data)
        before = place.disk.read_bytes()
        for line in ("backup verify", "backup restore -f"):
            ran = place.cluster.gnt(line, NAME)
            assert ran.code == 1, line
            assert re.search("it is damaged: (restic|borg) check", ran.err), ran.err
        ran = place.cluster.gnt("instance startup", NAME)
        assert f"gnt-backup restore --backup={place.list_backups()[0]}" in ran.err
        place.disk.write_bytes(before)
        place.write()
        # it was found bad, so nothing is built on it
        place.cluster.ok("backup run", NAME)
        assert place.cluster.cells("backup history -o mode", NAME)[-1] == ["full"]
        place.cluster.ok("backup verify", NAME)
        place.cluster.ok("backup restore -f", NAME)


def test_a_server_that_dies_in_the_middle(tmp_path: Path) -> None:
    """borg over a shell that ends."""
    if shutil.which("borg") is None:
        pytest.skip("borg is not installed")
    shell = tmp_path / "shell"
    # what borg starts there, in place of ssh HOST
    shell.write_text('#!/bin/sh\nshift\necho $$ >>"${0%/*}/servers"\nexec "$@"\n')
    shell.chmod(0o700)
    with make_place("borg", tmp_path) as place:
        repository = f"ssh://store{place.directory}"
        file = place.cluster.paths().backup_repositories / "offsite"
        file.write_text(
            f"{file.read_text()}BORG_REPO={repository}\nBORG_RSH={shell}\n"
            "BORG_RELOCATED_REPO_ACCESS_IS_OK=yes\n"
        )
        place.known = definition.load(file)
        place.write()
        before = place.list_backups()
        servers = tmp_path / "servers"
        servers.unlink(missing_ok=True)
        job = place.begin()
        wait_for(lambda: find_servers(servers), "the server to begin")
        [server] = find_servers(servers)
        os.kill(server, signal.SIGKILL)
        ran = place.cluster.gnt("job watch", job)
        assert ran.code == 1
        assert "check whether it can be reached from this node: borg list" in ran.out + ran.err
        assert place.list_backups() == before
        place.check()


def find_servers(started: Path) -> list[int]:
    """Those that still run."""
    text = started.read_text() if started.exists() else ""
    return [int(each) for each in text.split() if Path(f"/proc/{each}/fd/0").exists()]
