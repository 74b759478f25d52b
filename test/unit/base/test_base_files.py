"""Files: replaced in one step whatever happens, with the right mode; locks; links."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import files

REPOSITORY = Path(__file__).parents[3]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A child that runs ``code`` with our packages; its outputs are read by the test."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    with child:
        pass


# writing


@pytest.mark.parametrize("content", ["", "text ü", b"\0\xff" * 1_000_000])
def test_content_and_mode_are_those_asked_for(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        files.write_atomic(path, content, mode=0o644)
    finally:
        os.umask(before)
    expected = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == expected
    assert mode_of(path) == 0o644
    assert os.listdir(tmp_path) == ["file"]


def test_replacing_gives_the_new_mode_and_leaves_readers_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, "old", mode=0o644)
    with path.open() as reader:
        files.write_atomic(path, "new", mode=0o400)
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert mode_of(path) == 0o400


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(victim)
    files.write_atomic(link, "new")
    assert victim.read_text() == "precious"
    assert not link.is_symlink()


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    target.mkdir()
    (target / "inside").write_text("x")
    with pytest.raises(OSError, match="directory"):
        files.write_atomic(target, "new")
    assert os.listdir(tmp_path) == ["directory"]
    with pytest.raises(FileNotFoundError):
        files.write_atomic(tmp_path / "missing" / "file", "new")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    made = files.tempfile.mkstemp

    def on_a_full_disk(**where: object) -> tuple[int, str]:
        fd, name = made(**where)
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, fd)
        os.close(full)
        return fd, name

    monkeypatch.setattr(files.tempfile, "mkstemp", on_a_full_disk)
    monkeypatch.setattr(os, "fchmod", lambda _fd, _mode: None)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


#: Stops for ever at the given call of os, after the given number of calls.
_STOP_AT = """
import os, sys, threading
from pathlib import Path
from ganeti.base import files
path, name = Path(sys.argv[1]), sys.argv[2]
real = getattr(os, name)
def stop(*args, **kwargs):
    if name == "write":
        real(args[0], bytes(args[1])[:1000])
    print("there", flush=True)
    threading.Event().wait()
setattr(os, name, stop)
files.write_atomic(path, b"n" * 5000)
"""


@pytest.mark.parametrize("step", ["fchmod", "write", "fsync", "rename"])
def test_a_writer_killed_at_any_step_leaves_the_old_content(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, "old")
    child = python(_STOP_AT, path, step)
    assert line_of(child) == "there"
    kill(child)
    assert path.read_text() == "old"
    # What is left does not look like the file, and does not disturb the next writer.
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == ["file"]
    files.write_atomic(path, "new")
    assert path.read_text() == "new"


_WRITE_ON_AND_ON = """
import sys
from pathlib import Path
from ganeti.base import files
path = Path(sys.argv[1])
print("there", flush=True)
number = 0
while True:
    number += 1
    files.write_atomic(path, (b"%d " % number) * 20000, fsync=False)
