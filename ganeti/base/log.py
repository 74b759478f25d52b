"""Targets of log records: files, the terminal, syslog, and the journal of systemd.

Format: ``YYYY-MM-DD HH:MM:SS,mmm: <program> pid=<pid>[/job <id>][/<call>] <LEVEL> <text>``, or
objects of JSON (see ``log_lines``).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import logging.handlers
import os
import socket
import struct
import weakref
from collections.abc import Iterator
from pathlib import Path

from ganeti import paths
from ganeti.base.log_lines import CALL, INSTANCE, JOB, JsonForm, TextForm, escape, journal_fields

_SYSLOG = "/dev/log"
#: Socket of the journal of systemd for records with fields.
_JOURNAL = "/run/systemd/journal/socket"
#: Characters of a message in the journal; datagrams have a limit.
_LONGEST = 32768
FORMATS = ("text", "json")


@contextlib.contextmanager
def set_context(
    *, job: str | None = None, call: str | None = None, instance: str | None = None
) -> Iterator[None]:
    """Log lines of the block carry these; None keeps the value from outside the block."""
    given = ((JOB, job), (CALL, call), (INSTANCE, instance))
    tokens = [(variable, variable.set(value)) for variable, value in given if value is not None]
    try:
        yield
    finally:
        for variable, token in tokens:
            variable.reset(token)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the form of a log file."""
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default=FORMATS[0],
        help="format of the log file: lines of text, or an object of JSON in each line"
        " (default: %(default)s)",
    )


class _LogFile(logging.Handler):
    """A log file only for its owner; a log that cannot be written stops nobody's work.

    Each record is one write to the end of the file. So threads need no lock, which one of them
    would hold while the kernel writes. A file that was rotated is noticed within a second.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._path = file
        self._fd = self._open()
        self._checked = 0.0
        _files.add(self)

    def createLock(self) -> None:  # noqa: N802 - logging's name
        self.lock = None

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
            if abs(record.created - self._checked) > _ROTATED_AFTER:
                self._checked = record.created
                self.reopen()
            os.write(self._fd, line)
        except Exception:  # noqa: BLE001 - as all handlers of logging do
            self.handleError(record)

    def reopen(self) -> None:
        """Write to the file that has the name now."""
        try:
            present, ours = os.stat(self._path), os.fstat(self._fd)
            if os.path.samestat(present, ours):
                return
        except FileNotFoundError:
            pass
        new = self._open()
        os.dup2(new, self._fd, inheritable=False)
        os.close(new)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        super().close()


#: Seconds after which a log file is looked for under its name again.
_ROTATED_AFTER = 1.0
#: Open log files.
_files: weakref.WeakSet[_LogFile] = weakref.WeakSet()


class _Journal(logging.Handler):
    """Sends records with their fields to the journal of systemd, and stops nobody's work."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._fixed = {"SYSLOG_IDENTIFIER": program, "GANETI_NODE": paths.hostname()}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = {
                **journal_fields(self.formatter or logging.Formatter(), record),
                **self._fixed,
            }
            self._socket.sendto(b"".join(map(_encode_field, fields.items())), _JOURNAL)
        except OSError:
            self.handleError(record)

    def close(self) -> None:
        self._socket.close()
        super().close()


def _encode_field(pair: tuple[str, str]) -> bytes:
    """A field in the native form of the journal, with its length as it may have several lines."""
    key, value = pair
    data = value[:_LONGEST].encode("utf-8", "backslashreplace")
    return key.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


def _is_journal(descriptor: int) -> bool:
    """Whether systemd has connected a descriptor to its journal."""
    try:
        facts = os.fstat(descriptor)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{facts.st_dev}:{facts.st_ino}"


def setup(
    program: str,
    *,
    file: Path | None = None,
    debug: bool = False,
    console: bool = False,
    form: str = FORMATS[0],
) -> None:
    """Send all logging of this process to ``file`` (mode 0600, reopened after rotation).

    ``console`` adds the standard error output, or the journal of systemd when that reads it.
    ``form`` is that of the file.
    """
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    handlers: list[logging.Handler] = []
    if file is not None:
        handlers.append(_LogFile(file))
        if form == "json":
            handlers[0].setFormatter(JsonForm(program, paths.hostname()))
    if console:
        handlers.append(_Journal(program) if _is_journal(2) else logging.StreamHandler())
    for handler in handlers:
        if handler.formatter is None:
            handler.setFormatter(TextForm(program))
        root.addHandler(handler)
    # asyncio announces its selector at DEBUG; nobody wants to read that.
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def send_to_file(logger: logging.Logger, file: Path) -> None:
    """Send what one logger is given to a file of its own, one line a record, and nowhere else."""
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    handler = _LogFile(file)
    handler.setFormatter(_PlainFormatter())
    logger.addHandler(handler)
    logger.propagate = False


class _PlainFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return escape(record.getMessage())


def add_syslog(program: str) -> None:
    """Send all logging to syslog, too."""
    handler = logging.handlers.SysLogHandler(_SYSLOG, logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.setFormatter(logging.Formatter(f"{program}[%(process)d]: %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)


def reopen() -> None:
    """Open log files again (SIGHUP)."""
    for handler in list(_files):
        handler.reopen()
