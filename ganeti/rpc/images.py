"""Images as nodes know them, and what a helper guest does with one."""

from __future__ import annotations

import msgspec

from ganeti.model.ids import ImageUuid


class NodeImage(msgspec.Struct, kw_only=True, frozen=True):
    """An image for a node that shall have or use it."""

    uuid: ImageUuid
    name: str
    #: bytes of the file that is kept, and its SHA-256
    size: int
    sha256: str
    #: MiB that a disk must have for it
    disk_size: int
    #: (name, address) of the nodes that have it
    sources: tuple[tuple[str, str], ...] = ()


class HelperTask(msgspec.Struct, kw_only=True, frozen=True):
    """Task of a helper guest: its image, its work, and its time limits."""

    image: NodeImage | str
    #: install the OS of the instance; else zero the free space on its disks
    installs: bool
    reinstall: bool = False
    debug: int = 0
    #: seconds until it must have begun; None: it need not tell
    startup_timeout: int | None = None
    #: seconds until it must have ended, after these
    timeout: int


class ImageFacts(msgspec.Struct, kw_only=True):
    """Facts that a node found out while it made an image; see ``model/image.py``."""

    source_format: str
    source_sha256: str
    disk_size: int
    file_size: int
    sha256: str
