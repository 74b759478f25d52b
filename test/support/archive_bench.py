"""A disk in memory, and a repository of a real restic or borg that it is backed up to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ganeti.backup import definition, piping, stream
from ganeti.backup.archive import Archive
from ganeti.backup.definition import Definition
from ganeti.backup.sums import CHUNK, Sums, digest
from ganeti.base.clock import SYSTEM
from ganeti.model.backup import BackedUpDisk, Manifest, Mode, make_id

NAME = "web1.example.com"
SIZE = 40 * CHUNK + 512


class Disk:
    """A sink that is a disk in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)

    def write(self, offset: int, data: bytes) -> None:
        self.content[offset : offset + len(data)] = data

    def zero(self, offset: int, length: int) -> None:
        self.content[offset : offset + length] = bytes(length)

    def flush(self) -> None: ...


class Bench:
    """A disk that changes, and a repository that it is backed up to."""

    def __init__(self, known: Definition, work: Path) -> None:
        self.definition, self.work = known, work
        self.disk = Disk(bytes(SIZE))
        self.count = 0

    @property
    def archive(self) -> Archive:
        return Archive(self.definition, NAME, SYSTEM, lambda _seconds: pytest.fail("it waits"))

    def backup(self, *, after: Callable[[], None] = lambda: None) -> tuple[Manifest, bytes]:
        """Store all chunks that differ; ``after`` is called before it ends."""
        self.count += 1
        backup, found = make_id(1e9 + self.count), self.archive
        with found.lock():
            base = found.newest()
            old = found.find_base(base, 0) if base is not None else None
            content, known = bytes(self.disk.content), old or Sums(SIZE)
            new = known.resize(SIZE)
            below = (base, 0) if base is not None and old is not None else None
            with found.open_disk(backup, 0, SIZE, below, self.work) as sink:
                stored = _store(content, known, new, sink)
                after()
            disk = BackedUpDisk(
                uuid="u0",
                size=SIZE,
                fingerprint=new.fingerprint,
                stored=stored,
                chain=found.find_chain(*below) if below else (),
            )
            manifest = Manifest(
                id=backup,
                instance=NAME,
                instance_uuid="i0",
                time=1e9 + self.count,
                mode=Mode.COMPARE,
                disks=(disk,),
                settings="[instance]",
            )
            found.finish(manifest, [new])
        return manifest, content

    def restore(self, backup: str) -> bytes:
        target, found = Disk(b"\1" * SIZE), self.archive
        with found.lock(shared=True):
            manifest = found.find(backup)
            assert manifest.settings == "[instance]"
            found.restore_disk(manifest, 0, target, self.work, lambda *_: None)
        return bytes(target.content)

    def names(self) -> list[str]:
        argv = self.definition.program.build_list(wait=False)
        with piping.start(self.definition, argv, lambda: None) as child:
            items = self.definition.program.parse_list(child.read_all().decode())
        return sorted(item.name for item in items)


def _store(content: bytes, old: Sums, new: Sums, sink: stream.Writer | Disk) -> int:
    stored = 0
    for at in range(0, SIZE, CHUNK):
        data = content[at : at + CHUNK]
        value = digest(data)
        if value != old.get(at // CHUNK):
            new.set(at // CHUNK, value)
            if any(data):
                sink.write(at, data)
                stored += len(data)
            else:
                sink.zero(at, len(data))
    return stored


def describe(place: Path, program: str) -> Definition:
    """A repository that is made, with its password in a file."""
    place.mkdir()
    (place / "password").write_text("of a test\n")
    (place / "password").chmod(0o600)
    file = place / "offsite"
    file.write_text(
        f"RESTIC_REPOSITORY={place}/r\nRESTIC_PASSWORD_FILE={place}/password\n"
        f"RESTIC_CACHE_DIR={place}/cache\n"
        if program == "restic"
        else f"# of a test\nexport BORG_REPO='{place}/r'\nBORG_BASE_DIR={place}/base\n"
        f"BORG_PASSCOMMAND='cat {place}/password'\n"
    )
    file.chmod(0o600)
    known = definition.load(file)
    argv = ["restic", "-q", "init"] if program == "restic" else ["borg", "init", "-e", "repokey"]
    made = subprocess.run(argv, env=dict(known.environment), capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    return known


def make_bench(program: str, place: Path) -> Bench:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return Bench(describe(place, program), place)
