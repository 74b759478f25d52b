"""Which commands were run on this node: ``commands.log``, for later questions.

Values that must not be seen are left out. Nothing is logged by those who may not write there.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from ganeti import paths
from ganeti.base.clock import SYSTEM
from ganeti.cli.command import Command

_HIDDEN = "<hidden>"


def _file() -> Path:
    return paths.current().log / "commands.log"


def record(program: str, command: Command, words: Sequence[str]) -> None:
    """Log that a command was called."""
    shown = shlex.join([program, command.name, *_hide_secrets(command, words)])
    _append(program, "INFO", f"uid={os.getuid()} run with arguments {shown}")


def record_failure(program: str, traceback: str) -> Path | None:
    """Log a traceback; the file it went to, or None."""
    return _append(program, "ERROR", traceback.rstrip())


def _hide_secrets(command: Command, words: Sequence[str]) -> list[str]:
    """The words without values of options that must not be logged."""
    flags = [flag for option in command.all_options if option.hidden_value for flag in option.flags]
    result: list[str] = []
    hide_next = False
    for word in words:
        name, has_value, _ = word.partition("=")
        secret = len(name) > 2 and any(flag.startswith(name) for flag in flags)
        if hide_next:
            result.append(_HIDDEN)
        else:
            result.append(f"{name}={_HIDDEN}" if secret and has_value else word)
        hide_next = secret and not has_value and not hide_next
    return result


def _append(program: str, level: str, text: str) -> Path | None:
    path = _file()
    now = SYSTEM.now()
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    line = f"{moment},{int(now % 1 * 1000):03d}: {program} pid={os.getpid()} {level} {text}\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        # Not a node, or not root: the command itself does not depend on its log.
        return None
    try:
        os.write(fd, line.encode("utf-8", "backslashreplace"))
    except OSError:
        return None
    finally:
        os.close(fd)
    return path
