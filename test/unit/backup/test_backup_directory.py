"""Backups in a directory, of real files through real servers of QEMU."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from pathlib import Path

import pytest
from needs import needs_programs

from ganeti import errors
from ganeti.backup import copying, plan, served
from ganeti.backup.directory import Directory
from ganeti.backup.sums import CHUNK, Sums
from ganeti.model.backup import BackedUpDisk, Manifest, Mode, make_id
from ganeti.net import nbd

pytestmark = needs_programs("qemu-nbd")

NAME = "web1.example.com"
SIZE = 8 * 1024 * 1024 + 512


class Bench:
    """A disk, and a repository that it is backed up to."""

    def __init__(self, tmp_path: Path) -> None:
        self.disk = tmp_path / "disk.raw"
        self.disk.write_bytes(b"")
        os.truncate(self.disk, SIZE)
        self.work = tmp_path / "work"
        self.work.mkdir()
        repository = tmp_path / "repository"
        repository.mkdir()
        self.directory = Directory(repository, NAME)
        self.count = 0

    def write(self, offset: int, data: bytes) -> None:
        with self.disk.open("r+b") as stream:
            stream.seek(offset)
            stream.write(data)

    def backup(self, *, finish: bool = True) -> Manifest:
        self.count += 1
        backup = make_id(1e9 + self.count)
        with self.directory.lock():
            base = self.directory.newest()
            old = self.directory.read_sums(base, 0) if base else Sums(SIZE)
            new = old.resize(self.disk.stat().st_size)
            path = self.directory.add_disk(
                backup, 0, new.size, self.directory.disk(base.id, 0) if base else None
            )
            with (
                served.serve(str(self.disk), "raw", self.work, contexts=[nbd.ALLOCATION]) as source,
                served.serve(str(path), "qcow2", self.work, write=True) as target,
            ):
                ranges = plan.find_ranges(source.holes(), None, new.size, old.size)
                counts = copying.copy_changes(source, ranges, target, old, new, lambda *_: None)
            disk = BackedUpDisk(
                uuid="u0",
                size=new.size,
                fingerprint=new.fingerprint,
                read=counts.read,
                stored=counts.stored,
            )
            manifest = Manifest(
                id=backup,
                instance=NAME,
                instance_uuid="i0",
                time=1e9 + self.count,
                mode=Mode.COMPARE,
                base=base.id if base else None,
                disks=(disk,),
            )
            if finish:
                self.directory.finish(manifest, [new])
        return manifest

    def content(self, backup: str) -> str:
        """What anybody reads with the tools of QEMU."""
        out = self.work / "out.raw"
        argv = ["qemu-img", "convert", "-O", "raw", str(self.directory.disk(backup, 0)), str(out)]
        subprocess.run(argv, check=True)
        return hashlib.sha256(out.read_bytes()[: self.disk.stat().st_size]).hexdigest()

    def truth(self) -> str:
        return hashlib.sha256(self.disk.read_bytes()).hexdigest()

    def check(self, backup: str) -> None:
        manifest = self.directory.find(backup)
        sums = self.directory.read_sums(manifest, 0)
        path = str(self.directory.disk(backup, 0))
        with served.serve(path, "qcow2", self.work, contexts=[nbd.ALLOCATION]) as source:
            copying.check(source, sums, "disk 0", lambda *_: None)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_second_backup_stores_only_what_differs(bench: Bench) -> None:
    bench.write(0, os.urandom(3 * CHUNK))
    assert bench.backup().disks[0].stored == 3 * CHUNK
    bench.write(CHUNK, b"x")
    bench.write(SIZE - 1, b"y")
    second = bench.backup()
    assert second.disks[0].stored == CHUNK + 512
    assert bench.content(second.id) == bench.truth()


def test_what_became_zero_is_zero(bench: Bench) -> None:
    bench.write(0, os.urandom(3 * CHUNK))
    bench.backup()
    with bench.disk.open("r+b") as stream:
        stream.truncate(0)
        stream.truncate(SIZE)
    second = bench.backup()
    assert second.disks[0].read == 0
    assert bench.content(second.id) == bench.truth()
    bench.check(second.id)


def test_a_disk_that_has_grown(bench: Bench) -> None:
    bench.write(SIZE - 512, b"a" * 512)
    bench.backup()
    os.truncate(bench.disk, SIZE + 3 * CHUNK)
    bench.write(SIZE + CHUNK, b"b" * 9)
    second = bench.backup()
    bench.check(second.id)
    assert bench.content(second.id) == bench.truth()


def test_any_backup_may_be_removed_and_the_others_stay_right(bench: Bench) -> None:
    chance = random.Random(4)
    truths: dict[str, str] = {}
    for _ in range(5):
        bench.write(chance.randrange(SIZE - 70000), chance.randbytes(70000))
        truths[bench.backup().id] = bench.truth()
    order = sorted(truths)
    for gone in (order[2], order[0], order[4]):
        with bench.directory.lock():
            bench.directory.remove([gone], lambda *_: None)
        del truths[gone]
        for backup, truth in truths.items():
            assert bench.content(backup) == truth
            bench.check(backup)
    assert [each.id for each in bench.directory.list_all()] == sorted(truths)
    left = {path.name.split(".")[0] for path in bench.directory.path.glob("2*")}
    assert left == {*truths, *(f"{backup}-0" for backup in truths)}


def test_a_removal_that_was_cut_off_is_completed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(0, os.urandom(CHUNK))
    first = bench.backup()
    bench.write(CHUNK, os.urandom(CHUNK))
    second = bench.backup()
    with monkeypatch.context() as broken, bench.directory.lock():
        broken.setattr(Directory, "_remove_disk", lambda *_: (_ for _ in ()).throw(OSError(5, "x")))
        with pytest.raises(errors.GenericError, match="cannot remove"):
            bench.directory.remove([first.id], lambda *_: None)
    assert [each.id for each in bench.directory.list_all()] == [second.id]
    with bench.directory.lock():
        pass
    assert not list(bench.directory.path.glob(f"{first.id}*"))
    assert bench.content(second.id) == bench.truth()


def test_what_was_not_finished_goes(bench: Bench) -> None:
    bench.write(0, os.urandom(CHUNK))
    first = bench.backup()
    half = bench.backup(finish=False)
    assert [each.id for each in bench.directory.list_all()] == [first.id]
    third = bench.backup()
    assert not list(bench.directory.path.glob(f"{half.id}*"))
    assert bench.content(third.id) == bench.truth()


def test_damage_is_noticed_with_its_place(bench: Bench) -> None:
    bench.write(0, os.urandom(4 * CHUNK))
    made = bench.backup()
    path = str(bench.directory.disk(made.id, 0))
    subprocess.run(
        ["qemu-io", "-f", "qcow2", "-c", f"write -P 1 {2 * CHUNK} 512", path],
        check=True,
        capture_output=True,
    )
    with pytest.raises(errors.GenericError, match=f"bytes {2 * CHUNK} to {3 * CHUNK - 1}"):
        bench.check(made.id)


def test_damaged_checksums_and_manifests_say_which_file(bench: Bench) -> None:
    made = bench.backup()
    sums = bench.directory.path / f"{made.id}-0.sums"
    sums.write_bytes(sums.read_bytes()[:-1])
    with pytest.raises(errors.GenericError, match=f"{made.id}-0.sums"):
        bench.directory.read_sums(made, 0)
    (bench.directory.path / f"{made.id}.json").write_text("{")
    with pytest.raises(errors.GenericError, match=f"{made.id}.json: it is damaged"):
        bench.directory.find(made.id)


def test_a_damaged_manifest_is_listed_among_the_good_ones(bench: Bench) -> None:
    first, second = bench.backup(), bench.backup()
    (bench.directory.path / f"{first.id}.json").write_text("{")
    (bench.directory.path / "notes.json").write_text("of the user")
    bad, good = bench.directory.list_all()
    assert (bad.id, bad.instance) == (first.id, first.instance)
    assert make_id(bad.time) == first.id
    assert f"{first.id}.json: it is damaged" in bad.damage
    assert good == second
    with bench.directory.lock():
        bench.directory.remove([first.id], lambda *_: None)
    assert bench.directory.list_all() == [second]
    bench.check(second.id)


def test_a_file_that_is_built_on_something_outside_is_refused(bench: Bench, tmp_path: Path) -> None:
    made = bench.backup()
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * 512)
    path = bench.directory.disk(made.id, 0)
    path.unlink()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-b", secret, "-F", "raw", path], check=True
    )
    with pytest.raises(errors.GenericError, match="not a file of a backup"):
        bench.directory.check_chain(made.id, 0)


def test_two_at_a_time_are_refused(bench: Bench) -> None:
    with (
        bench.directory.lock(),
        pytest.raises(errors.GenericError, match="are locked"),
        bench.directory.lock(),
    ):
        pass
    with bench.directory.lock(shared=True), bench.directory.lock(shared=True):
        pass


def test_a_repository_that_is_not_mounted(tmp_path: Path) -> None:
    missing = Directory(tmp_path / "nowhere", NAME)
    with pytest.raises(errors.GenericError, match="mount it"), missing.lock():
        pass
    assert not (tmp_path / "nowhere").exists()


def test_restored_over_other_content(bench: Bench, tmp_path: Path) -> None:
    bench.write(CHUNK, os.urandom(CHUNK))
    made = bench.backup()
    target = tmp_path / "target.raw"
    target.write_bytes(os.urandom(SIZE))
    sums = bench.directory.read_sums(made, 0)
    with (
        served.serve(str(bench.directory.disk(made.id, 0)), "qcow2", bench.work) as source,
        served.serve(str(target), "raw", bench.work, write=True) as writer,
    ):
        assert copying.restore(source, writer, sums, lambda *_: None) < SIZE
    assert hashlib.sha256(target.read_bytes()).hexdigest() == bench.truth()


def test_a_server_that_cannot_open_says_why(bench: Bench) -> None:
    server = served.serve(str(bench.work / "nowhere"), "raw", bench.work)
    with pytest.raises(errors.BlockDeviceError, match="nowhere"), server:
        pass
    assert not list(bench.work.iterdir())
