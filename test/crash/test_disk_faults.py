"""The tool that ends a process in the middle of its writes, and forgets what was not flushed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from disk_faults import DiskFaults, Point
from ganeti.base import files
top = Path({top!r})
point = Point({label!r}, {number}, {way!r})
faults = DiskFaults(top, (top / "data",), point, last_words=lambda text: None)
faults.install()
{body}
"""
HERE = Path(__file__).parent


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    (made / "a").write_text("old content")
    return made


def end_at(data: Path, label: str, way: str, body: str, number: int = 1) -> None:
    text = PROGRAM.format(
        paths=[str(HERE), str(HERE.parents[1])],
        top=str(data.parent),
        label=f"start: {label}",
        number=number,
        way=way,
        body=body,
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert ran.returncode == -9, ran.stderr


ATOMIC = 'files.write_atomic(top / "data/a", "new")'
CARELESS = """
(top / "data/b").write_text("")
fd = os.open(top / "data/b", os.O_WRONLY); os.write(fd, b"new"); os.close(fd)
os.rename(top / "data/b", top / "data/a")
files.fsync_dir(top / "data")
os.mkdir(top / "data/last")
"""


@pytest.mark.parametrize(
    ("label", "way", "content"),
    [
        ("write data/new a", "before", "old content"),
        ("write data/new a", "torn", "old content"),
        ("fsync data/new a", "power", "old content"),
        ("rename data/a", "before", "old content"),
        ("rename data/a", "after", "new"),
        ("rename data/a", "power", "old content"),
        ("fsync data", "power", "new"),
    ],
)
def test_a_careful_write_is_old_or_new(data: Path, label: str, way: str, content: str) -> None:
    end_at(data, label, way, ATOMIC)
    assert (data / "a").read_text() == content


def test_half_of_the_bytes(data: Path) -> None:
    body = 'fd = os.open(top / "data/a", os.O_WRONLY | os.O_APPEND); os.write(fd, b"12345678")'
    end_at(data, "write data/a", "torn", body)
    assert (data / "a").read_text() == "old content1234"


def test_content_that_was_not_flushed_is_lost_although_the_name_is_kept(data: Path) -> None:
    end_at(data, "mkdir data/last", "power", CARELESS)
    assert (data / "a").read_text() == ""
    assert not (data / "last").exists()


def test_a_removed_file_comes_back_until_its_directory_is_flushed(data: Path) -> None:
    body = 'os.unlink(top / "data/a"); files.fsync_dir(top / "data")'
    end_at(data, "unlink data/a", "power", body)
    assert (data / "a").read_text() == "old content"
    end_at(data, "fsync data", "power", body)
    assert not (data / "a").exists()


def test_a_shortened_file_is_long_again_until_it_is_flushed(data: Path) -> None:
    body = 'fd = os.open(top / "data/a", os.O_RDWR); os.ftruncate(fd, 3); os.fsync(fd)'
    end_at(data, "truncate data/a", "power", body)
    assert (data / "a").read_text() == "old content"
    end_at(data, "fsync data/a", "power", body)
    assert (data / "a").read_text() == "old"


def test_what_is_elsewhere_does_not_count(data: Path) -> None:
    body = f"""
fd = os.open({str(data.parent / "log")!r}, os.O_WRONLY | os.O_CREAT); os.write(fd, b"kept")
{ATOMIC}
"""
    end_at(data, "fsync data", "power", body)
    assert (data.parent / "log").read_text() == "kept"
