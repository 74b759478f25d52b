"""Output of a guest on its serial console, read in the file that its hypervisor writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ganeti.base import files

#: Bytes that are kept of what a guest prints: its begin and its end.
_MOST: Final = 1024 * 1024


class ConsoleOutput:
    """Output of a guest from now on, or all of it."""

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self._path = path
        self._start = 0 if whole else self._size()

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> str:
        """Its first and last MiB, without characters that control a terminal. FileError."""
        try:
            data = self._read()
        except OSError as err:
            raise files.failure(err) from err
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)

    def _read(self) -> bytes:
        end = self._size()
        # the file is cut off when logs are rotated
        start = self._start if end >= self._start else 0
        with self._path.open("rb") as stream:
            if end - start <= 2 * _MOST:
                return os.pread(stream.fileno(), end - start, start)
            first, last = (os.pread(stream.fileno(), _MOST, at) for at in (start, end - _MOST))
            return first + b"\n[...]\n" + last
