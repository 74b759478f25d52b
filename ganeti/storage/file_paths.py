"""Allowed places of file disks, and the only way in which their directories are opened.

A path arrives from the master and ends in ``create`` or ``unlink`` run as root, so it is checked
twice. First its text and real position are checked (:func:`check_path`). Then its directories are
opened one by one without following links (:func:`open_parent`). So a user who can change a
directory below a root between the two steps gains nothing.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.paths import Paths
from ganeti.storage.interface import Environment

#: Mode of directories made for file disks.
DIRECTORY_MODE = 0o750

#: Directories that hold the system or other people's data; nothing in them may be a disk.
FORBIDDEN_TREES = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/srv/ganeti/extstorage",
    "/srv/ganeti/os",
    "/var/backups",
    "/var/cache",
    "/var/lib/dpkg",
    "/var/lib/ganeti",
    "/var/lib/rpm",
    "/var/lib/systemd",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/run",
    "/var/spool",
)
#: Directories that are shared by many things: a directory of its own below them is fine.
FORBIDDEN_AS_ROOT = ("/", "/srv", "/srv/ganeti", "/tmp", "/var", "/var/lib", "/var/tmp")
#: The directories that all of these lie in: when one of them is what it was, so are the links.
_PARENTS = sorted({name.rpartition("/")[0] for name in (*FORBIDDEN_TREES, *FORBIDDEN_AS_ROOT)})

_HEADER = """\
# Directories of this node that may hold file disks, one a line. The cluster cannot
# change this file; the administrator of the node can.
"""

#: Control characters, and what no file name can be made of.
_UNFIT = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udc7f\\udd00-\\udfff]")


def parse_allowed(text: str, source: str = "file-storage-paths") -> tuple[Path, ...]:
    """Directories of a list with one a line; ``#`` starts a comment line.

    Raises:
        FileStoragePathError: an entry is not absolute or not normalised; the text has its line.
    """
    found: list[Path] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        directory = line.rstrip("/") or "/"
        problem = _text_problem(directory)
        if problem:
            raise errors.FileStoragePathError(
                f"{source} line {number}: '{line}' {problem}: write one full directory a line"
            )
        if Path(directory) not in found:
            found.append(Path(directory))
    return tuple(found)


def load_allowed(paths: Paths) -> tuple[Path, ...] | None:
    """Directories that the administrator of this node allows; None without the file.

    Raises:
        FileStoragePathError: the file cannot be read, or has a wrong line.
    """
    source = paths.file_storage_paths
    try:
        text = files.read_text(source)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as err:
        raise errors.FileStoragePathError(f"cannot read {source}: {err}") from err
    return parse_allowed(text, str(source))


def write_default(paths: Paths, directories: Iterable[str]) -> None:
    """Allow these directories if this node has no list yet; for who sets the node up.

    Raises:
        OSError: it cannot be written.
    """
    if os.path.lexists(paths.file_storage_paths):
        return
    files.ensure_dir(paths.conf)
    lines = dict.fromkeys(f"{directory}\n" for directory in directories if directory)
    files.write_atomic(paths.file_storage_paths, _HEADER + "".join(lines), mode=0o644)


def root_problem(directory: str | Path, paths: Paths) -> str | None:
    """Why a directory may not hold file disks at all (one sentence), or None when it may.

    Reads links and modes only. System directories are those of ``paths.root`` for a directory
    below it, else those of the machine. A missing directory is not a problem: it is made on use.
    """
    text = os.fspath(directory)
    # No link can be followed from a text that is not a path.
    real = text if _text_problem(text) else os.path.realpath(text)
    return _find_real_problem(text, real, paths)


def _find_real_problem(text: str, real: str, paths: Paths) -> str | None:
    """Find the problem for :func:`root_problem` of a directory whose real position is known."""
    problem = _text_problem(text)
    if problem:
        return f"{text!r} {problem}"
    base = os.path.realpath(paths.root)
    if base == "/" or not _is_below(real, base, or_equal=True):
        base = ""
    trees, shared = _system_directories(base, tuple(_read_stamp(base + name) for name in _PARENTS))
    for form in trees:
        if _is_below(real, form, or_equal=True):
            return f"{_format_path(text, real)} is a system directory (part of {form})"
    if real in shared:
        return (
            f"{_format_path(text, real)} is shared by the whole system: use a directory of its own"
        )
    return _mode_problem(text, real)


def check_root(directory: str | Path, env: Environment) -> None:
    """Refuse a directory that may not hold file disks on this node.

    It must be one of ``env.file_roots`` or lie in one, and be no system directory.

    Raises:
        FileStoragePathError: one sentence with the directory and the reason.
    """
    problem = root_problem(directory, env.paths)
    if problem:
        raise errors.FileStoragePathError(f"{problem}; no file disks can be kept there")
    real = os.path.realpath(directory)
    if not any(_is_below(real, base, or_equal=True) for base in _resolve_roots(env)):
        raise _make_outside_error(os.fspath(directory), env)


def check_path(path: str, env: Environment) -> str:
    """The real position of a file or directory strictly below an allowed directory.

    The last part is not followed when it is a link.

    Raises:
        FileStoragePathError: relative, not normalised, control characters, outside every allowed
            directory once links are resolved, or in a system directory.
    """
    return "/".join(_split(path, env))


@contextlib.contextmanager
def open_parent(path: str, env: Environment, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Descriptor of the directory that holds ``path``, and the last part of ``path``.

    Use both with the ``dir_fd`` arguments of :mod:`os`. With ``create`` missing directories are
    made with mode 0750.

    Raises:
        FileStoragePathError: as :func:`check_path`, or a directory turned into a link meanwhile.
        FileNotFoundError: a directory is missing (only without ``create``).
        OSError: it cannot be made or opened.
    """
    base, relative = _split(path, env)
    *directories, name = relative.split("/")
    if create:
        files.ensure_dir(Path(base), DIRECTORY_MODE)
    fd = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in directories:
            below = _step(fd, part, path, create=create)
            os.close(fd)
            fd = below
        yield fd, name
    finally:
        os.close(fd)


