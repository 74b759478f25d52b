"""Template ``blockdev``: a disk is a block device that the administrator assigns to an instance.

Nothing is ever made or destroyed. All nodes are expected to see the device, as with a SAN.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage import measure
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits

MIB = 1024 * 1024
#: First part of the logical id.
DRIVER = "manual"
#: Names below it stay the same when the node finds its disks in another order.
ROOT = "/dev/disk/"


class BlockParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Adopted devices have no parameters."""


class BlockDevice(Device):
    """A device below ``/dev/disk``; ``logical_id`` is ("manual", path)."""

    traits: ClassVar[Traits] = Traits(shared=True, growable=False, may_adopt=True, must_adopt=True)
    params: ClassVar[type[msgspec.Struct]] = BlockParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        self._path = env.paths.local(_check_name(disk.uuid, disk.logical_id))

    @property
    def path(self) -> str:
        return self._path

    def create(self, size: int, *, info: str = "") -> None:
        """Only checks that the device is there and has ``size`` MiB; its content stays.

        Raises:
            BlockDeviceError: it is not there, no block device, or smaller.
        """
        self._need()
        found = measure.device_size(self.path) // MIB
        if size <= 0 or found < size:
            raise errors.BlockDeviceError(f"{self.path} has {found} MiB, not {size} MiB")

    def remove(self) -> None:
        """Nothing: the device and its content belong to the administrator."""

    def attach(self) -> bool:
        """Whether the device is there; BlockDeviceError when something else has its name."""
        try:
            mode = os.stat(self.path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as err:
            raise errors.BlockDeviceError(f"cannot inspect {self.path}: {err.strerror}") from err
        if not stat.S_ISBLK(mode) or not os.path.realpath(self.path).startswith("/dev/"):
            raise errors.BlockDeviceError(
                f"{self.path} is not a block device below /dev: it was not touched"
            )
        return True

    def assemble(self) -> None:
        """Only checks that the device is there."""
        self._need()

    def shutdown(self) -> None:
        """Nothing to undo."""

    def open(self, *, exclusive: bool = True) -> None:
        """Only checks that the device is there."""
        self._need()

    def close(self) -> None:
        """Nothing to undo."""

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Refused: the device is not ours."""
        raise errors.BlockDeviceError(
            f"{self.path} was adopted and cannot be grown here: grow it where it comes from"
        )

    def status(self) -> BlockDevStatus:
        self._need()
        number = os.stat(self.path).st_rdev
        return BlockDevStatus(dev_path=self.path, major=os.major(number), minor=os.minor(number))

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``("manual", path)``; ParameterError without a device that can be adopted."""
        if not request.adopt:
            raise errors.ParameterError(
                f"disk {request.index}: template blockdev makes no disks; name a device, as in"
                f" --disk {request.index}:adopt={ROOT}by-id/NAME"
            )
        problem = _problem(request.adopt)
        if problem:
            raise errors.ParameterError(f"disk {request.index}: {problem}")
        return (DRIVER, request.adopt)

    def _need(self) -> None:
        if not self.attach():
            raise errors.BlockDeviceError(f"block device {self.path} does not exist")


def _check_name(uuid: DiskUuid, logical_id: Sequence[object]) -> str:
    if len(logical_id) != 2 or not isinstance(logical_id[1], str):
        raise errors.BlockDeviceError(
            f"disk {uuid}: an adopted device is named by [{DRIVER}, path], not by"
            f" {list(logical_id)}"
        )
    problem = _problem(logical_id[1])
    if problem:
        raise errors.BlockDeviceError(f"disk {uuid}: {problem}")
    return logical_id[1]


def _problem(path: str) -> str | None:
    if not path.startswith(ROOT) or os.path.normpath(path) != path or "\0" in path:
        return f"'{path[:200]}' is not below {ROOT}, where names of devices do not change"
    return None
