"""How much room a storage unit has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.storage.lvm import report as lvm

MIB = 1024 * 1024

#: Storage types whose room can be told here.
REPORTING = ("file", "lvm-pv", "lvm-vg", "sharedfile")


def report(kind: str, name: str, params: Sequence[object] = ()) -> tuple[int, int]:
    """(size, free) of a storage unit of this node: in MiB, of ``lvm-pv`` in physical volumes.

    Spindles only count with exclusive storage; ``lvm-pv`` is (0, 0) without.

    ``name`` is a directory or a volume group. ``params`` of LVM types is ``[exclusive storage]``;
    what is left on a disk that is in use is not free then. May block as long as LVM or the file
    system does (a network file system whose server is away).

    Raises:
        StorageError: the type tells no room, or the directory cannot be asked.
        BlockDeviceError: the volume group is not there or cannot be asked.
    """
    if kind not in REPORTING:
        raise errors.StorageError(
            f"storage type '{kind}' does not tell its room here; {', '.join(REPORTING)} do"
        )
    if kind.startswith("lvm"):
        return _group_room(kind, name, exclusive=bool(params and params[0]))
    return _directory_room(kind, name)


def _group_room(kind: str, name: str, *, exclusive: bool) -> tuple[int, int]:
    group = lvm.group(name)
    if not exclusive:
        return (0, 0) if kind == "lvm-pv" else (group.vg_size // MIB, group.vg_free // MIB)
    uses = lvm.uses(name)
    unused = lvm.empty(uses)
    if kind == "lvm-pv":
        return len(uses), len(unused)
    return group.vg_size // MIB, sum(use.free for use in unused) // MIB


def _directory_room(kind: str, name: str) -> tuple[int, int]:
    """Size and free space of a directory in MiB, for daemons without special rights.

    A directory that is not there yet is counted on the file system on which it would be made.
    """
    if not os.path.isabs(name) or "\0" in name:
        raise errors.StorageError(f"a {kind} storage unit is a full directory, not '{name!r}'")
    directory = Path(os.path.normpath(name))
    while True:
        try:
            found = os.statvfs(directory)
        except FileNotFoundError:
            directory = directory.parent
        except OSError as err:
            raise errors.StorageError(
                f"cannot ask {directory} for its room: {err.strerror}"
            ) from err
        else:
            break
    return (
        found.f_blocks * found.f_frsize // MIB,
        found.f_bavail * found.f_frsize // MIB,
    )