def create_directory(path: str, env: Environment) -> None:
    """Make a directory for the disks of an instance, with its parents; fine when it exists.

    Raises:
        FileStoragePathError: it is not below an allowed directory.
        BlockDeviceError: it cannot be made.
    """
    try:
        with open_parent(path, env, create=True) as (parent, name):
            os.close(_step(parent, name, path, create=True))
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot make directory {path}: {err.strerror}") from err


def remove_directory(path: str, env: Environment) -> None:
    """Remove an empty directory; no error when it is not there.

    Raises:
        FileStoragePathError: it is not below an allowed directory.
        BlockDeviceError: it still holds something, or cannot be removed.
    """
    try:
        with open_parent(path, env) as (parent, name):
            os.rmdir(name, dir_fd=parent)
            os.fsync(parent)
    except FileNotFoundError:
        return
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot remove directory {path}: {err.strerror}") from err


def rename_directory(old: str, new: str, env: Environment) -> None:
    """Rename a directory; no error when that has been done already.

    Raises:
        FileStoragePathError: one of the two is not below an allowed directory.
        BlockDeviceError: neither exists, both exist with content, or the system refuses.
    """
    check_path(old, env)
    try:
        with open_parent(new, env, create=True) as (new_parent, new_name):
            try:
                with open_parent(old, env) as (old_parent, old_name):
                    os.rename(old_name, new_name, src_dir_fd=old_parent, dst_dir_fd=new_parent)
                    os.fsync(old_parent)
            except FileNotFoundError:
                os.stat(new_name, dir_fd=new_parent, follow_symlinks=False)
            os.fsync(new_parent)
    except OSError as err:
        raise errors.BlockDeviceError(
            f"cannot rename directory {old} to {new}: {err.strerror}"
        ) from err


