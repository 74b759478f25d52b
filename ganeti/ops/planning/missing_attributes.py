"""Attributes that a reservation still needs before it can become an instance. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.instance import Instance

#: Missing attribute of a reservation without a place.
NODE = "a node"


@dataclass(frozen=True)
class Attribute:
    """Something that is not known yet, and the command that sets it."""

    name: str
    command: str

    def __str__(self) -> str:
        return f"{self.name} ({self.command})"


def attributes(
    config: Config, instance: Instance, disks: Sequence[Disk] | None = None
) -> list[Attribute]:
    """The attributes that are not set yet. An OS may stay unset: some guests install themselves.

    ``disks`` are those that it is to have, if they are not in the configuration yet.
    """
    if disks is None:
        disks = [config.disks[uuid] for uuid in instance.disks if uuid in config.disks]
    return list(_attributes(config, instance, disks))


def _attributes(config: Config, instance: Instance, disks: Sequence[Disk]) -> Iterator[Attribute]:
    handle = instance.handle
    if not instance.name:
        yield Attribute("a name", f"gnt-instance rename {handle} NAME")
    if instance.primary_node not in config.nodes:
        yield Attribute(NODE, f"gnt-instance failover --target-node NODE {handle}")
    if not has_disks(instance):
        yield Attribute(
            "disks", f"gnt-instance modify --disk add:size=10G {handle}, or -t diskless"
        )
    for index, disk in enumerate(disks):
        if not disk.size:
            yield Attribute(
                f"the size of disk {index}",
                f"gnt-instance modify --disk {index}:size=10G {handle}",
            )


def has_disks(instance: Instance) -> bool:
    """Whether its disks are known; none at all must have been requested."""
    wanted = None if instance.reservation is None else instance.reservation.disk_template
    return bool(instance.disks) or wanted is DiskTemplate.DISKLESS


def find_missing_without_os(instance: Instance) -> Attribute:
    """Missing attribute of an instance without OS that is to be installed."""
    return Attribute(
        "an OS", f"gnt-instance modify --os-type OS {instance.handle}, or --no-install"
    )


def refusal(config: Config, instance: Instance) -> str:
    """Why an operation on a real instance cannot be done with this one, and what helps."""
    handle = instance.handle
    if instance.removable_only:
        return (
            f"instance '{handle}' is forthcoming: job {instance.creating} creates it, or was"
            f" interrupted; then gnt-instance remove {handle} removes what is left of it"
        )
    if instance.interrupted:
        return (
            f"instance '{handle}' is forthcoming: job {instance.creating} makes it real, or was"
            f" interrupted; then gnt-instance add --commit {handle} starts over and"
            f" gnt-instance remove {handle} gives it up"
        )
    missing = attributes(config, instance)
    if not instance.os:
        missing.append(find_missing_without_os(instance))
    rest = f", still missing: {', '.join(map(str, missing))}" if missing else ""
    return (
        f"instance '{handle}' is forthcoming: its place is reserved, but it does not exist"
        f" yet{rest}; gnt-instance add --commit {handle} creates it"
    )
