"""Template ``sharedfile``: file disks in a directory that all nodes mount (NFS, OCFS2, ...).

The administrator mounts it; any node can then start the instance.
"""

from __future__ import annotations

from typing import ClassVar

from ganeti.storage.file import FileDevice
from ganeti.storage.interface import Traits


class SharedFileDevice(FileDevice):
    """A file disk whose bytes every node sees."""

    traits: ClassVar[Traits] = Traits(
        file_based=True,
        shared=True,
        space_checked_as="sharedfile",
        directory="shared_file_storage_dir",
    )
