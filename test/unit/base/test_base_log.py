"""Log files: the documented line, for nobody else's eyes, and never in the way."""

from __future__ import annotations

import contextvars
import logging
import os
import re
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti.base import log

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: ganeti-noded pid=(\d+)(/[^ ]+(?: \d+)?)? ([A-Z]+) (.*)"
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
        log.CONTEXT.set("job 12")
        logging.info("begins")

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join(10)
    logging.info("outside")
    first, second = lines(file)
    assert f"pid={os.getpid()}/job 12 INFO begins" in first
    assert f"pid={os.getpid()} INFO outside" in second


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
