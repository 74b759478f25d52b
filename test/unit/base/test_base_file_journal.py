"""Files behind a journal: what a crash leaves, and when the files follow."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import file_journal, files
from ganeti.base.file_journal import FileJournal, LateWriter
from ganeti.base.file_parts import Contents


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[FileJournal]:
    journal = FileJournal(tmp_path)
    journal.open()
    yield journal
    journal.close()


def read_files(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and path.name != file_journal.NAME
    }


def read_after_crash(directory: Path, target: Path) -> dict[str, bytes]:
    """What the next process finds in a copy of the directory."""
    shutil.copytree(directory, target)
    journal = FileJournal(target)
    journal.open()
    journal.close()
    assert (target / file_journal.NAME).read_bytes() == b""
    return read_files(target)


def test_a_write_survives_a_crash_before_the_files_follow(journal, tmp_path):
    journal.write(Contents({"a": b"1", "b": b"1"}))
    journal.write(Contents({"a": "zwölf".encode()}))
    assert read_files(tmp_path) == {}
    assert journal.read_pending() == {"a": "zwölf".encode(), "b": b"1"}
    assert read_after_crash(tmp_path, tmp_path / "copy") == {"a": "zwölf".encode(), "b": b"1"}


def test_the_files_follow_and_the_journal_forgets_them(journal, tmp_path):
    (tmp_path / "keys").mkdir()
    journal.write(Contents({"a": b"1", "keys/x": b"7"}))
    journal.catch_up()
    assert read_files(tmp_path) == {"a": b"1"}
    assert (tmp_path / "keys" / "x").read_bytes() == b"7"
    assert journal.size == 0
    assert journal.read_pending() == {}


def test_what_is_written_while_the_files_follow_is_kept(journal, tmp_path, monkeypatch):
    write_many = files.write_many

    def slowly(directory: Path, contents: dict[str, bytes]) -> None:
        journal.write(Contents({"a": b"2", "c": b"1"}))
        write_many(directory, contents)

    journal.write(Contents({"a": b"1"}))
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_many", slowly)
        journal.catch_up()
    assert read_files(tmp_path) == {"a": b"1"}
    assert read_after_crash(tmp_path, tmp_path / "copy") == {"a": b"2", "c": b"1"}
    journal.catch_up()
    assert read_files(tmp_path) == {"a": b"2", "c": b"1"}


def test_a_file_that_is_removed_meanwhile_does_not_come_back(journal, tmp_path):
    journal.write(Contents({"a": b"1", "b": b"1"}))
    with journal.hold_caught_up():
        (tmp_path / "a").unlink()
    assert read_after_crash(tmp_path, tmp_path / "copy") == {"b": b"1"}


def test_a_torn_write_was_never_there(journal, tmp_path):
    journal.write(Contents({"a": b"1"}))
    with (tmp_path / file_journal.NAME).open("ab") as file:
        file.write(b'00000000 {"a":')
    assert read_after_crash(tmp_path, tmp_path / "copy") == {"a": b"1"}


def test_damage_before_the_end_is_refused_and_nothing_changes(tmp_path):
    damaged = b'00000000 {"a": "1"}\n00000000 {"b": "1"}\n'
    (tmp_path / file_journal.NAME).write_bytes(damaged)
    journal = FileJournal(tmp_path)
    with pytest.raises(errors.ConfigurationError, match="journal is damaged at line 1"):
        journal.open()
    assert read_files(tmp_path) == {}
    assert (tmp_path / file_journal.NAME).read_bytes() == damaged


def test_files_that_cannot_be_written_stay_in_the_journal(journal, tmp_path):
    journal.write(Contents({"keys/x": b"1", "a": b"1"}))
    with pytest.raises(OSError, match="No such file"):
        journal.catch_up()
    assert read_files(tmp_path) == {}
    (tmp_path / "keys").mkdir()
    journal.catch_up()
    assert (tmp_path / "keys" / "x").read_bytes() == b"1"


def test_many_writers_and_a_late_writer_lose_nothing(journal, tmp_path):
    def write(name: str) -> None:
        for number in range(50):
            journal.write(Contents({name: b"%d" % number}))

    threads = [threading.Thread(target=write, args=(f"f{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        journal.catch_up()
    journal.catch_up()
    assert read_files(tmp_path) == {f"f{n}": b"49" for n in range(8)}


class Counter:
    """Settles, and tells that it did."""

    def __init__(self, failures: int = 0) -> None:
        self.size = 0
        self._failures = failures
        self.times: list[float] = []
        self.done = threading.Event()

    def catch_up(self) -> None:
        self.times.append(time.monotonic())
        if self._failures:
            self._failures -= 1
            raise OSError("No space left on device")
        self.done.set()


@pytest.fixture
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_journal, "DELAY", 0.05)
    monkeypatch.setattr(file_journal, "LONGEST_DELAY", 0.2)
    monkeypatch.setattr(file_journal, "RETRY_AFTER", 0.01)


@pytest.mark.usefixtures("short_delays")
def test_it_catches_up_once_for_writes_that_come_together():
    counter = Counter()
    writer = LateWriter(lambda: counter.size, counter.catch_up, "test")
    for _ in range(5):
        writer.wrote()
    assert counter.done.wait(10)
    writer.stop()
    assert len(counter.times) == 1


@pytest.mark.usefixtures("short_delays")
def test_it_catches_up_even_if_writes_never_stop():
    counter = Counter()
    writer = LateWriter(lambda: counter.size, counter.catch_up, "test")
    end = time.monotonic() + 10
    while not counter.done.wait(0.01) and time.monotonic() < end:
        writer.wrote()
    writer.stop()
    assert counter.times


def test_a_long_journal_is_not_waited_for():
    counter = Counter()
    counter.size = file_journal.LIMIT + 1
    begin = time.monotonic()
    writer = LateWriter(lambda: counter.size, counter.catch_up, "test")
    writer.wrote()
    assert counter.done.wait(10)
    writer.stop()
    assert counter.times[0] - begin < file_journal.DELAY


@pytest.mark.usefixtures("short_delays")
def test_a_failure_is_logged_and_tried_again(caplog):
    counter = Counter(failures=2)
    writer = LateWriter(lambda: counter.size, counter.catch_up, "test")
    writer.wrote()
    assert counter.done.wait(10)
    writer.stop()
    assert len(counter.times) == 3
    assert "No space left on device" in caplog.text
