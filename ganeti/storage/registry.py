"""Disk template -> driver, imported on first use."""

from __future__ import annotations

from ganeti.base.registry import Registry
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.interface import Device, Environment

TEMPLATES: Registry[type[Device]] = Registry(
    "disk template",
    {
        "file": "ganeti.storage.file:FileDevice",
        "sharedfile": "ganeti.storage.shared_file:SharedFileDevice",
    },
)


def device(disk: NodeDisk, env: Environment) -> Device:
    """The driver object of a disk; ParameterError for a template without driver."""
    return TEMPLATES.get(disk.dev_type)(disk, env)
