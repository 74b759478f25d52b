"""Template ``rbd``: a disk is an image in a pool of Ceph.

With access ``kernelspace`` the image is mapped to a device of the node, with ``userspace`` the
hypervisor opens it by its address.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ganeti import errors
from ganeti.base import process
from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits

MIB = 1024 * 1024
#: First part of the logical id.
DRIVER = "rbd"
#: Seconds a command may take; removing an image means removing all its objects.
TIMEOUT = 840.0
#: Exit code for an image that does not exist (ENOENT).
_NOT_THERE = 2

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class RbdParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of template ``rbd``."""

    #: kernelspace or userspace
    access: str = "kernelspace"
    pool: str = "rbd"
    #: name of the Ceph user, without ``client.``; empty: Ceph's default
    user_id: str = msgspec.field(name="user-id", default="")


class RbdDevice(Device):
    """An image; ``logical_id`` is ("rbd", image)."""

    traits: ClassVar[Traits] = Traits(
        shared=True, found_by_attach=True, id_parts=("driver", "image")
    )
    params: ClassVar[type[msgspec.Struct]] = RbdParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        if len(disk.logical_id) != 2 or not isinstance(disk.logical_id[1], str):
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: an image is named by [{DRIVER}, image], not by"
                f" {list(disk.logical_id)}"
            )
        self.pool = str(disk.params.get("pool") or "rbd")
        self.image = disk.logical_id[1]
        self._user = str(disk.params.get("user-id") or "")
        self._mapped: str | None = None
        for name in (self.pool, self.image, *([self._user] if self._user else [])):
            if not _NAME.fullmatch(name):
                raise errors.BlockDeviceError(f"disk {disk.uuid}: '{name}' is not a name for Ceph")

    @property
    def path(self) -> str:
        """The device of a mapped image, else the address of the image."""
        return self._mapped or f"{self.pool}/{self.image}"

    @property
    def in_kernel(self) -> bool:
        return self.disk.params.get("access") != "userspace"

    def uri(self) -> str | None:
        return None if self.in_kernel else address(self.pool, self.image, self._user)

    def create(self, size: int, *, info: str = "") -> None:
        """Make an image of ``size`` MiB; ``info`` is not kept.

        Raises:
            BlockDeviceError: it exists, or Ceph refuses.
        """
        if size <= 0:
            raise errors.BlockDeviceError(f"{self.path}: a disk of {size} MiB cannot be made")
        if self._size() is not None:
            raise errors.BlockDeviceError(f"cannot create image {self.path}: it exists already")
        self._run("create", "--pool", self.pool, "--size", f"{size}M", self.image)

    def remove(self) -> None:
        if self.attach():
            self.shutdown()
            self._run("rm", "--pool", self.pool, "--no-progress", self.image)

    def attach(self) -> bool:
        """Whether the image exists; finds its device when it is mapped."""
        if self._size() is None:
            return False
        self._mapped = self._find() if self.in_kernel else None
        return True

    def assemble(self) -> None:
        """Map the image, unless the hypervisor opens it by itself. BlockDeviceError."""
        self._need()
        if not self.in_kernel or self._mapped:
            return
        self._run("map", "--pool", self.pool, self.image)
        self._mapped = self._find()
        if self._mapped is None:
            raise errors.BlockDeviceError(f"image {self.path} was mapped but has no device")

    def shutdown(self) -> None:
        device = self._find() if self.in_kernel else None
        if device is not None:
            self._run("unmap", device)
        self._mapped = None

    def open(self, *, exclusive: bool = True) -> None:
        """Only checks that the image can be used."""
        self._need()
        if self.in_kernel and not self._mapped:
            raise errors.BlockDeviceError(f"image {self.path} is not mapped on this node")

    def close(self) -> None:
        """Nothing to undo."""

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Make the image ``amount`` MiB larger; its device follows.

        Raises:
            BlockDeviceError: not there, negative amount, or Ceph refuses.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"{self.path} cannot shrink by {-amount} MiB: disks can only grow"
            )
        size = self._size()
        if size is None:
            raise self._make_missing_error()
        if not dry_run and amount:
            new = -(-size // MIB) + amount
            words = ("--pool", self.pool, "--size", f"{new}M", "--no-progress", self.image)
            self._run("resize", *words)

    def status(self) -> BlockDevStatus:
        self._need()
        if self._mapped is None:
            return BlockDevStatus(dev_path=self.path)
        number = _device_number(self._mapped)
        return BlockDevStatus(dev_path=self._mapped, major=os.major(number), minor=os.minor(number))

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``("rbd", <uuid>.rbd.disk<index>)``"""
        return (DRIVER, f"{request.disk_uuid}.rbd.disk{request.index}")

    @classmethod
    def plan_params(cls, request: PlanRequest) -> JsonObject:
        return dict(request.options)

    def _need(self) -> None:
        if not self.attach():
            raise self._make_missing_error()

    def _make_missing_error(self) -> errors.BlockDeviceError:
        return errors.BlockDeviceError(f"image {self.path} does not exist")

    def _size(self) -> int | None:
        """Bytes of the image, None when it does not exist."""
        result = self._start("info", "--pool", self.pool, "--format", "json", self.image)
        if result.code == _NOT_THERE and not result.timed_out:
            return None
        if not result.ok:
            raise errors.BlockDeviceError(result.explain())
        return read_size(result.stdout)

    def _find(self) -> str | None:
        text = self._run("showmapped", "--format", "json")
        return mapped_device(text, self.pool, self.image)

    def _run(self, *words: str) -> str:
        result = self._start(*words)
        if not result.ok:
            raise errors.BlockDeviceError(result.explain())
        return result.stdout

    def _start(self, *words: str) -> process.Result:
        try:
            return process.run(argv(self._user, *words), timeout=TIMEOUT)
        except errors.CommandError as err:
            raise errors.BlockDeviceError(errors.text(err)) from err


def argv(user: str, *words: str) -> list[str]:
    """A command of ``rbd``, as a user of Ceph. Pure."""
    return ["rbd", *(["--id", user] if user else []), *words]


def address(pool: str, image: str, user: str) -> str:
    """The address that QEMU opens. Pure."""
    return f"rbd:{pool}/{image}" + (f":id={user}" if user else "")


def read_size(text: str) -> int:
    """Bytes of an image, from ``rbd info --format json``; BlockDeviceError."""
    try:
        return int(msgspec.json.decode(text)["size"])
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as err:
        raise errors.BlockDeviceError(f"the answer of rbd info cannot be read: {err}") from err


def mapped_device(text: str, pool: str, image: str) -> str | None:
    """Device of an image, from ``rbd showmapped --format json``.

    That is a list, or with Ceph before Nautilus an object by number. Snapshots do not count.

    Raises:
        BlockDeviceError: it is something else, or the image is mapped more than once.
    """
    try:
        found: Any = msgspec.json.decode(text or "[]")
        rows: Sequence[Mapping[str, object]] = (
            list(found.values()) if isinstance(found, dict) else found
        )
        devices = [
            str(row["device"])
            for row in rows
            if (row["pool"], row["name"]) == (pool, image)
            and not row.get("namespace")
            and row.get("snap", "-") in ("-", "")
        ]
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as err:
        raise errors.BlockDeviceError(
            f"the answer of rbd showmapped cannot be read: {err}"
        ) from err
    if len(devices) > 1:
        raise errors.BlockDeviceError(
            f"image {pool}/{image} is mapped more than once: {', '.join(devices)}"
        )
    return devices[0] if devices else None


def _device_number(device: str) -> int:
    try:
        found = os.stat(device)
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot inspect {device}: {err.strerror}") from err
    if not stat.S_ISBLK(found.st_mode):
        raise errors.BlockDeviceError(f"{device} is not a block device")
    return found.st_rdev
