"""Files that survive a crash: atomic replacement, synchronised directories, locks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from ganeti import errors
from ganeti.base import text

_FULL = (errno.ENOSPC, errno.EDQUOT)
#: Errors that are about where a file lies.
_DEVICE = (*_FULL, errno.EROFS, errno.EIO, errno.EFBIG)
#: Begin of the names under which :func:`write_many` writes; rests of a crash can be removed.
NEW_PREFIX = ".new-"
#: Files that :func:`write_many` has open at the same time.
OPEN_AT_ONCE = 64
_SYNC_FILE_RANGE_WRITE = 2


class WriteError(OSError):
    """A file could not be written; unlike other OSErrors it always names the file."""

    def __init__(self, err: OSError, path: Path | str, size: int) -> None:
        super().__init__(err.errno, err.strerror or str(err), os.fspath(path))
        #: bytes that were to be written
        self.size = size


@contextlib.contextmanager
def writing(path: Path | str, size: int) -> Iterator[None]:
    """Name the file in what a write raises, which knows nothing but a descriptor.

    Raises:
        WriteError: the device is full, read-only or broken, or no file is named.
    """
    try:
        yield
    except OSError as err:
        if isinstance(err, WriteError) or (err.errno not in _DEVICE and err.filename):
            raise
        raise WriteError(err, path, size) from err


def failure(err: OSError) -> errors.FileError:
    """Explain an error of the system: its path, its meaning and what to do about it."""
    reason = text.os_error(err)
    if not isinstance(err, WriteError):
        return errors.FileError(reason)
    reason = f"cannot write {reason}"
    mount = _mount_of(Path(err.filename))
    if err.errno == errno.EROFS:
        reason += f" ({mount} is mounted read-only)"
    elif err.errno == errno.EIO:
        reason += f" (the device below {mount} fails; the log of the kernel says more)"
    elif err.errno in _FULL:
        reason += f" ({_room(mount)}, {_kib(err.size)} needed; make room on {mount})"
    return errors.FileError(reason)


def _mount_of(path: Path) -> Path:
    found = path.absolute().parent
    while not found.is_mount() and found != found.parent:
        found = found.parent
    return found


def _room(mount: Path) -> str:
    try:
        facts = os.statvfs(mount)
    except OSError:
        return "free space unknown"
    if facts.f_files and not facts.f_favail:
        return "no inode is free"
    return f"{_kib(facts.f_bavail * facts.f_frsize)} free"


def _kib(size: int) -> str:
    return f"{-(-size // 1024)} KiB"


def fsync_dir(path: Path) -> None:
    """Make renames and creations in a directory durable; blocks for one disk flush."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_many(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Replace several files below a directory, each in one step; all are on disk at return.

    Raises:
        OSError: disk full, no permission. Each file is the old or the new one; no rest is left.
    """
    root = os.fspath(directory)
    final = {name: f"{root}/{name}" for name in contents}
    new = {name: f"{root}/{NEW_PREFIX}{name.replace('/', '-')}" for name in contents}
    names = list(contents)
    written: list[str] = []
    try:
        for at in range(0, len(names), OPEN_AT_ONCE):
            part = names[at : at + OPEN_AT_ONCE]
            written += (new[name] for name in part)
            _write_new([(new[name], contents[name]) for name in part])
        for name, path in final.items():
            os.rename(new[name], path)
        for parent in {os.path.dirname(path) for path in final.values()}:
            fsync_dir(Path(parent))
    except OSError:
        for path in written:
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise


def _write_new(contents: Iterable[tuple[str, bytes]]) -> None:
    """Write and flush new files. All are handed to the disk before the first is waited for."""
    with contextlib.ExitStack() as opened:
        descriptors = []
        for path, data in contents:
            with writing(path, len(data)):
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
                opened.callback(os.close, fd)
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
            descriptors.append(fd)
        if len(descriptors) > 1:
            _start_writing(descriptors)
        for fd in descriptors:
            os.fsync(fd)


def _start_writing(descriptors: Iterable[int]) -> None:
    """Begin to write to disk without waiting; only a hint, so it never fails."""
    begin = _sync_file_range()
    for fd in descriptors:
        begin(fd)


@cache
def _sync_file_range() -> Callable[[int], object]:
    """sync_file_range(2) for a whole file, or nothing where there is no such call."""
    import ctypes  # commands read this module too, and never need it

    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is None:
        return lambda _fd: None
    return lambda fd: call(fd, ctypes.c_int64(0), ctypes.c_int64(0), _SYNC_FILE_RANGE_WRITE)


def write_atomic(
    path: Path,
    data: bytes | str,
    *,
    mode: int = 0o640,
    fsync: bool = True,
    uid: int = -1,
    gid: int = -1,
) -> None:
    """Replace a file in one step: readers see the old or the new content, never a mixture.

    With ``fsync`` the new content is on disk when this returns (file and directory).
    The mode is set before the content is written, so that a secret is never readable.

    Raises:
        OSError: disk full, no permission; the old file is untouched and no rest is left.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    with writing(path, len(raw)):
        _replace(path, raw, mode, fsync, (uid, gid))
        if fsync:
            fsync_dir(path.parent)


