"""Log files in Ganeti's line format, with the running job in every line.

Format: ``YYYY-MM-DD HH:MM:SS,mmm: <program> pid=<pid>[/<job>] <LEVEL> <text>``.
"""

from __future__ import annotations

import contextvars
import logging
import logging.handlers
import os
import re
import weakref
from io import TextIOWrapper
from pathlib import Path

#: What the current thread works for, e.g. ``job 12``; shown in each log line.
CONTEXT: contextvars.ContextVar[str] = contextvars.ContextVar("log_context", default="")

_SYSLOG = "/dev/log"
#: Control characters but the tab, and what editors take for an end of line.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class _ContextFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        context = CONTEXT.get()
        record.context = f"/{context}" if context else ""
        return True


class LineFormatter(logging.Formatter):
    """One line a record; a traceback follows on lines of its own."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"%(asctime)s: {program} pid=%(process)d%(context)s %(levelname)s %(message)s"
        )

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """A text from outside cannot pretend to be another line."""
        return _join_lines(super().formatMessage(record))


def _join_lines(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _LogFile(logging.handlers.WatchedFileHandler):
    """A log file only for its owner; a log that cannot be written stops nobody's work."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, encoding="utf-8", errors="backslashreplace")
        _files.add(self)

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(self.baseFilename, flags, 0o600)
        return TextIOWrapper(os.fdopen(fd, "wb"), encoding=self.encoding, errors=self.errors)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)


#: Open log files.
_files: weakref.WeakSet[_LogFile] = weakref.WeakSet()


def setup(
    program: str, *, file: Path | None = None, debug: bool = False, console: bool = False
) -> None:
    """Send all logging of this process to ``file`` (mode 0600, reopened after rotation).

    ``console`` adds the standard error output.
    """
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    handlers: list[logging.Handler] = []
    if file is not None:
        handlers.append(_LogFile(file))
    if console:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.addFilter(_ContextFilter())
        handler.setFormatter(LineFormatter(program))
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
        return _join_lines(record.getMessage())


def add_syslog(program: str) -> None:
    """Send all logging to syslog, too."""
    handler = logging.handlers.SysLogHandler(_SYSLOG, logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.setFormatter(logging.Formatter(f"{program}[%(process)d]: %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)


def reopen() -> None:
    """Open log files again (SIGHUP)."""
    for handler in list(_files):
        handler.reopenIfNeeded()
