"""Logical volumes that should exist. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ganeti.config.snapshots import copies
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.storage.registry import traits_of


@dataclass(frozen=True)
class Expected:
    """A volume of a disk; ``size`` in MiB."""

    #: None: the disk belongs to no instance
    instance: Instance | None
    disk: Disk
    size: int

    @property
    def owner(self) -> str:
        """Name of the instance or uuid of the disk, with the word for it."""
        if self.instance is None:
            return f"disk {self.disk.uuid}"
        return f"instance {self.instance.name}"

    @property
    def forthcoming(self) -> bool:
        """Whether it is only reserved so far."""
        promised = self.disk.forthcoming or (self.instance and self.instance.forthcoming)
        return bool(promised)


def list_volumes(disk: Disk) -> list[Disk]:
    """The logical volumes of a disk: itself, or those that it is built on."""
    if traits_of(disk.dev_type).is_volume:
        return [disk] if len(disk.logical_id) == 2 else []
    return [volume for child in disk.children for volume in list_volumes(child)]


def name(volume: Disk) -> str:
    """``group/volume``"""
    group, own = volume.logical_id
    return f"{group}/{own}"


def list_expected(config: Config) -> dict[str, dict[str, Expected]]:
    """Node uuid -> ``group/volume`` -> what it is there for.

    Volumes of forthcoming instances count: their creation may be under way.
    """
    owners: dict[str, Instance] = {
        uuid: item for item in config.instances.values() for uuid in item.disks
    }
    found: dict[str, dict[str, Expected]] = {}
    for disk in config.disks.values():
        for volume in list_volumes(disk):
            for node in disk.nodes:
                here = found.setdefault(node, {})
                here[name(volume)] = Expected(owners.get(disk.uuid), disk, volume.size)
    for owner in config.instances.values():
        for _disk, copy in itertools.chain(*(copies(config, each) for each in owner.snapshots)):
            for volume in list_volumes(copy):
                for node in copy.nodes:
                    expected = Expected(owner, copy, volume.size)
                    found.setdefault(node, {})[name(volume)] = expected
    return found


def list_coming(disks: Sequence[Disk], volume: Disk) -> list[list[int]]:
    """Sizes of the volumes made after one in its group, as :data:`~ganeti.rpc.objects.BATCH`.

    ``disks`` are those that one node makes in this order; ``volume`` is of the first of them.
    """
    first, *later = [
        [each for each in list_volumes(disk) if each.logical_id[0] == volume.logical_id[0]]
        for disk in disks
    ]
    rest = first[first.index(volume) + 1 :]
    return [[each.size for each in rest], *([e.size for e in each] for each in later if each)]


def groups(config: Config) -> set[str]:
    """Volume groups that hold disks, and that of new disks."""
    names = {config.cluster.volume_group_name} if config.cluster.volume_group_name else set()
    for disk in config.disks.values():
        names.update(str(volume.logical_id[0]) for volume in list_volumes(disk))
    return {str(name) for name in names}
