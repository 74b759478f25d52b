"""Directories with files of images: those that a node keeps, and its cache of others.

A file has the name of the image's UUID. An incomplete file has another suffix, or lies in a
directory of its own that is emptied when the node daemon starts.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.model.ids import ImageUuid

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = ".qcow2"
_PART = ".part"
_WORK = ".work"


def check_uuid(uuid: ImageUuid) -> str:
    """A UUID that can be part of a file name; ParameterError otherwise."""
    if not _UUID.fullmatch(uuid):
        raise errors.ParameterError(f"{uuid[:80]!r} is not the UUID of an image")
    return uuid


class Shelf:
    """One directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, uuid: ImageUuid) -> Path:
        return self.directory / f"{check_uuid(uuid)}{_SUFFIX}"

    def part(self, uuid: ImageUuid) -> Path:
        """The path of a file until all of it has arrived."""
        return self.directory / f"{check_uuid(uuid)}{_PART}"

    def prepare(self) -> None:
        """Make the directory, for root alone."""
        files.ensure_dir(self.directory, 0o700)

    def has(self, uuid: ImageUuid, size: int) -> bool:
        try:
            return self.path(uuid).stat().st_size == size
        except FileNotFoundError:
            return False

    def sizes(self) -> dict[ImageUuid, int]:
        """UUID -> bytes of all complete files."""
        try:
            entries = list(os.scandir(self.directory))
        except FileNotFoundError:
            return {}
        return {
            ImageUuid(entry.name.removesuffix(_SUFFIX)): entry.stat().st_size
            for entry in entries
            if entry.name.endswith(_SUFFIX) and _UUID.fullmatch(entry.name.removesuffix(_SUFFIX))
        }

    def remove(self, uuid: ImageUuid) -> None:
        for path in (self.path(uuid), self.part(uuid)):
            files.remove(path)

    @contextmanager
    def work(self, uuid: ImageUuid) -> Iterator[Path]:
        """An empty directory in the same file system, which is gone afterwards."""
        self.prepare()
        files.ensure_dir(self.directory / _WORK, 0o700)
        path = self.directory / _WORK / check_uuid(uuid)
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what earlier work left behind that was killed."""
        shutil.rmtree(self.directory / _WORK, ignore_errors=True)

    def publish(self, uuid: ImageUuid, path: Path) -> None:
        """Give a complete, durable file its name."""
        os.replace(path, self.path(uuid))
        files.fsync_dir(self.directory)

    def make_room(self, uuid: ImageUuid, size: int, limit: int) -> None:
        """Remove the files that were not used for longest, so that one more fits the limit."""
        found = []
        for name in self.sizes():
            if name != uuid:
                info = self.path(name).stat()
                found.append((info.st_mtime, info.st_size, name))
        total = sum(entry[1] for entry in found)
        for _time, bytes_, name in sorted(found):
            if total + size <= limit:
                return
            self.remove(name)
            total -= bytes_
