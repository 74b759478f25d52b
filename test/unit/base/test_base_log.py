"""Log files: the documented line, for nobody else's eyes, and never in the way."""

from __future__ import annotations

import contextvars
import gzip
import json
import logging
import os
import re
import socket
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from ganeti.base import log, log_lines

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: ganeti-noded pid=(\d+)(/job \d+)?(?:/[^ ]+)?"
    r" ([A-Z]+) (.*)"
)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A log file that all logging goes to; the test's own handlers come back after it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    for handler in handlers:
        root.removeHandler(handler)
    path = tmp_path / "node-daemon.log"
    log.setup("ganeti-noded", file=path)
    yield path
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_line_has_time_program_pid_level_and_text(file: Path) -> None:
    logging.getLogger("x").warning("disk %s is full", "sda")
    (line,) = lines(file)
    found = LINE.fullmatch(line)
    assert found is not None
    assert found.groups() == (str(os.getpid()), None, "WARNING", "disk sda is full")


def test_lines_carry_what_the_thread_works_for(file: Path) -> None:
    def work() -> None:
        with log.set_context(job="12"):
            logging.info("begins")
            with log.set_context(call="instance_start", instance="web1"):
                logging.info("starts")

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join(10)
    logging.info("outside")
    first, inside, last = lines(file)
    assert f"pid={os.getpid()}/job 12 INFO begins" in first
    assert f"pid={os.getpid()}/job 12/instance_start INFO starts" in inside
    assert f"pid={os.getpid()} INFO outside" in last


