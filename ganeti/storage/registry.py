"""Disk template -> driver, imported on first use."""

from __future__ import annotations

import msgspec

from ganeti.base.registry import Registry
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.interface import Device, Environment

TEMPLATES: Registry[type[Device]] = Registry(
    "disk template",
    {
        "blockdev": "ganeti.storage.block:BlockDevice",
        "drbd": "ganeti.storage.drbd.device:DrbdDevice",
        "ext": "ganeti.storage.external:ExtDevice",
        "file": "ganeti.storage.file:FileDevice",
        "gluster": "ganeti.storage.gluster:GlusterDevice",
        "plain": "ganeti.storage.lvm.device:LvmDevice",
        "rbd": "ganeti.storage.rbd:RbdDevice",
        "sharedfile": "ganeti.storage.shared_file:SharedFileDevice",
    },
)


def device(disk: NodeDisk, env: Environment) -> Device:
    """The driver object of a disk; ParameterError for a template without driver."""
    driver = TEMPLATES.get(disk.dev_type)
    if driver.traits.file_based and disk.logical_id:
        *first, path = disk.logical_id
        local = env.paths.local(str(path))
        disk = msgspec.structs.replace(disk, logical_id=(*first, local))
    return driver(disk, env)