def _replace(path: Path, raw: bytes, mode: int, fsync: bool, owner: tuple[int, int]) -> None:
    fd, tmp = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        try:
            os.fchmod(fd, mode)
            if owner != (-1, -1):
                os.fchown(fd, *owner)
            view = memoryview(raw)
            while view:
                view = view[os.write(fd, view) :]
            if fsync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(tmp, path)
    except BaseException:  # an interrupt too: remove the temporary file and raise it
        with contextlib.suppress(FileNotFoundError):
            os.unlink(tmp)
        raise


def set_aside(path: Path, label: str, *, keep: bool = False) -> Path:
    """Copy (``keep``) or rename a file to a name of its own beside it; that name.

    A copy can be read by its owner only, for it may hold secrets. Nothing is overwritten.

    Raises:
        OSError: no permission, disk full; nothing was changed.
    """
    number = 0
    while True:
        target = path.with_name(f"{path.name}.{label}{f'-{number}' if number else ''}")
        try:
            fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            number += 1
            continue
        break
    if keep:
        with os.fdopen(fd, "wb") as stream:
            try:
                stream.write(path.read_bytes())
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                target.unlink()
                raise
    else:
        os.close(fd)
        path.rename(target)
    fsync_dir(path.parent)
    return target


def sweep(directory: Path, names: Iterable[str]) -> None:
    """Remove what :func:`write_atomic` of these files left when it was killed.

    Nobody may be writing them.
    """
    rests = re.compile(rf"\.(?:{'|'.join(map(re.escape, names))})\.[a-z0-9_]{{8}}")
    for entry in os.scandir(directory):
        if rests.fullmatch(entry.name):
            os.unlink(entry.path)


def find_stamp(path: Path) -> tuple[int, int, int] | None:
    """A stamp that differs when a file was changed or replaced; None without the file."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino


def read_text(path: Path) -> str:
    """Content of a UTF-8 file; OSError when it cannot be read."""
    return path.read_text(encoding="utf-8")


def ensure_dir(path: Path, mode: int = 0o750) -> None:
    """Make a directory and its parents if missing; an existing one keeps its mode."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        # Somebody else made it just now, unless it is something else.
        if not path.is_dir():
            raise
        return
    path.chmod(mode)


def remove(path: Path) -> bool:
    """Remove a file; False when it was not there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


class FileLock:
    """An exclusive ``flock`` on a file; freed by the kernel when the process dies."""

    def __init__(self, path: Path, mode: int = 0o640) -> None:
        self.path = path
        self._mode = mode
        self._fd: int | None = None

    def acquire(self, *, blocking: bool = False) -> None:
        """Take the lock.

        Raises:
            LockError: another process holds it (only without ``blocking``).
        """
        if self._fd is not None:
            raise errors.ProgrammerError(f"{self.path} is locked by this object already")
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self._mode)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except OSError as err:
            os.close(fd)
            if err.errno in (errno.EAGAIN, errno.EACCES):
                raise errors.LockError(f"{self.path} is locked by another process") from err
            raise
        self._fd = fd

    def release(self) -> None:
        """Free the lock; the file stays, as others may wait on it. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def held(self) -> bool:
        return self._fd is not None

    def fileno(self) -> int:
        """Descriptor of the held lock (to write a pid into the file)."""
        if self._fd is None:
            raise errors.ProgrammerError(f"{self.path} is not locked")
        return self._fd

    @contextlib.contextmanager
    def hold(self, *, blocking: bool = True) -> Iterator[None]:
        self.acquire(blocking=blocking)
        try:
            yield
        finally:
            self.release()


def is_locked(path: Path) -> bool:
    """Whether somebody holds a :class:`FileLock` on a file; False for a missing file.

    Has the lock itself for a moment, shared, so that several can ask at the same time.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def is_inside(path: str | Path, root: Path) -> bool:
    """Whether an absolute path, with symbolic links and ``..`` resolved, is below ``root``."""
    text = os.fspath(path)
    if not os.path.isabs(text) or "\0" in text:
        return False
    real = os.path.realpath(text)
    base = os.path.realpath(root)
    return real == base or real.startswith(base.rstrip("/") + "/")
