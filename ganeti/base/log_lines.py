"""The forms of a log record: a line of text, an object of JSON, fields of the journal.

What is written here is read again by :func:`find`, which looks for the lines about one job.
"""

from __future__ import annotations

import contextvars
import gzip
import logging
import mmap
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ganeti import errors
from ganeti.base import jsonio

#: The job, node call and instance that the current thread works for; empty: none.
JOB: contextvars.ContextVar[str] = contextvars.ContextVar("log_job", default="")
CALL: contextvars.ContextVar[str] = contextvars.ContextVar("log_call", default="")
INSTANCE: contextvars.ContextVar[str] = contextvars.ContextVar("log_instance", default="")

#: Control characters but the tab, and what editors take for an end of line.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
#: ``<time>,<ms>: <program> pid=<pid>[/job <id>][/<call>] <LEVEL> <text>``.
_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3}): (?P<program>\S+) pid=\d+"
    r"(?:/job (?P<job>\d+))?(?:/(?P<call>[^/ ]+))? (?P<level>[A-Z]+) (?P<text>.*)"
)
_TIME = "%Y-%m-%d %H:%M:%S"
#: Begins a record, not a further line of one.
_BEGIN = re.compile(rb"\d{4}-\d\d-\d\d |\{")
#: Bytes of a file that are searched, counted from its end.
_SEARCHED = 1 << 30
_PIECE = 1 << 20
#: Further lines that are taken for those of one record, such as a traceback.
_MOST_LINES = 200


@dataclass(frozen=True)
class Line:
    """A record that was found; ``text`` may have several lines."""

    #: seconds since 1970
    time: float
    program: str
    level: str
    text: str


def escape(text: str) -> str:
    """A text from outside as a part of one line."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class TextForm(logging.Formatter):
    """One line a record; a traceback follows on lines of its own."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"%(asctime)s: {program} pid=%(process)d%(context)s %(levelname)s %(message)s"
        )

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """A text from outside cannot pretend to be another line."""
        job, call = JOB.get(), CALL.get()
        record.context = (f"/job {job}" if job else "") + (f"/{call}" if call else "")
        return escape(super().formatMessage(record))


class JsonForm(logging.Formatter):
    """One object a line; job, call and instance only where there is one."""

    def __init__(self, program: str, node: str) -> None:
        super().__init__()
        self._program, self._node = program, node

    def format(self, record: logging.LogRecord) -> str:
        job = JOB.get()
        found = {
            "time": round(record.created, 3),
            "program": self._program,
            "pid": record.process,
            "node": self._node,
            "level": record.levelname,
            "job": int(job) if job else None,
            "call": CALL.get() or None,
            "instance": INSTANCE.get() or None,
            "message": record.getMessage(),
            "traceback": _traceback(self, record),
        }
        return jsonio.dumps({key: value for key, value in found.items() if value is not None})


def _traceback(form: logging.Formatter, record: logging.LogRecord) -> str | None:
    return form.formatException(record.exc_info) if record.exc_info else None


def journal_fields(form: logging.Formatter, record: logging.LogRecord) -> dict[str, str]:
    """Fields of a record in the journal of systemd, besides program and node."""
    text = record.getMessage()
    trace = _traceback(form, record)
    found = {
        "MESSAGE": text if trace is None else f"{text}\n{trace}",
        "PRIORITY": str(_priority(record.levelno)),
        "GANETI_JOB": JOB.get(),
        "GANETI_CALL": CALL.get(),
        "GANETI_INSTANCE": INSTANCE.get(),
    }
    return {key: value for key, value in found.items() if value}


def _priority(level: int) -> int:
    """The number of syslog for a level."""
    steps = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
    return next((number for least, number in steps if level >= least), 7)


# reading -----------------------------------------------------------------------------------------


def find(path: Path, job: int, most: int) -> tuple[list[Line], bool]:
    """Lines of a log file about a job, and whether older ones are missing beyond ``most`` bytes.

    A file whose name ends with ``.gz`` is read as such. A missing file has none.

    Raises:
        OSError: it cannot be read.
    """
    found: deque[tuple[Line, int]] = deque()
    size, cut = 0, False
    for raw in _matches(path, job):
        line = _parse(raw.decode("utf-8", "replace"), job)
        if line is None:
            continue
        found.append((line, len(raw)))
        size += len(raw)
        while size > most:
            size -= found.popleft()[1]
            cut = True
    return [line for line, _size in found], cut


def _matches(path: Path, job: int) -> Iterator[bytes]:
    """Records that may be about a job, with their further lines."""
    needles = (b"/job %d/" % job, b"/job %d " % job, b'"job":%d,' % job)
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as unpacked:
                yield from _read_packed(unpacked, needles)
        else:
            with path.open("rb") as stream:
                if os.fstat(stream.fileno()).st_size:
                    yield from _read_mapped(stream, needles)
    except (FileNotFoundError, EOFError):
        return  # it has just been rotated, or is being compressed


def _read_mapped(stream: IO[bytes], needles: tuple[bytes, ...]) -> Iterator[bytes]:
    """The same in a file as it is; looks at nothing but the places where a needle is."""
    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = max(0, len(data) - _SEARCHED)
        places = {needle: data.find(needle, position) for needle in needles}
        while True:
            here = min((place for place in places.values() if place >= 0), default=-1)
            if here < 0:
                return
            begin = data.rfind(b"\n", 0, here) + 1
            data.seek(begin)
            lines = [data.readline()]
            end = data.tell()
            while len(lines) < _MOST_LINES and end < len(data):
                line = data.readline()
                if _BEGIN.match(line):
                    break
                lines.append(line)
                end = data.tell()
            yield b"".join(lines)
            for needle, place in places.items():
                if 0 <= place < end:
                    places[needle] = data.find(needle, end)


def _read_packed(stream: gzip.GzipFile, needles: tuple[bytes, ...]) -> Iterator[bytes]:
    """The same in what can only be read from its begin."""
    lines: list[bytes] = []
    left = _SEARCHED
    while left > 0 and (line := stream.readline(_PIECE)):
        left -= len(line)
        if lines and not _BEGIN.match(line):
            lines = [*lines, line][:_MOST_LINES]
            continue
        if lines:
            yield b"".join(lines)
        lines = [line] if any(needle in line for needle in needles) else []
    if lines:
        yield b"".join(lines)


def _parse(raw: str, job: int) -> Line | None:
    """A record of either form, None when it is not about the job."""
    first, _newline, more = raw.rstrip("\n").partition("\n")
    if first.startswith("{"):
        return _parse_json(first, job)
    match = _LINE.fullmatch(first)
    if match is None or match["job"] != str(job):
        return None
    moment = time.mktime(time.strptime(match["time"], _TIME)) + int(match["ms"]) / 1000
    text = f"{match['call']}: {match['text']}" if match["call"] else match["text"]
    return Line(moment, match["program"], match["level"], f"{text}\n{more}" if more else text)


def _parse_json(text: str, job: int) -> Line | None:
    try:
        found = jsonio.loads(text)
        if found["job"] != job:
            return None
        parts = (found.get("call"), found["message"])
        message = ": ".join(str(part) for part in parts if part is not None)
        if "traceback" in found:
            message = f"{message}\n{found['traceback']}"
        return Line(float(found["time"]), str(found["program"]), str(found["level"]), message)
    except (errors.ParseError, KeyError, TypeError, ValueError):
        return None
