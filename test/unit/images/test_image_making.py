"""Making images of files: real programs, confined."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import needs_programs, needs_root

from ganeti import errors
from ganeti.images import confine, making, writing

pytestmark = [
    needs_programs("qemu-img"),
    needs_root("to confine programs"),
]
MIB = 1024 * 1024


def ignore(_done: int, _size: int) -> None:
    pass


@pytest.fixture
def raw_disk(tmp_path: Path) -> Path:
    """A disk of 8 MiB with a partition table and data in two places."""
    path = tmp_path / "disk.raw"
    with path.open("wb") as stream:
        stream.write(bytes(510) + b"\x55\xaa")
        stream.seek(3 * MIB)
        stream.write(os.urandom(100_000))
        stream.truncate(8 * MIB)
    return path


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "work"
    path.mkdir(mode=0o700)
    return path


def make(path: Path, work: Path, wanted: str | None = None) -> tuple[Path, making.Made]:
    copy = work / "source"
    shutil.copyfile(path, copy)
    fd = os.open(copy, os.O_RDWR)
    try:
        return making.make(work, fd, wanted, ignore)
    finally:
        os.close(fd)


def content(image: Path) -> bytes:
    target = image.with_name("out")
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(image), str(target)], check=True)
    return target.read_bytes()


def convert(path: Path, format: str, *options: str) -> Path:
    target = path.with_suffix(f".{format}")
    subprocess.run(
        ["qemu-img", "convert", "-O", format, *options, str(path), str(target)], check=True
    )
    return target


def pack(path: Path, *names: str) -> Path:
    target = path.with_suffix(".ova")
    with tarfile.open(target, "w") as archive:
        for name in names:
            if name.endswith(".ovf"):
                archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
            else:
                archive.add(path, name)
    return target


@pytest.mark.parametrize("form", ["raw", "gz", "xz", "zst", "qcow2", "vmdk", "ova"])
def test_every_format_gives_the_same_disk(raw_disk: Path, work: Path, form: str) -> None:
    source, format = raw_disk, form
    if form == "gz":
        source, format = raw_disk.with_suffix(".gz"), "raw"
        source.write_bytes(gzip.compress(raw_disk.read_bytes(), 1))
    elif form == "xz":
        source, format = raw_disk.with_suffix(".xz"), "raw"
        source.write_bytes(lzma.compress(raw_disk.read_bytes(), preset=0))
    elif form == "zst":
        source, format = raw_disk.with_suffix(".raw.zst"), "raw"
        subprocess.run(["zstd", "-q", str(raw_disk), "-o", str(source)], check=True)
    elif form in ("qcow2", "vmdk"):
        source = convert(raw_disk, form)
    elif form == "ova":
        disk = convert(raw_disk, "vmdk", "-o", "subformat=streamOptimized")
        source = pack(disk, "web.ovf", "../../web-disk1.vmdk")
    image, made = make(source, work)
    assert (made.format, made.disk_size) == (format, 8)
    assert content(image) == raw_disk.read_bytes()
    assert hashlib.sha256(image.read_bytes()).hexdigest() == made.sha256
    assert image.stat().st_mode & 0o777 == 0o600
    assert image.stat().st_uid == 0


def test_qcow2_that_was_cut_off_is_refused(raw_disk: Path, work: Path) -> None:
    """Where data are missing QEMU would read zeros."""
    path = convert(raw_disk, "qcow2")
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 200_000)
    with pytest.raises(errors.OpPrereqError, match=r"refused: qemu-img"):
        make(path, work)


def test_compressed_file_that_was_cut_off_is_refused(raw_disk: Path, work: Path) -> None:
    path = raw_disk.with_suffix(".xz")
    path.write_bytes(lzma.compress(raw_disk.read_bytes(), preset=0)[:-5000])
    with pytest.raises(errors.OpPrereqError, match=r"the image is refused: xz: .*end of input"):
        make(path, work)


def test_missing_program_is_named(
    raw_disk: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raw_disk.with_suffix(".gz")
    path.write_bytes(gzip.compress(raw_disk.read_bytes(), 1))
    programs = work / "programs"
    programs.mkdir()
    for name in ("unshare", "setpriv", "prlimit"):
        (programs / name).symlink_to(str(shutil.which(name)))
    work.chmod(0o755)
    monkeypatch.setattr("ganeti.base.process.SAFE_PATH", str(programs))
    with pytest.raises(errors.OpPrereqError, match="gzip is missing on the master; install it"):
        make(path, work)


def test_file_that_is_packed_three_times_is_refused(raw_disk: Path, work: Path) -> None:
    path, data = raw_disk.with_suffix(".gz"), raw_disk.read_bytes()
    for layer in range(1, 4):
        data = gzip.compress(data, 1)
        path.write_bytes(data)
        if layer == 2:
            assert make(path, work)[1].disk_size == 8
            for item in work.iterdir():
                item.unlink()
    with pytest.raises(errors.OpPrereqError, match="packed more than twice"):
        make(path, work)


def test_raw_of_no_whole_sectors_is_refused(raw_disk: Path, work: Path) -> None:
    os.truncate(raw_disk, 8 * MIB - 100)
    with pytest.raises(errors.OpPrereqError, match="cut off"):
        make(raw_disk, work)


def test_archives_that_are_no_disk_are_refused(raw_disk: Path, work: Path) -> None:
    disk = convert(raw_disk, "vmdk", "-o", "subformat=streamOptimized")
    for names, match in (
        (("a.vmdk",), "has no .ovf file"),
        (("a.ovf", "a.vmdk", "b.vmdk"), "2 disks"),
        (("a.ovf",), "0 disks"),
    ):
        with pytest.raises(errors.OpPrereqError, match=match):
            make(pack(disk, *names), work)
        for name in ("unpacked1", "source"):
            (work / name).unlink(missing_ok=True)


def test_confined_program_has_nothing(tmp_path: Path) -> None:
    """Neither privileges, nor a network, nor the processes of others."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    limits = confine.Limits(10, 20.0, MIB)
    script = (
        "id -u; grep -c : /proc/net/dev; grep CapEff /proc/self/status;"
        f" cat {secret} 2>&1; kill -0 {os.getpid()} 2>&1; true"
    )
    found = confine.run(["sh", "-c", script], limits)
    assert found.startswith("65534\n1\nCapEff:\t0000000000000000\n")
    assert "Permission denied" in found
    assert "o such process" in found


