"""The guests of the fake hypervisor: files in ``<run>/fake-hypervisor``.

A running guest is a file with the name of its instance and three lines: id (0), memory in MiB,
number of virtual processors. Removing the file is how a guest crashes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files, jsonio, sparse
from ganeti.hypervisor import host
from ganeti.model.enums import RunState
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import InstanceInfo


class Guests:
    """The files in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, name: str) -> Path:
        """The file of a running guest; HypervisorError for a name that is not one."""
        host.check_instance_name(name)
        return self.directory / name

    def moving(self, name: str, how: str) -> Path:
        """A guest that waits on either end of a move: it does not run there."""
        return self.directory / f".{how}-{self.path(name).name}"

    def changes_file(self, name: str) -> Path:
        """The file with the changes of devices of a running guest."""
        return self.directory / f".changes-{self.path(name).name}"

    def disks_file(self, name: str) -> Path:
        """The file with the disks of a guest."""
        return self.directory / f".disks-{self.path(name).name}"

    def is_free(self, name: str) -> bool:
        """Whether no move of the guest has begun here."""
        return not any(self.moving(name, how).exists() for how in ("away", "awaited"))

    def find_running(self, name: str) -> InstanceInfo:
        """The guest; HypervisorError when it does not run."""
        found = self.read(name)
        if found is None:
            raise errors.HypervisorError(f"instance {name} does not run on this node")
        return found

    def names(self) -> list[str]:
        """Names of the guests that run."""
        try:
            return sorted(name for name in os.listdir(self.directory) if name[0] != ".")
        except FileNotFoundError:
            return []

    def read(self, name: str) -> InstanceInfo | None:
        """The guest, None when it does not run; HypervisorError for a damaged file."""
        path = self.path(name)
        try:
            with open(path, "rb", buffering=0) as file:
                text = file.read()
        except FileNotFoundError:
            return None
        lines = text.split()
        try:
            return InstanceInfo(memory=int(lines[1]), vcpus=int(lines[2]), state=RunState.RUNNING)
        except (IndexError, ValueError) as err:
            raise errors.HypervisorError(
                f"{path} must hold three numbers, a line each (0, MiB, processors);"
                " remove it to end that guest"
            ) from err

    def write(self, name: str, memory: int, vcpus: int) -> None:
        files.write_atomic(self.path(name), f"0\n{memory}\n{vcpus}\n", fsync=False)

    def disks(self, name: str) -> list[str] | None:
        """UUIDs of the disks that the guest has, None when nothing is noted."""
        try:
            return list(self.disk_paths(name))
        except FileNotFoundError:
            return None

    def disk_paths(self, name: str) -> dict[str, str]:
        """The disks of a guest that runs or is awaited, by uuid; FileNotFoundError."""
        lines = files.read_text(self.disks_file(name)).splitlines()
        found = (line.partition(" ") for line in lines)
        return {uuid: os.path.join(self.directory, path) for uuid, _, path in found}

    def note_disks(self, name: str, disks: Mapping[str, str]) -> None:
        # A guest has its disks open, whatever becomes of links. A tree with a node may be copied.
        real = {uuid: os.path.realpath(path) for uuid, path in disks.items()}
        text = "".join(
            f"{uuid} {os.path.relpath(path, self.directory)}\n" for uuid, path in real.items()
        )
        files.write_atomic(self.disks_file(name), text, fsync=False)

    def add_disk(self, name: str, uuid: str, path: str) -> None:
        self.note_disks(name, {**self._list_other_disks(name, uuid), uuid: path})

    def drop_disk(self, name: str, uuid: str) -> None:
        self.note_disks(name, self._list_other_disks(name, uuid))

    def _list_other_disks(self, name: str, uuid: str) -> dict[str, str]:
        known = {} if self.disks(name) is None else self.disk_paths(name)
        return {other: path for other, path in known.items() if other != uuid}

    # disks that are sent: content is copied at once, and once more when the guest follows

    def sending_file(self, name: str) -> Path:
        """The file with the disks that are sent, and at the target with its own ones."""
        return self.directory / f".sending-{self.path(name).name}"

    def send_disks(self, name: str, uuids: Sequence[str], target: str) -> None:
        """Copy disks to those of a guest that is awaited; ``target`` is the note about these."""
        text = jsonio.dumps({"target": target, "uuids": list(uuids)})
        files.write_atomic(self.sending_file(name), text, fsync=False)
        self.copy_disks(name)

    def copy_disks(self, name: str) -> list[tuple[str, int]]:
        """Copy all disks that are sent or converted, if there are any; uuids and bytes."""
        there = self.successors(name)
        with contextlib.suppress(FileNotFoundError):
            note = jsonio.loads(files.read_text(self.sending_file(name)))
            known = Guests(Path(note["target"]).parent).disk_paths(name)
            there = {uuid: known[uuid] for uuid in note["uuids"]}
        here = self.disk_paths(name) if there else {}
        return [(uuid, _copy(here[uuid], path)) for uuid, path in there.items()]

    # disks that take the place of others

    def successors_file(self, name: str) -> Path:
        return self.directory / f".successors-{self.path(name).name}"

    def successors(self, name: str) -> dict[str, str]:
        """Disks that are to take the place of those with the same uuids, which are their keys."""
        try:
            known = jsonio.loads(files.read_text(self.successors_file(name)))
        except FileNotFoundError:
            return {}
        return {uuid: os.path.normpath(self.directory / path) for uuid, path in known.items()}

    def convert_disks(self, name: str, paths: Mapping[str, str]) -> None:
        known = {uuid: os.path.relpath(path, self.directory) for uuid, path in paths.items()}
        files.write_atomic(self.successors_file(name), jsonio.dumps(known), fsync=False)
        self.copy_disks(name)

    def settle_disks(self, name: str, paths: Mapping[DiskUuid, str]) -> None:
        new = self.successors(name)
        if self.read(name) is not None and new and new.items() <= paths.items():
            self.copy_disks(name)
            self.note_disks(name, {**self.disk_paths(name), **new})
        files.remove(self.successors_file(name))


def _copy(source: str, target: str) -> int:
    with open(source, "rb") as old, open(target, "r+b") as new:
        size = os.lseek(old.fileno(), 0, os.SEEK_END)
        position = 0
        for piece in sparse.pieces(old.fileno(), size):
            sparse.write_changed(new.fileno(), position, piece)
            position += piece.size
    return size


def create(path: Path, text: str) -> bool:
    """Make a complete file in one step; False when there is one already."""
    fd, tmp = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as stream:
            stream.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(tmp, path)
            return True
        return False
    finally:
        os.unlink(tmp)
