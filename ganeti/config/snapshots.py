"""The places of the copies of disks in snapshots. Pure."""

from __future__ import annotations

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.snapshot import FrozenDisk, Snapshot
from ganeti.storage.registry import TEMPLATES


def content(disk: Disk) -> Disk:
    """The disk below a disk that holds its data: itself, or the data volume of a mirrored one."""
    return disk.children[0] if disk.children else disk


def copy_of(disk: Disk, frozen: FrozenDisk) -> Disk:
    """The copy of a disk as a disk."""
    below = content(disk)
    driver = TEMPLATES.get(below.real_template)
    return base.replace(
        below,
        uuid=disk.uuid,
        iv_name=disk.iv_name,
        logical_id=driver.plan_copy(below.logical_id, frozen.volume),
        size=frozen.size,
        nodes=frozen.nodes,
        children=(),
    )


def copies(config: Config, snapshot: Snapshot) -> list[tuple[Disk, Disk]]:
    """Each disk of a snapshot that still exists, and its copy as a disk."""
    found = [(config.disks.get(frozen.disk), frozen) for frozen in snapshot.disks]
    return [(disk, copy_of(disk, frozen)) for disk, frozen in found if disk is not None]