def test_details_come_only_when_asked_for(file: Path) -> None:
    logging.debug("hidden")
    assert lines(file) == []
    log.setup("ganeti-noded", file=file, debug=True)
    logging.debug("shown")
    logging.getLogger("asyncio").debug("Using selector: EpollSelector")
    assert [line.rpartition(" ")[2] for line in lines(file)] == ["shown"]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x1b[2K", "\x85", "\u2028", "\0"])
def test_a_text_from_outside_cannot_pretend_to_be_another_line(file: Path, end: str) -> None:
    logging.warning("no node call is named %s", f"x{end}2026-01-01 00:00:00,000: root ok")
    (line,) = lines(file)
    assert LINE.fullmatch(line)
    assert f"\\x{ord(end[0]):02x}" in line


def test_what_cannot_be_encoded_is_shown_escaped(file: Path) -> None:
    logging.warning("name %s", "caf\udce9 ü\t1")
    assert lines(file)[0].endswith(" name caf\\udce9 ü\t1")


def test_a_traceback_follows_its_line(file: Path) -> None:
    try:
        raise ValueError("inside")
    except ValueError:
        logging.exception("a bug")
    first, *rest = lines(file)
    assert first.endswith("ERROR a bug")
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "ValueError: inside"


@pytest.fixture
def check_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time after which a log file is looked for again is over at each record."""
    monkeypatch.setattr(log, "_ROTATED_AFTER", -1.0)


def test_a_rotation_is_noticed_by_itself(file: Path) -> None:
    logging.info("one")
    file.rename(file.with_suffix(".1"))

    def write() -> bool:
        logging.info("two")
        return file.exists()

    wait_for(write, "a new log file")
    assert {line.rpartition(" ")[2] for line in lines(file)} == {"two"}


def test_threads_do_not_mix_their_lines(file: Path) -> None:
    def write(number: int) -> None:
        for _ in range(200):
            logging.info("x" * 50 * number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = Counter(line.rpartition(" ")[2] for line in lines(file))
    assert counts == {"x" * 50 * number: 200 for number in range(1, 9)}


@pytest.mark.usefixtures("check_rotation")
def test_only_the_owner_may_read_before_and_after_a_rotation(file: Path) -> None:
    before = os.umask(0)
    try:
        logging.info("one")
        file.rename(file.with_suffix(".1"))
        log.reopen()
        logging.info("two")
        assert (mode_of(file), mode_of(file.with_suffix(".1"))) == (0o600, 0o600)
        file.unlink()
        logging.info("three")
        assert mode_of(file) == 0o600
    finally:
        os.umask(before)
    assert [line.rpartition(" ")[2] for line in lines(file)] == ["three"]


def test_a_restart_adds_to_the_file(file: Path) -> None:
    logging.info("one")
    log.setup("ganeti-noded", file=file)
    logging.info("two")
    assert len(lines(file)) == 2


@pytest.mark.usefixtures("check_rotation")
def test_a_log_that_cannot_be_written_stops_nobody(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.unlink()
    file.parent.rename(file.parent.with_name("moved"))
    logging.info("nobody can write this")
    assert "FileNotFoundError" in capsys.readouterr().err
    file.parent.with_name("moved").rename(file.parent)
    logging.info("again")
    assert [line.rpartition(" ")[2] for line in lines(file)] == ["again"]


def test_the_console_gets_the_same_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.setup("ganeti-noded", console=True)
    logging.info("seen")
    assert LINE.fullmatch(capsys.readouterr().err.strip())
    assert lines(file) == []


def test_json_has_an_object_a_line_with_what_it_is_about(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    log.setup("ganeti-noded", file=file, form="json")
    with log.set_context(job="12", call="instance_start", instance="web1"):
        logging.warning("a\nb")
    try:
        raise ValueError("inside")
    except ValueError:
        logging.exception("a bug")
    first, second = map(json.loads, lines(file))
    assert isinstance(first.pop("time"), float)
    assert first == {
        "program": "ganeti-noded",
        "pid": os.getpid(),
        "node": "node1.example.com",
        "level": "WARNING",
        "job": 12,
        "call": "instance_start",
        "instance": "web1",
        "message": "a\nb",
    }
    assert "job" not in second
    assert second["traceback"].endswith("ValueError: inside")


def test_the_journal_gets_fields_when_it_reads_the_terminal(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    monkeypatch.setattr(log, "_JOURNAL", str(path))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    facts = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{facts.st_dev}:{facts.st_ino}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(path))
        log.setup("ganeti-noded", file=file, console=True)
        with log.set_context(job="12", instance="web1"):
            logging.error("a\nb")
        found = fields(journal.recv(65536))
        assert found == {
            "MESSAGE": "a\nb",
            "PRIORITY": "3",
            "SYSLOG_IDENTIFIER": "ganeti-noded",
            "GANETI_JOB": "12",
            "GANETI_INSTANCE": "web1",
            "GANETI_NODE": "node1.example.com",
        }
        logging.info("x" * 1_000_000)
        assert len(fields(journal.recv(65536))["MESSAGE"]) == 32768
    assert len(lines(file)) == 2


def fields(data: bytes) -> dict[str, str]:
    """Fields in the native form of the journal."""
    found = {}
    while data:
        key, _newline, rest = data.partition(b"\n")
        size = int.from_bytes(rest[:8], "little")
        found[key.decode()] = rest[8 : 8 + size].decode()
        data = rest[9 + size :]
    return found


class TestFind:
    def write(self, file: Path, form: str) -> None:
        log.setup("ganeti-noded", file=file, form=form)
        for job in ("1", "12", "123"):
            with log.set_context(job=job, call="test"):
                logging.info('of job %s, not /job 12 or "job":12, either', job)
        logging.info("of none pid=1/job 12 INFO x")
        try:
            raise ValueError("inside")
        except ValueError:
            with log.set_context(job="12"):
                logging.exception("a bug")

    @pytest.mark.parametrize("form", log.FORMATS)
    @pytest.mark.parametrize("packed", [False, True])
    def test_only_lines_of_that_job_with_their_tracebacks(
        self, file: Path, form: str, packed: bool
    ) -> None:
        self.write(file, form)
        path = file
        if packed:
            path = file.with_name("node-daemon.log.2.gz")
            path.write_bytes(gzip.compress(file.read_bytes()))
        found, cut = log_lines.find(path, 12, 10_000)
        assert not cut
        first, second = found
        assert first.text == 'test: of job 12, not /job 12 or "job":12, either'
        assert (first.program, first.level) == ("ganeti-noded", "INFO")
        assert abs(first.time - file.stat().st_mtime) < 3600
        assert (second.level, second.text.splitlines()[0]) == ("ERROR", "a bug")
        assert second.text.endswith("ValueError: inside")

    def test_the_newest_are_kept(self, file: Path) -> None:
        with log.set_context(job="12"):
            for number in range(1000):
                logging.info("line %s", number)
        found, cut = log_lines.find(file, 12, 5000)
        assert cut
        assert found[-1].text == "line 999"
        assert 10 < len(found) < 1000

    def test_files_that_are_empty_missing_or_cut_off(self, file: Path) -> None:
        assert log_lines.find(file, 12, 100) == ([], False)
        assert log_lines.find(file.with_name("nothing"), 12, 100) == ([], False)
        packed = file.with_name("node-daemon.log.2.gz")
        packed.write_bytes(gzip.compress(b"x\n" * 1000)[:-20])
        assert log_lines.find(packed, 12, 100) == ([], False)