"""


def test_readers_of_a_file_that_is_written_again_and_again_see_whole_contents(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"0 " * 20000)
    child = python(_WRITE_ON_AND_ON, path)
    assert line_of(child) == "there"
    seen = set()
    for _ in range(200):
        words = path.read_bytes().split()
        assert len(words) == 20000
        assert len(set(words)) == 1
        seen.add(words[0])
    kill(child)
    words = path.read_bytes().split()
    assert (len(words), len(set(words))) == (20000, 1)


def test_many_files_are_replaced_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "job-1").write_text("something longer that was there")
    contents = {f"job-{n}": b"x" * n for n in range(1, 200)}
    files.write_many(tmp_path, {**contents, "serial": b"199\n", "keys/a": b"7"})
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert found == {**contents, "serial": b"199\n"}
    assert (tmp_path / "keys" / "a").read_bytes() == b"7"
    files.write_many(tmp_path, {})


def test_many_files_on_a_disk_that_refuses_one(tmp_path: Path) -> None:
    (tmp_path / "job-1").write_text("old")
    with pytest.raises(OSError, match="No such file"):
        files.write_many(tmp_path, {"job-1": b"new", "nowhere/x": b"new"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job-1"]


def test_rests_of_killed_writers_are_swept_and_nothing_else(tmp_path: Path) -> None:
    rests = (".config.data.056ir43c", ".config.data._mpmg525", ".config.journal.abcdefgh")
    others = ("config.data", ".config.data.bak", ".config.data.056ir43cd", ".other.056ir43c")
    for name in (*rests, *others):
        (tmp_path / name).write_text("x")
    files.sweep(tmp_path, ("config.data", "config.journal"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


# directories


def test_directories_are_made_with_their_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    before = os.umask(0o077)
    try:
        files.ensure_dir(path, 0o775)
    finally:
        os.umask(before)
    assert mode_of(path) == 0o775
    files.ensure_dir(path, 0o700)
    assert mode_of(path) == 0o775


def test_a_file_where_a_directory_shall_be_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("")
    with pytest.raises(FileExistsError):
        files.ensure_dir(path)
    with pytest.raises(OSError, match="directory"):
        files.ensure_dir(path / "below")


def test_removing_tells_whether_there_was_something(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("")
    assert files.remove(path) is True
    assert files.remove(path) is False


def test_what_is_inside_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "out").symlink_to("/etc")
    (tmp_path / "alias").symlink_to(root)
    for good in (root, root / "x", root / "sub" / ".." / "y", tmp_path / "alias" / "sub"):
        assert files.is_inside(good, root)
    for bad in (
        tmp_path,
        tmp_path / "root2",
        root / "..",
        root / "out" / "passwd",
        root / "sub/../../x",
        "root/x",
        f"{root}/a\0b",
    ):
        assert not files.is_inside(bad, root)
    assert files.is_inside("/anything", Path("/"))


# locks

_HOLD = """
import sys
from pathlib import Path
from ganeti.base import files
files.FileLock(Path(sys.argv[1])).acquire(blocking=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_excludes_other_processes_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = python(_HOLD, path)
    assert line_of(child) == "held"
    lock = files.FileLock(path)
    with pytest.raises(errors.LockError, match="locked by another process"):
        lock.acquire()
    assert not lock.held
    assert files.is_locked(path)
    child.communicate(timeout=10)
    lock.acquire()
    assert lock.held
    lock.release()
    lock.release()
    assert not files.is_locked(path)


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = python(_HOLD, path)
    assert line_of(child) == "held"
    kill(child)
    with files.FileLock(path).hold(blocking=False):
        pass


def test_a_blocking_acquire_waits_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = files.FileLock(path)
    held.acquire()
    child = python(_HOLD, path)
    got: list[str] = []
    waiter = threading.Thread(target=lambda: got.append(line_of(child)))
    waiter.start()
    # Nothing can come before the release, however long the child takes to start.
    assert got == []
    held.release()
    waiter.join(10)
    assert got == ["held"]
    kill(child)


def test_locks_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = files.FileLock(path), files.FileLock(path)
    with first.hold(), pytest.raises(errors.LockError):
        second.acquire()
    with second.hold():
        assert second.fileno() > 2
    with pytest.raises(errors.ProgrammerError, match="not locked"):
        second.fileno()


def test_a_second_acquire_is_a_bug_instead_of_a_wait_for_ever(tmp_path: Path) -> None:
    lock = files.FileLock(tmp_path / "lock")
    with lock.hold(), pytest.raises(errors.ProgrammerError, match="already"):
        lock.acquire(blocking=True)
    assert not lock.held


def test_asking_for_a_lock_makes_no_file_and_needs_no_right_to_write(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not files.is_locked(path)
    assert not path.exists()


def test_children_do_not_inherit_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = files.FileLock(path)
    lock.acquire()
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('there', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        close_fds=False,
    )
    assert line_of(child) == "there"
    lock.release()
    with files.FileLock(path).hold(blocking=False):
        kill(child)
