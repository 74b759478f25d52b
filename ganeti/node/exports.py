"""Node calls about exports: which there are, reading, finishing and destroying one.

An export is a directory below ``<data>/export`` named like its instance, with a file for each disk
and ``config.ini``. While it is made its directory has ``.new`` at the end of its name, and nobody
lists it; renaming makes it an export, in one step.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import shutil
from functools import cache
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.guest_os import export_config
from ganeti.node.context import NodeContext, check_name
from ganeti.rpc.calls.exports import ExportCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance

log = logging.getLogger(__name__)

#: End of the name of an export that is being made.
UNFINISHED = ".new"
#: Largest ``config.ini`` that is read.
_MOST = 1024 * 1024
_DIR_MODE, _FILE_MODE = 0o700, 0o600
#: renameat2(2)
_AT_FDCWD, _EXCHANGE = -100, 2


class Exports(ExportCalls):
    """The directory of exports of this node."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    @property
    def _root(self) -> Path:
        return self._context.paths.exports

    def export_list(self) -> list[str]:
        """Names of the finished instance exports on this node, sorted.

        Raises:
            GenericError: their directory cannot be read.
        """
        return [name for name in self._list_all() if not name.endswith(UNFINISHED)]

    def list_unfinished(self) -> list[str]:
        """Directories of exports that did not come to their end, sorted; GenericError."""
        found = [name for name in self._list_all() if name.endswith(UNFINISHED)]
        return [str(self._root / name) for name in found]

    def _list_all(self) -> list[str]:
        try:
            found = [entry.name for entry in os.scandir(self._root) if entry.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as err:
            raise errors.GenericError(f"cannot read {self._root}: {err.strerror}") from err
        return sorted(name for name in found if not name.startswith("."))

    def export_info(self, path: str) -> str:
        """Text of ``config.ini`` of an export; a path without a slash is the name of one.

        Raises:
            FileStoragePathError: the path is not below the directory of exports.
            GenericError: there is no export.
        """
        directory = self.find_below(path)
        source = directory / export_config.FILE
        try:
            with source.open("rb") as stream:
                return stream.read(_MOST).decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            raise errors.GenericError(f"there is no export in {directory}") from None
        except OSError as err:
            raise errors.GenericError(f"cannot read {source}: {err.strerror}") from err

    def find_below(self, path: str) -> Path:
        """A file or directory below the directory of exports.

        Raises:
            FileStoragePathError: it is somewhere else, also by a symbolic link.
        """
        root = self._root
        given = Path(self._context.paths.local(path)) if path.startswith("/") else root / path
        if "\0" in path or ".." in given.parts or not files.is_inside(given, root):
            raise errors.FileStoragePathError(
                f"{path[:200]!r} is not below {root}, where the exports of this node are"
            )
        return given

    def export_remove(self, export: str) -> None:
        """Destroy an export by its name, and what an unfinished one left.

        It is renamed first, so that nobody ever sees a part of it. No error when it is gone.

        Raises:
            GenericError: it cannot be removed.
        """
        name = check_name(export)
        for old in (self._root / name, self._root / f"{name}{UNFINISHED}"):
            self._destroy(old)

    def _destroy(self, directory: Path) -> None:
        doomed = directory
        try:
            if not directory.name.endswith(UNFINISHED):
                doomed = directory.with_name(f"{directory.name}{UNFINISHED}")
                shutil.rmtree(doomed, ignore_errors=True)
                directory.rename(doomed)
            shutil.rmtree(doomed)
        except FileNotFoundError:
            return
        except OSError as err:
            raise errors.GenericError(f"cannot remove {doomed}: {err.strerror}") from err
        log.info("removed %s", directory)

    def make_unfinished(self, path: Path) -> None:
        """Make the directory that a dump is about to be written to; OSError."""
        files.ensure_dir(self._root, _DIR_MODE)
        files.ensure_dir(path.parent, _DIR_MODE)

    def finalize_export(
        self, instance: NodeInstance, snap_disks: list[NodeDisk], private: JsonObject
    ) -> None:
        """Make a listed export of the dumps that are here; one of that name is replaced.

        Raises:
            GenericError: a dump is missing, or something cannot be written.
        """
        name = check_name(instance.name)
        final = self._root / name
        unfinished = self._root / f"{name}{UNFINISHED}"
        text = export_config.compose(instance, snap_disks, private, self._context.clock.now())
        try:
            self.make_unfinished(unfinished / export_config.FILE)
            for disk in snap_disks:
                if not (unfinished / disk.uuid).is_file():
                    raise errors.GenericError(f"{unfinished} has no dump of disk {disk.uuid}")
            files.write_atomic(unfinished / export_config.FILE, text, mode=_FILE_MODE)
            files.fsync_dir(unfinished)
            _put_in_place(unfinished, final)
            files.fsync_dir(self._root)
        except OSError as err:
            raise errors.GenericError(f"cannot finish {final}: {err.strerror}") from err
        # what is there now is the export that was replaced
        shutil.rmtree(unfinished, ignore_errors=True)
        log.info("finished the export %s", final)


def _put_in_place(new: Path, final: Path) -> None:
    """Let a directory have its final name, in one step; one that had it gets the other's."""
    if not final.exists():
        new.rename(final)
        return
    if _libc().renameat2(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(final), _EXCHANGE):
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code))
        # a file system that cannot exchange: for a moment neither is listed
        aside = final.with_name(f".{final.name}.old")
        final.rename(aside)
        new.rename(final)
        aside.rename(new)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
