"""Why the kernel module ended a connection: it writes the reason to the kernel's log only."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from ganeti.paths import Paths

#: Lines that name a reason (drbd_receiver.c of 8.4), apart from those that name the outcome.
_REASONS = re.compile(
    r"Split-Brain detected|Authentication of peer failed|Unrelated data|incompatible"
    r"|Multiple primaries|too small|Can only connect|unexpected|Refusing|Aborting Connection",
    re.IGNORECASE,
)
_RECORDS = 4000


class KernelLog:
    """Kernel messages about one device from now on; none where the log cannot be read."""

    def __init__(self, paths: Paths, resource: str, minor: int) -> None:
        self._about = (f"drbd {resource}: ", f"block drbd{minor}: ")
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._fd = os.open(paths.local("/dev/kmsg"), flags)
            os.lseek(self._fd, 0, os.SEEK_END)

    def __enter__(self) -> KernelLog:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def reason(self) -> str | None:
        """The last line that tells why a connection ended."""
        return reason(self._lines(), self._about)

    def _lines(self) -> Iterator[str]:
        """Messages since the beginning; a record is ``numbers;text``."""
        for _record in range(_RECORDS if self._fd is not None else 0):
            try:
                record = os.read(self._fd or 0, 8192)
            except BlockingIOError:
                return
            except OSError:  # records were overwritten meanwhile: the next read continues
                continue
            if not record:
                return
            yield record.decode("utf-8", "replace").partition(";")[2].partition("\n")[0]


def reason(lines: Iterator[str], about: tuple[str, ...]) -> str | None:
    """The last of the lines about a device that names a reason. Pure."""
    found = None
    for line in lines:
        for prefix in about:
            if line.startswith(prefix) and _REASONS.search(line):
                found = line.removeprefix(prefix).strip()
    return found
