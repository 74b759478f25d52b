"""Watching a directory: every kind of replacement is seen, nothing ends the watch."""

from __future__ import annotations

import os
import queue
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import files
from ganeti.base.inotify import ANY_NAME, DirectoryWatcher


class Watch:
    """A running watcher whose calls the test takes one by one."""

    def __init__(self, directory: Path) -> None:
        self._calls: queue.Queue[str] = queue.Queue()
        self.watcher = DirectoryWatcher(directory, self._calls.put)

    def read(self) -> str:
        return self._calls.get(timeout=10)

    def nothing_more(self) -> bool:
        return self._calls.empty()

    def read_until(self, name: str) -> list[str]:
        """Names up to this one."""
        names = [self.read()]
        while names[-1] != name:
            names.append(self.read())
        return names


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    one = Watch(tmp_path)
    one.watcher.start()
    yield one
    one.watcher.stop()


def test_writing_replacing_and_removing_are_seen(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    assert watch.read() == "file"
    other = tmp_path / ".new"
    other.write_text("y")
    other.rename(path)
    assert watch.read_until("file") == [".new", ".new", "file"]
    path.unlink()
    assert watch.read() == "file"


def test_an_atomic_write_is_seen_with_the_new_content_there(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in ("one", "two"):
        files.write_atomic(path, content)
        watch.read_until("file")
        assert path.read_text() == content


def test_a_file_that_comes_from_elsewhere_is_seen(
    watch: Watch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("elsewhere") / "x"
    source.write_text("x")
    source.rename(tmp_path / "arrived")
    assert watch.read() == "arrived"


def test_what_happened_between_making_and_starting_is_told(tmp_path: Path) -> None:
    one = Watch(tmp_path)
    (tmp_path / "early").write_text("x")
    one.watcher.start()
    assert one.read() == "early"
    one.watcher.stop()


def test_an_error_in_the_callback_is_logged_and_the_watch_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = threading.Event()

    def on_change(name: str) -> None:
        if name == "bad":
            raise ValueError("cannot read it")
        seen.set()

    watcher = DirectoryWatcher(tmp_path, on_change)
    watcher.start()
    (tmp_path / "bad").write_text("")
    (tmp_path / "good").write_text("")
    assert seen.wait(10)
    watcher.stop()
    assert "bad could not be handled" in caplog.text
    assert "cannot read it" in caplog.text


def test_a_name_that_is_no_utf8_does_not_blind_the_watch(watch: Watch, tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9", "w"):
        pass
    assert watch.read() == ANY_NAME
    (tmp_path / "next").write_text("")
    assert watch.read() == "next"


def test_lost_events_are_told(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("this machine keeps too many events")
    one = Watch(tmp_path)
    for number in range(limit // 2 + 10):
        # Two names, as the kernel merges equal events that follow each other.
        os.close(os.open(tmp_path / f"f{number % 2}", os.O_WRONLY | os.O_CREAT))
        os.unlink(tmp_path / f"f{number % 2}")
    one.watcher.start()
    assert ANY_NAME in one.read_until(ANY_NAME)
    one.watcher.stop()


def test_the_end_of_the_directory_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    one = Watch(directory)
    one.watcher.start()
    shutil.rmtree(directory)
    assert one.read() == ANY_NAME
    one.watcher.stop()


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InotifyError, match=r"cannot watch .*missing"):
        DirectoryWatcher(tmp_path / "missing", print)


def test_stopping_ends_all_and_can_be_repeated(tmp_path: Path) -> None:
    for start in (True, False):
        one = Watch(tmp_path)
        if start:
            one.watcher.start()
        one.watcher.stop()
        one.watcher.stop()
        (tmp_path / "later").touch()
        assert f"inotify-{tmp_path.name}" not in [thread.name for thread in threading.enumerate()]
        assert one.nothing_more()
