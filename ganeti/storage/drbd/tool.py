"""Running the tools of DRBD.

``drbdsetup`` takes the shared secret on its command line only, so for some milliseconds whoever
may read the processes of root sees it. It is kept out of everything that is written down.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence

from ganeti import errors
from ganeti.base import process

log = logging.getLogger(__name__)

#: Seconds a command may take; a kernel that waits for a lost disk or peer answers late.
TIMEOUT = 120.0
SECRET_OPTION = "--shared-secret="
_HIDDEN = "<redacted>"
#: Lines with which the kernel's answer begins, and which say nothing to a reader.
_NOISE = ("additional info from kernel:",)


class ToolFailure(errors.BlockDeviceError):
    """A command of DRBD was refused; ``code`` is its exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code

    @property
    def wire_name(self) -> str:
        """Name of the base class: callers of a node know only that one."""
        return errors.BlockDeviceError.__name__


def run(argv: Sequence[str], *, timeout: float = TIMEOUT) -> str:
    """Standard output of a command; blocks until it ends.

    Raises:
        ToolFailure: it failed or took too long; the text has the kernel's own words.
        BlockDeviceError: it is not installed.
    """
    shown = " ".join(hide_secrets(argv))
    log.debug("running %s", shown)
    try:
        result = process.run(argv, timeout=timeout)
    except errors.CommandError as err:
        if shutil.which(argv[0], path=process.search_path()) is None:
            raise errors.BlockDeviceError(
                f"DRBD is not installed on this node: there is no program {argv[0]}"
            ) from err
        raise errors.BlockDeviceError(f"cannot run {argv[0]}") from err
    if result.timed_out:
        raise ToolFailure(f"{shown}: no answer within {timeout:.0f} s", -1)
    if result.code != 0:
        raise ToolFailure(f"{shown}: {reason(result.stderr, result.code)}", result.code)
    return result.stdout


def hide_secrets(argv: Sequence[str]) -> list[str]:
    """The words of a command as they may be shown. Pure."""
    return [
        f"{SECRET_OPTION}{_HIDDEN}" if word.startswith(SECRET_OPTION) else word for word in argv
    ]


def reason(stderr: str, code: int) -> str:
    """The error message of a command, in one line. Pure."""
    lines = [line.strip() for line in stderr.splitlines()]
    messages = [line for line in lines if line and line not in _NOISE]
    return "; ".join(messages[-4:]) or f"exit code {code}"
