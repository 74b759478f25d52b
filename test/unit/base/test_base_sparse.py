"""What is zero is found without reading holes, and nothing old is left where zeros shall be."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti.base import sparse

MIB = 1024 * 1024
PART = st.tuples(st.sampled_from(["hole", "zeros", "data"]), st.integers(1, 3 * MIB))


@contextmanager
def open_file(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


def write(path: Path, parts: list[tuple[str, int]]) -> bytes:
    with path.open("wb") as stream:
        for kind, size in parts:
            if kind == "hole":
                stream.seek(size, os.SEEK_CUR)
            else:
                stream.write(bytes(size) if kind == "zeros" else os.urandom(size))
        stream.truncate(stream.tell())
    return path.read_bytes()


@given(st.lists(PART, max_size=6))
@examples(30)
def test_a_copy_is_the_same_whatever_the_target_held(parts: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "source", Path(directory) / "target"
        content = write(source, parts)
        target.write_bytes(b"\xff" * len(content))
        copy(source, target, len(content))
        assert target.read_bytes() == content


def copy(source: Path, target: Path, size: int) -> None:
    position = 0
    with open_file(source) as reading, open_file(target) as writing:
        for piece in sparse.pieces(reading, size):
            if piece.data is None:
                assert sum(sparse.clear(writing, position, piece.size)) == piece.size
            else:
                assert 0 < len(piece.data) == piece.size <= sparse.CHUNK
                sparse.write(writing, position, piece.data)
            position += piece.size
    assert position == size


def test_holes_cost_nothing(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    with file.open("wb") as stream:
        stream.seek(300 * MIB)
        stream.write(b"x")
        stream.truncate(1 << 30)
    with open_file(file) as fd:
        found = list(sparse.pieces(fd, 1 << 30))
    assert [len(piece.data or b"") for piece in found if piece.data] == [4096]
    assert max(piece.size for piece in found) == 256 * MIB
    assert sum(piece.size for piece in found) == 1 << 30


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"x" * 100)
    with open_file(tmp_path / "disk") as fd, pytest.raises(OSError, match="ends before 101 bytes"):
        list(sparse.pieces(fd, 101))


def test_clearing_a_file_frees_its_room(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(b"\xff" * (4 * MIB))
    with open_file(file) as fd:
        assert list(sparse.clear(fd, MIB + 5, 2 * MIB)) == [2 * MIB]
    content = file.read_bytes()
    assert content == b"\xff" * (MIB + 5) + bytes(2 * MIB) + b"\xff" * (MIB - 5)
    assert file.stat().st_blocks * 512 < 3 * MIB


def test_where_the_kernel_cannot_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "_fallocate", lambda *_range: False)
    file = tmp_path / "disk"
    with file.open("wb") as stream:
        stream.write(b"\xff" * MIB)
        stream.truncate(100 * MIB)
    with open_file(file) as fd:
        list(sparse.clear(fd, 1000, 100 * MIB - 1000))
    assert file.read_bytes() == b"\xff" * 1000 + bytes(100 * MIB - 1000)
    assert file.stat().st_blocks * 512 < 2 * MIB, "holes were filled"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A block device of 8 MiB, full of old data."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("loop devices need root and losetup")
    backing = tmp_path / "backing"
    backing.write_bytes(b"\xff" * (8 * MIB))
    made = subprocess.run(
        ["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this machine has no free loop device: {made.stderr.strip()}")
    yield Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def test_a_block_device_keeps_nothing_old(device: Path, tmp_path: Path) -> None:
    # neither begins nor ends where a sector does
    content = write(
        tmp_path / "source",
        [("hole", 3 * MIB), ("data", 1000), ("zeros", MIB + 17), ("data", MIB), ("hole", MIB - 3)],
    )
    copy(tmp_path / "source", device, len(content))
    found = device.read_bytes()
    assert found == content + b"\xff" * (8 * MIB - len(content))
    with open_file(device) as fd:
        assert sum(piece.size for piece in sparse.pieces(fd, 8 * MIB)) == 8 * MIB


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    block = 64 * 1024
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"a" * block + bytes(block) + b"c" * block + b"d" * 100)
    new.write_bytes(b"a" * block + b"x" * block + b"c" * block + b"y" * 100)
    written = position = 0
    with old.open("rb") as source, new.open("r+b") as target:
        for piece in sparse.pieces(source.fileno(), old.stat().st_size):
            written += sparse.write_changed(target.fileno(), position, piece)
            position += piece.size
    assert new.read_bytes() == old.read_bytes()
    assert written == block + 100
