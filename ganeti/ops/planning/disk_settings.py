"""Settings of a disk that can be changed while it keeps its data."""

from __future__ import annotations

from ganeti import errors
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskMode
from ganeti.opcodes.devices import DiskParams

#: Most that the guest may do with the disk in a second; 0 stands for no limit.
LIMITS = ("max_iops", "max_bandwidth")
#: Keys of the settings.
KEYS = ("mode", "name", "spindles", *LIMITS)


def change(disk: Disk, given: DiskParams) -> Disk:
    """The disk with new settings; what is not given stays. Pure."""
    values = {key: value for key in KEYS if (value := getattr(given, key)) is not None}
    if "mode" in values:
        values["mode"] = DiskMode(values["mode"])
    if values.get("name") == "none":
        values["name"] = None
    return base.replace(disk, **values)


def list_changed(before: Disk, after: Disk, *keys: str) -> list[str]:
    """Which of some settings differ."""
    return [key for key in keys if getattr(before, key) != getattr(after, key)]


def check_limits(hypervisor: str, disk: Disk) -> None:
    """Refuse limits of a disk that its hypervisor would ignore; OpPrereqError."""
    given = [key for key in LIMITS if getattr(disk, key)]
    if given and not HYPERVISORS.get(hypervisor).traits.limits_disks:
        raise errors.make_invalid_error(
            f"hypervisor {hypervisor} does not limit what guests do with their disks, so"
            f" {' and '.join(given)} cannot be set"
        )
