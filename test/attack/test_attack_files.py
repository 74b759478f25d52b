"""Files of the master as a broken disk, an old backup or a clumsy hand leaves them.

What cannot be right is refused at the start, by its place; nothing is guessed and nothing is
overwritten. With the good file everything continues.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arena import WEB1, Arena
from waiting import wait_for

from ganeti import constants
from ganeti.base.file_journal import FileJournal


@contextmanager
def pause_master(arena: Arena) -> Iterator[Path]:
    """The data directory of a master that ended well; it is put back and started again.

    If the master runs in the end, its data stays: it counts more than the old one by then.
    """
    cluster = arena.cluster
    stop_master(arena)
    data = cluster.paths().data
    kept = cluster.directory / "kept"
    shutil.copytree(data, kept, symlinks=True)
    try:
        yield data
    finally:
        if cluster.pid(constants.MASTERD) is None:
            put_back(kept, data)
            arena.restart()
        shutil.rmtree(kept)
        arena.check()


def put_back(kept: Path, data: Path) -> None:
    """Let a directory have the files of another one; those that are the same are not touched."""
    for path in list(data.rglob("*")):
        if not path.is_dir() and not os.path.lexists(kept / path.relative_to(data)):
            path.unlink()
    for path in kept.rglob("*"):
        target = data / path.relative_to(kept)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif not target.exists() or target.read_bytes() != path.read_bytes():
            target.unlink(missing_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)


def stop_master(arena: Arena) -> None:
    pid = arena.cluster.pid(constants.MASTERD)
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: arena.cluster.pid(constants.MASTERD) is None, "the master ends", timeout=60)


def check_refusal(arena: Arena, path: Path, new: bytes) -> str:
    """What the start says with another content of a file, which it leaves as it is."""
    path.write_bytes(new)
    started = arena.cluster.start_master()
    assert started.code != 0, "it started"
    assert path.name in started.err, started.err
    assert "Traceback" not in started.err
    assert path.read_bytes() == new
    return started.err


def edited_digit(data: bytes) -> bytes:
    """The serial number of the configuration, one digit further."""
    serial = max(int(found) for found in re.findall(rb'"serial_no": ?(\d+)', data))
    return data.replace(b"%d" % serial, b"%d" % (serial + 7))


CONFIGS: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: b"\xff\xfe" + data[2:],
    "deep_nesting": lambda data: b"[" * 200_000,
    "unknown_key": lambda data: data.replace(b"{", b'{"evil": 1,', 1),
    "duplicate_key": lambda data: data.replace(b'"cluster":', b'"nodes":{},"cluster":', 1),
    "edited_digit": edited_digit,
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_config_data(arena: Arena, kind: str) -> None:
    with pause_master(arena) as data:
        path = data / "config.data"
        good = path.read_bytes()
        new = CONFIGS[kind](good)
        assert new != good
        check_refusal(arena, path, new)


def test_config_journal_with_a_flipped_bit(arena: Arena) -> None:
    cluster = arena.cluster
    for tag in ("one", "two", "three"):
        cluster.ok("cluster add-tags", tag)
    cluster.kill_master()
    path = cluster.paths().journal_file
    good = path.read_bytes()
    try:
        assert good.count(b"\n") >= 3
        middle = len(good) // 3
        said = check_refusal(
            arena, path, good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
        )
        assert "line" in said
    finally:
        path.write_bytes(good)
        arena.restart()
    assert set(cluster.ok("cluster list-tags").lines) >= {"one", "two", "three"}


def test_config_journal_with_a_torn_last_line(arena: Arena) -> None:
    """It was never acknowledged: dropped, and everything before it is there."""
    cluster = arena.cluster
    cluster.ok("cluster add-tags", "before")
    cluster.kill_master()
    path = cluster.paths().journal_file
    path.write_bytes(path.read_bytes() + b'{"half a li')
    arena.restart()
    assert "before" in cluster.ok("cluster list-tags").lines


JOBS: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbage": lambda data: b"\xff" * 1000,
    "deep_nesting": lambda data: b"[" * 200_000,
    "wrong_types": lambda data: b'{"id": [], "ops": {"a": 1}}',
    "other_id": lambda data: re.sub(rb'"id": ?\d+', b'"id": 7777777', data, count=1),
}


@pytest.mark.parametrize("kind", JOBS)
def test_job_file(arena: Arena, kind: str) -> None:
    """Moved aside and told; everything else continues, and no id is given twice."""
    cluster = arena.cluster
    number = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
    cluster.ok("job wait", number)
    queue = cluster.paths().queue
    wait_for(lambda: not FileJournal(queue).read_pending(), "the files to follow the journal")
    cluster.kill_master()
    path = queue / f"job-{number}"
    path.write_bytes(JOBS[kind](path.read_bytes()))
    arena.restart()
    assert (queue / f"job-{number}.corrupted").exists()
    assert f"job-{number}" in (cluster.paths().log / "master-daemon.log").read_text()
    newer = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
    assert int(newer) > int(number)


@pytest.mark.parametrize(
    "content",
    [b"garbage\n", b"", b"-5\n", b"9" * 5000],
    ids=["garbage", "empty", "negative", "5000_digits"],
)
def test_serial_of_jobs(arena: Arena, content: bytes) -> None:
    """Refused, or counted from what is there: never a number that was given out."""
    cluster = arena.cluster
    number = int(cluster.ok("debug delay --submit", "0.001").err.split()[-1])
    cluster.ok("job wait", str(number))
    with pause_master(arena) as data:
        path = data / "queue" / "serial"
        path.write_bytes(content)
        started = cluster.start_master()
        if started.code:
            assert "serial" in started.err
            assert "Traceback" not in started.err
        else:
            newer = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
            assert int(newer) > number


def test_serial_of_jobs_set_back(arena: Arena) -> None:
    cluster = arena.cluster
    number = int(cluster.ok("debug delay --submit", "0.001").err.split()[-1])
    cluster.ok("job wait", str(number))
    with pause_master(arena) as data:
        (data / "queue" / "serial").write_text("1\n")
        assert cluster.start_master().code == 0
        newer = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
        assert int(newer) > number


def test_journal_of_the_queue_with_garbage(arena: Arena) -> None:
    cluster = arena.cluster
    cluster.ok("debug delay", "0.001")
    cluster.kill_master()
    path = cluster.paths().queue / "journal"
    good = path.read_bytes()
    try:
        check_refusal(arena, path, b"\x00garbage\n" + good)
    finally:
        path.write_bytes(good)
        arena.restart()


def test_old_data_directory_is_restored(arena: Arena) -> None:
    """The other candidates know better."""
    cluster = arena.cluster
    with pause_master(arena) as data:
        old = cluster.directory / "old"
        shutil.copytree(data, old, symlinks=True)
        arena.restart()
        cluster.ok("cluster add-tags", "acknowledged")
        stop_master(arena)
        new = cluster.directory / "new"
        shutil.copytree(data, new, symlinks=True)
        put_back(old, data)
        started = cluster.start_master()
        assert started.code != 0, "it began with old data"
        assert "newer" in started.err, started.err
        put_back(new, data)
        arena.restart()
    assert "acknowledged" in cluster.ok("cluster list-tags").lines


def test_config_data_with_names_that_are_paths(arena: Arena) -> None:
    """A name that leads out of a directory does not come from the file either."""
    with pause_master(arena) as data:
        path = data / "config.data"
        found = json.loads(path.read_bytes())
        [one] = [item for item in found["instances"].values() if item["name"] == WEB1]
        one["name"] = "../../etc/evil"
        path.write_text(json.dumps(found))
        started = arena.cluster.start_master()
        if started.code == 0:
            assert arena.cluster.gnt("instance startup", "../../etc/evil").code != 0
            assert arena.cluster.gnt("cluster verify").code != 0
