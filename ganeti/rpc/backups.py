"""The request to the node that makes a backup, and its answer."""

from __future__ import annotations

import msgspec

from ganeti.model.backup import Manifest
from ganeti.model.enums import Consistency
from ganeti.rpc.images import NodeImage
from ganeti.rpc.objects import NodeDisk


class BackupPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One backup in a repository; ``instance`` is the name that it had then."""

    repository: str
    instance: str
    id: str


class BackupRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a new backup."""

    place: BackupPlace
    #: compare with nothing
    full: bool = False
    #: most MiB/s that are read; 0: no limit
    bandwidth: int = 0
    #: the last backup, as the cluster remembers it
    last_id: str | None = None
    #: state of the disks when the guest does not run
    at_rest: Consistency = Consistency.CLEAN
    #: text of ``config.ini`` of an export
    settings: str = ""
    #: copies on the node that are read in place of the disks, in their order
    copies: tuple[NodeDisk, ...] = ()


class BootTest(msgspec.Struct, frozen=True, kw_only=True):
    """How a copy is started, and what it has to show; see :mod:`ganeti.backup.sign`."""

    sign: str
    #: seconds until it must have shown it
    timeout: int


class FileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which files are read, and by what."""

    #: full paths in a file system of a disk
    paths: list[str]
    #: of the helper guest
    image: NodeImage | str
    #: seconds until it must have begun, and until it must have ended after these
    startup_timeout: int
    timeout: int


class FileResult(msgspec.Struct, frozen=True, kw_only=True):
    """An archive of tar with files of a backup, on the node."""

    path: str
    files: int
    #: bytes
    size: int


class BackupResult(msgspec.Struct, frozen=True, kw_only=True):
    """Backup that a node has made, with notes for the user."""

    manifest: Manifest
    notes: tuple[str, ...] = ()