def _step(parent: int, name: str, path: str, *, create: bool) -> int:
    """Open one directory level without following a link."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, DIRECTORY_MODE, dir_fd=parent)
            os.fsync(parent)
    try:
        return os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
        )
    except OSError as err:
        if err.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise errors.FileStoragePathError(
            f"'{path}' cannot be used: its part '{name}' is a link or a file, not a directory"
        ) from err


def _split(path: str, env: Environment) -> tuple[str, str]:
    """Real allowed directory, and the rest of the real path below it."""
    problem = _text_problem(path)
    if problem:
        raise errors.FileStoragePathError(f"the disk path {path!r} {problem}")
    parent, name = os.path.split(path)
    real = os.path.join(os.path.realpath(parent), name)
    for base, given in _resolve_roots(env).items():
        if name and _is_below(real, base):
            inside = os.path.dirname(real)
            problem = _find_real_problem(os.fspath(given), base, env.paths)
            if problem is None and inside != base:
                problem = _find_real_problem(inside, inside, env.paths)
            if problem:
                raise errors.FileStoragePathError(
                    f"{problem}; the disk path '{path}' cannot be used"
                )
            return base, real[len(base.rstrip("/")) + 1 :]
    raise _make_outside_error(path, env)


def _resolve_roots(env: Environment) -> dict[str, Path]:
    """Real position of each allowed directory, the deepest first."""
    found = {os.path.realpath(root): root for root in env.file_roots}
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _make_outside_error(path: str, env: Environment) -> errors.FileStoragePathError:
    if not env.file_roots:
        return errors.FileStoragePathError(
            f"'{path}' cannot be used: no directory for file disks is allowed on this node;"
            f" list one in {env.paths.file_storage_paths}"
        )
    roots = ", ".join(str(root) for root in env.file_roots)
    return errors.FileStoragePathError(
        f"'{path}' is outside the directories allowed for file disks ({roots});"
        f" allow its directory in {env.paths.file_storage_paths} or choose another"
    )


def _text_problem(text: str) -> str | None:
    if _UNFIT.search(text):
        return "has characters that no file name should have"
    if not text.startswith("/"):
        return "is not absolute"
    if text.startswith("//") or os.path.normpath(text) != text:
        return "is not normalised (it has '..', '.', '//' or a '/' at its end)"
    return None


def _mode_problem(text: str, real: str) -> str | None:
    try:
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        return None
    except OSError as err:
        return f"{_format_path(text, real)} cannot be accessed: {err.strerror}"
    if not stat.S_ISDIR(mode):
        return f"{_format_path(text, real)} is not a directory"
    if mode & stat.S_IWOTH:
        shown = _format_path(text, real)
        return f"{shown} can be written by everybody (mode {stat.S_IMODE(mode):04o})"
    return None


def _format_path(text: str, real: str) -> str:
    return f"'{text}'" if text == real else f"'{text}' (really '{real}')"


def _read_stamp(directory: str) -> tuple[int, int] | None:
    """Read a stamp that changes with the entries of a directory; None without the directory."""
    try:
        found = os.stat(directory or "/")
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


@functools.lru_cache(maxsize=4)
def _system_directories(base: str, _state: object) -> tuple[list[str], frozenset[str]]:
    """Forbidden trees, as named and as they really are, and real directories that are shared.

    ``_state`` is that of the directories they lie in: when it changes, links may lead elsewhere.
    """
    named = (form for tree in FORBIDDEN_TREES for form in (base + tree, _resolve_below(base, tree)))
    shared = frozenset(_resolve_below(base, name) for name in FORBIDDEN_AS_ROOT)
    return list(dict.fromkeys(named)), shared


def _resolve_below(base: str, name: str) -> str:
    """``os.path.realpath(base + name)`` for a base that is real already; looks at ``name`` only."""
    path = base
    for part in name.strip("/").split("/"):
        path = f"{path}/{part}" if part else path
        if part and os.path.islink(path):
            return os.path.realpath(base + name)
    return path or "/"


def _is_below(path: str, base: str, *, or_equal: bool = False) -> bool:
    if path == base:
        return or_equal
    return path.startswith(base.rstrip("/") + "/")
