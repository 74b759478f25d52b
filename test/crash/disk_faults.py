"""What a process writes to disk, counted, and ended at a chosen point.

The functions of ``os`` through which everything durable goes are replaced by ones that count. A
plan names one operation by its label (``serve: fsync config.journal``) and its number among those
with that label, and how the process ends there:

``before``  killed instead of the operation
``torn``    killed when half of the bytes were written
``after``   killed right after it
``power``   after it, and the disk forgets whatever was not flushed, as in a power cut
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

WAYS = ("before", "torn", "after", "power")

_NEW = re.compile(r"^\.(?:new-)?(.*)$")
_RANDOM = re.compile(r"\.[a-z0-9_]{8}$")
_NUMBER = re.compile(r"job-[0-9]+")
_HASH = re.compile(r"[0-9a-f]{64}")
_RANGE = re.compile(r"^(new )?[0-9]+-[0-9]+")


@dataclass(frozen=True)
class Point:
    """One place where the process ends."""

    label: str
    number: int
    way: str

    def __str__(self) -> str:
        return f"{self.way} {self.label} #{self.number}"


def ways(label: str) -> tuple[str, ...]:
    """How a process can end at an operation."""
    if " call " in label:
        return ("before", "after")
    return WAYS if " write " in label else ("before", "after", "power")


def name(path: str, top: str) -> str:
    """A path below ``top`` without what differs from one file of a kind to the next."""
    head, _, tail = path.removeprefix(top).lstrip("/").rpartition("/")
    temporary = _NEW.match(tail)
    if temporary is not None:
        tail = f"new {_RANDOM.sub('', temporary[1])}"
    short = _RANGE.sub(r"\1N-N", _HASH.sub("HASH", _NUMBER.sub("job", tail)))
    return f"{_NUMBER.sub('job', re.sub('/[0-9]+$', '/PART', head))}/{short}".lstrip("/")


@dataclass
class _Undo:
    """How to take an operation back, and which flush makes that impossible."""

    scope: frozenset[Any]
    revert: Callable[[], None]
    forget: Callable[[], None]


class DiskFaults:
    """Counts operations on files below some directories. Thread-safe: one change at a time."""

    def __init__(
        self,
        top: Path,
        below: Iterable[Path],
        point: Point | None,
        *,
        trace: Callable[[str], None] | None = None,
        last_words: Callable[[str], None],
    ) -> None:
        """``trace`` gets each label, ``last_words`` the point before the process is killed."""
        self.phase = "start"
        self._top = str(top)
        self._below = tuple(f"{directory}/" for directory in below)
        self._point = point
        self._trace = trace
        self._last_words = last_words
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._undo: list[_Undo] = []
        self._remember = point is not None and point.way == "power"

    def install(self) -> None:
        """Replace the functions of ``os`` in this process."""
        for kind in ("open", "write", "pwrite", "fsync", "rename", "unlink", "mkdir", "symlink"):
            setattr(self, f"_os_{kind}", getattr(os, kind))
        self._os_ftruncate = os.ftruncate
        os.open, os.write, os.pwrite = self._open, self._write, self._pwrite  # type: ignore[assignment]
        os.fsync, os.ftruncate = self._fsync, self._truncate  # type: ignore[assignment]
        os.rename = os.replace = self._rename  # type: ignore[assignment]
        os.unlink = os.remove = self._unlink  # type: ignore[assignment]
        os.mkdir, os.symlink = self._mkdir, self._symlink  # type: ignore[assignment]

    # one operation -------------------------------------------------------------------------

    def _file(self, fd: int) -> str | None:
        """The path behind a descriptor if it is one of those that count."""
        try:
            return self._mine(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            return None

    def _mine(self, path: Any) -> str | None:
        text = os.fsdecode(path)
        return text if f"{text}/".startswith(self._below) else None

    def _do(
        self,
        kind: str,
        path: str,
        do: Callable[[], Any],
        undo: Callable[[], _Undo],
        half: Callable[[], Any] | None = None,
    ) -> Any:
        with self._lock:
            hit = self._begin(kind, path, half)
            taken_back = undo() if self._remember else None
            result = do()
            if taken_back is not None:
                self._undo.append(taken_back)
            if hit:
                self._end()
            return result

    def _begin(self, kind: str, path: str, half: Callable[[], Any] | None = None) -> bool:
        """Count an operation; whether the process ends at it, if it has not ended already."""
        label = f"{self.phase}: {kind} {name(path, self._top)}"
        self._counts[label] += 1
        if self._trace is not None:
            self._trace(label)
        here = Point(label, self._counts[label], self._point.way if self._point else "")
        hit = here == self._point
        if hit and here.way == "before":
            self._die()
        if hit and here.way == "torn" and half is not None:
            half()
            self._die()
        return hit

    def _end(self) -> NoReturn:
        if self._remember:
            self._cut_power()
        self._die()

    def _die(self) -> NoReturn:
        self._last_words(str(self._point))
        os.kill(os.getpid(), signal.SIGKILL)
        while True:
            signal.pause()

    def _cut_power(self) -> None:
        for entry in reversed(self._undo):
            entry.revert()

    def _flushed(self, scope: Any) -> None:
        kept = []
        for entry in self._undo:
            if scope in entry.scope:
                entry.forget()
            else:
                kept.append(entry)
        self._undo = kept

    def count_calls(self, module: Any, function: str) -> None:
        """Let calls of a function count like an operation on a file."""
        original = getattr(module, function)

        def call_counted(*args: Any, **more: Any) -> Any:
            return self.count("call", function, lambda: original(*args, **more))

        setattr(module, function, call_counted)

    def count(self, kind: str, name: str, do: Callable[[], Any]) -> Any:
        """Do something that counts like an operation on a file and cannot be taken back.

        Other threads write meanwhile: a call may wait for a lock that one of them holds.
        """
        with self._lock:
            hit = self._begin(kind, name)
        result = do()
        if hit:
            with self._lock:
                self._end()
        return result

    # the operations ------------------------------------------------------------------------

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None) -> int:
        def do() -> int:
            return self._os_open(path, flags, mode, dir_fd=dir_fd)  # type: ignore[attr-defined]

        mine = self._mine(path) if isinstance(path, str | os.PathLike) else None
        if mine is None or not flags & (os.O_CREAT | os.O_TRUNC):
            return do()
        if not os.path.lexists(mine):
            return self._do("create", mine, do, lambda: self._revert_by_removing(mine))
        if flags & os.O_TRUNC:
            return self._do("truncate", mine, do, lambda: self._revert_by_restoring(mine))
        return do()

    def _write(self, fd: int, data: Any) -> int:
        path = self._file(fd)
        write = self._os_write  # type: ignore[attr-defined]
        if path is None:
            return write(fd, data)
        view = memoryview(data)
        return self._do(
            "write",
            path,
            lambda: write(fd, view),
            lambda: self._revert_content(fd, os.lseek(fd, 0, os.SEEK_CUR), len(view)),
            lambda: write(fd, view[: len(view) // 2]),
        )

    def _pwrite(self, fd: int, data: Any, offset: int) -> int:
        path = self._file(fd)
        pwrite = self._os_pwrite  # type: ignore[attr-defined]
        if path is None:
            return pwrite(fd, data, offset)
        return self._do(
            "write",
            path,
            lambda: pwrite(fd, data, offset),
            lambda: self._revert_content(fd, offset, len(data)),
            lambda: pwrite(fd, data[: len(data) // 2], offset),
        )

    def _truncate(self, fd: int, size: int) -> None:
        path = self._file(fd)
        if path is None:
            self._os_ftruncate(fd, size)
            return
        length = max(0, os.fstat(fd).st_size - size)
        self._do(
            "truncate",
            path,
            lambda: self._os_ftruncate(fd, size),
            lambda: self._revert_content(fd, size, length),
        )

    def _fsync(self, fd: int) -> None:
        path = self._file(fd)
        fsync = self._os_fsync  # type: ignore[attr-defined]
        if path is None:
            fsync(fd)
            return

        def do() -> None:
            fsync(fd)
            self._flushed(path if os.path.isdir(path) else _inode(fd))

        self._do("fsync", path, do, lambda: _Undo(frozenset(), _undo_nothing, _undo_nothing))

    def _rename(self, source: Any, target: Any, **more: Any) -> None:
        rename = self._os_rename  # type: ignore[attr-defined]
        path = self._mine(target)
        if path is None:
            rename(source, target, **more)
            return
        self._do(
            "rename",
            path,
            lambda: rename(source, target, **more),
            lambda: self._revert_rename(os.fsdecode(source), path),
        )

    def _unlink(self, path: Any, **more: Any) -> None:
        unlink = self._os_unlink  # type: ignore[attr-defined]
        mine = self._mine(path)
        if mine is None or not os.path.lexists(mine):
            unlink(path, **more)
            return
        self._do(
            "unlink", mine, lambda: unlink(path, **more), lambda: self._revert_by_restoring(mine)
        )

    def _mkdir(self, path: Any, *args: Any, **more: Any) -> None:
        mkdir = self._os_mkdir  # type: ignore[attr-defined]
        mine = self._mine(path)
        if mine is None or os.path.isdir(mine):
            mkdir(path, *args, **more)
            return
        self._do(
            "mkdir",
            mine,
            lambda: mkdir(path, *args, **more),
            lambda: self._revert_by_removing(mine),
        )

    def _symlink(self, source: Any, path: Any, *args: Any, **more: Any) -> None:
        symlink = self._os_symlink  # type: ignore[attr-defined]
        mine = self._mine(path)
        if mine is None:
            symlink(source, path, *args, **more)
            return
        self._do(
            "symlink",
            mine,
            lambda: symlink(source, path, *args, **more),
            lambda: self._revert_by_removing(mine),
        )

    # taking back ---------------------------------------------------------------------------

    def _revert_by_removing(self, path: str) -> _Undo:
        def revert() -> None:
            if os.path.isdir(path) and not os.path.islink(path):
                self._uninstalled(shutil.rmtree, path, True)
            elif os.path.lexists(path):
                self._os_unlink(path)  # type: ignore[attr-defined]

        return _Undo(frozenset([os.path.dirname(path)]), revert, _undo_nothing)

    def _uninstalled(self, function: Callable[..., None], *args: Any) -> None:
        """Call something of the library that must not count."""
        below, self._below = self._below, ("\0",)
        try:
            function(*args)
        finally:
            self._below = below

    def _revert_by_restoring(self, path: str) -> _Undo:
        content = self._copy(path)

        def revert() -> None:
            self._restore(path, content)

        return _Undo(frozenset([os.path.dirname(path)]), revert, _undo_nothing)

    @staticmethod
    def _copy(path: str) -> bytes | str | None:
        if os.path.islink(path):
            return os.readlink(path)
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as stream:
            return stream.read()

    def _restore(self, path: str, content: bytes | str | None) -> None:
        if os.path.lexists(path):
            self._os_unlink(path)  # type: ignore[attr-defined]
        if isinstance(content, str):
            self._os_symlink(content, path)  # type: ignore[attr-defined]
        elif content is not None:
            with open(path, "wb") as stream:
                stream.write(content)

    def _revert_rename(self, source: str, target: str) -> _Undo:
        replaced = self._copy(target)

        def revert() -> None:
            if os.path.lexists(target):
                self._os_rename(target, source)  # type: ignore[attr-defined]
            self._restore(target, replaced)

        scope = frozenset([os.path.dirname(source), os.path.dirname(target)])
        return _Undo(scope, revert, _undo_nothing)

    def _revert_content(self, fd: int, offset: int, length: int) -> _Undo:
        """Put back the bytes of a region and the size; survives a rename of the file."""
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return _Undo(frozenset(), _undo_nothing, _undo_nothing)
        own = self._os_open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)  # type: ignore[attr-defined]
        old = os.pread(own, length, offset)

        def revert() -> None:
            if old:
                self._os_pwrite(own, old, offset)  # type: ignore[attr-defined]
            self._os_ftruncate(own, info.st_size)

        return _Undo(frozenset([_inode(fd)]), revert, lambda: os.close(own))


def _inode(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _undo_nothing() -> None:
    """For an operation that needs no undoing."""
