"""Log files in Ganeti's line format, with the running job in every line.

Format: ``YYYY-MM-DD HH:MM:SS,mmm: <program> pid=<pid>[/<job>] <LEVEL> <text>``.
"""

from __future__ import annotations

import contextvars
import logging
import logging.handlers
import os
from pathlib import Path

#: What the current thread works for, e.g. ``job 12``; shown in each log line.
CONTEXT: contextvars.ContextVar[str] = contextvars.ContextVar("log_context", default="")


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
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.close(fd)
        handlers.append(logging.handlers.WatchedFileHandler(file, encoding="utf-8"))
    if console:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.addFilter(_ContextFilter())
        handler.setFormatter(LineFormatter(program))
        root.addHandler(handler)
    # asyncio announces its selector at DEBUG; nobody wants to read that.
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def reopen() -> None:
    """Open log files anew (SIGHUP)."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.handlers.WatchedFileHandler):
            handler.reopenIfNeeded()