def test_confined_program_writes_no_more_than_it_may(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
    try:
        with pytest.raises(errors.OpPrereqError, match="refused"):
            confine.run(["cat", "/dev/zero"], confine.Limits(20, 20.0, MIB), stdout=fd)
        assert os.fstat(fd).st_size == MIB
    finally:
        os.close(fd)


def test_writing_makes_zeros_where_the_image_has_none(raw_disk: Path, work: Path) -> None:
    image, made = make(raw_disk, work)
    disk = work / "disk"
    disk.write_bytes(b"old" * (3 * MIB))
    size = disk.stat().st_size
    with image.open("rb") as stream:
        writing.write(stream.fileno(), str(disk), made.disk_size, ignore)
    assert disk.read_bytes()[: 8 * MIB] == raw_disk.read_bytes()
    assert disk.read_bytes()[8 * MIB :] == (b"old" * (3 * MIB))[8 * MIB :]
    assert disk.stat().st_size == size


def test_holes_stay_holes(raw_disk: Path, work: Path) -> None:
    image, made = make(raw_disk, work)
    disk = work / "disk"
    disk.touch()
    os.truncate(disk, 16 * MIB)
    with image.open("rb") as stream:
        writing.write(stream.fileno(), str(disk), made.disk_size, ignore)
    assert disk.stat().st_blocks * 512 < MIB


def test_disk_that_is_too_small_is_named(raw_disk: Path, work: Path) -> None:
    image, made = make(raw_disk, work)
    disk = work / "disk"
    disk.write_bytes(bytes(4 * MIB))
    with (
        image.open("rb") as stream,
        pytest.raises(errors.BlockDeviceError, match=r"cannot be written to .*disk.*smaller"),
    ):
        writing.write(stream.fileno(), str(disk), made.disk_size, ignore)


def test_specification_names_one_file_only() -> None:
    spec = making.node_spec("qcow2", "/proc/self/fd/3")
    assert json.loads(spec.removeprefix("json:")) == {
        "driver": "qcow2",
        "read-only": True,
        "backing": None,
        "file": {"driver": "file", "filename": "/proc/self/fd/3"},
    }
