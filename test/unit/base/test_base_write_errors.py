"""What is said when a file cannot be written: which one, where it lies, why, and what to do."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import files
from ganeti.base.journal import Journal


def explain(path: Path, number: int, size: int = 5000) -> str:
    with pytest.raises(files.WriteError) as caught, files.writing(path, size):
        raise OSError(number, os.strerror(number))
    return errors.text(files.failure(caught.value))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "No space left on device ("),
        (errno.EDQUOT, "Disk quota exceeded ("),
        (errno.ENOSPC, " KiB free, 5 KiB needed; make room on /"),
        (errno.EROFS, "Read-only file system (/"),
        (errno.EROFS, " is mounted read-only)"),
        (errno.EIO, "Input/output error (the device below /"),
    ],
)
def test_the_file_the_place_and_the_cause_are_named(tmp_path: Path, number: int, text: str) -> None:
    message = explain(tmp_path / "a", number)
    assert message.startswith(f"cannot write {tmp_path}/a: ")
    assert text in message


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_atomic(tmp_path / "none" / "a", "x")
    assert "none" in errors.text(files.failure(caught.value))
    with pytest.raises(PermissionError), files.writing(tmp_path, 1):
        raise PermissionError(errno.EACCES, "no", "/a/b")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_a_disk_that_is_full_and_read_only_and_writable_again(small: Path) -> None:
    path = small / "a"
    files.write_atomic(path, "old")
    with pytest.raises(files.WriteError) as caught:
        files.write_atomic(path, b"x" * 100_000)
    text = errors.text(files.failure(caught.value))
    assert text.startswith(f"cannot write {path}: No space left on device (")
    assert text.endswith(f" KiB free, 98 KiB needed; make room on {small})")
    with pytest.raises(files.WriteError):
        files.write_many(small, {"a": b"x" * 40_000, "b": b"x" * 40_000})
    journal = Journal(small / "journal")
    journal.open()
    journal.append([{"a": "1"}])
    with pytest.raises(errors.FileError, match=r"nothing was changed: cannot write .*make room"):
        journal.append([{"a": "x" * 100_000}])
    journal.append([{"a": "2"}])
    journal.close()
    assert sorted(entry.name for entry in small.iterdir()) == ["a", "journal"]
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    with pytest.raises(files.WriteError) as caught:
        files.write_atomic(path, "new")
    assert f"({small} is mounted read-only)" in errors.text(files.failure(caught.value))
    subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
    files.write_atomic(path, "new")
    assert path.read_text() == "new"
    assert len((small / "journal").read_bytes().splitlines()) == 2
