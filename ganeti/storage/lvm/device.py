"""Template ``plain``: a disk is a logical volume of LVM on its node.

A volume stays active while its instance is stopped: LVM activates the groups of a node when it
boots, and an active volume costs nothing.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from ganeti import errors, paths
from ganeti.model.enums import LocalDisk
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import BATCH, BlockDevStatus, NodeDisk
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits
from ganeti.storage.lvm import allocation, report, tool
from ganeti.storage.lvm.argv import check_name, create_argv, grow_argv, snapshot_argv, tag_of

MIB = 1024 * 1024
#: Seconds to wait for another change of the same volume group by this daemon.
GROUP_WAIT = 600.0

#: How a volume grows: where it is, on the same disks, anywhere in the group.
_GROW_POLICIES = ("contiguous", "cling", "normal")

_changing: dict[str, threading.Lock] = {}
_changing_guard = threading.Lock()


class LvmParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of template ``plain``."""

    #: physical volumes over which a new volume is striped
    stripes: int = 1


class LvmDevice(Device):
    """A logical volume; ``logical_id`` is (volume group, volume).

    Methods block for the LVM tools, which wait for each other; see :mod:`ganeti.storage.lvm.tool`.
    """

    traits: ClassVar[Traits] = Traits(
        space_checked_as="lvm-vg",
        may_adopt=True,
        holds_old_data=True,
        id_parts=("vg", "volume"),
    )
    params: ClassVar[type[msgspec.Struct]] = LvmParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        self.group, self.name = _check_names(disk.uuid, disk.logical_id)

    @property
    def path(self) -> str:
        return self.env.paths.local(f"/dev/{self.group}/{self.name}")

    def create(self, size: int, *, info: str = "") -> None:
        """Make a volume of ``size`` MiB with ``info`` as its tag, and activate it.

        Signatures of what was on those disks before are wiped. The physical volumes are chosen
        so that those of one instance lie together, see :mod:`ganeti.storage.lvm.allocation`.

        Raises:
            BlockDeviceError: it exists, the group is missing or full, or LVM refuses.
        """
        if size <= 0:
            raise errors.BlockDeviceError(f"{self.path}: a disk of {size} MiB cannot be made")
        tag = tag_of(info)
        with _changes(self.group):
            if self.attach():
                raise errors.BlockDeviceError(
                    f"cannot create {self.path}: it exists already; remove it if nothing uses it"
                )
            disks, stripes = self._choose(size, tag)
            tool.run(create_argv(self.group, self.name, size, stripes, tag, disks))

    def remove(self) -> None:
        with _changes(self.group):
            if self.attach():
                tool.run(["lvremove", "--force", "--yes", self._full_name])

    def attach(self) -> bool:
        """Whether the volume exists, active or not; BlockDeviceError without its group.

        LVM is not asked about an active volume: its device exists exactly as long as it is active.
        """
        return self._has_device() or report.volume(self.group, self.name) is not None

    def _has_device(self) -> bool:
        try:
            return stat.S_ISBLK(os.stat(self.path).st_mode)
        except OSError:
            return False

    def assemble(self) -> None:
        """Activate the volume; BlockDeviceError when it is not there or a part is missing."""
        try:
            tool.run(["lvchange", "--yes", "--activate", "y", self._full_name])
        except errors.BlockDeviceError as err:
            raise errors.BlockDeviceError(
                f"cannot activate {self.path}: {errors.text(err)}"
            ) from err

    def shutdown(self) -> None:
        """Nothing to undo: the volume stays active."""

    def open(self, *, exclusive: bool = True) -> None:
        """Only checks that the device is there."""
        self._device_number()

    def close(self) -> None:
        """Nothing to undo."""

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Add ``amount`` MiB, if possible on the disks that the volume is on.

        Raises:
            BlockDeviceError: not there, negative amount, or the group is full.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"{self.path} cannot shrink by {-amount} MiB: disks can only grow"
            )
        with _changes(self.group):
            volume = self._need()
            if not amount:
                return
            amount = self._round_to_stripes(volume, amount)
            disks = self._growth_disks(volume, amount) if self.env.exclusive_storage else []
            for policy in _GROW_POLICIES:
                try:
                    tool.run(grow_argv(self._full_name, amount, policy, disks, test=dry_run))
                    return
                except errors.BlockDeviceError as err:
                    if policy == _GROW_POLICIES[-1]:
                        raise errors.BlockDeviceError(
                            f"cannot grow {self.path} by {amount} MiB: {errors.text(err)}"
                        ) from err

    def rename(self, new_id: Sequence[str]) -> None:
        """Rename the volume in its group; no error when that has been done already.

        So does an instance adopt a volume, too. ``self.disk`` has the new id afterwards.

        Raises:
            BlockDeviceError: another group, neither volume exists, or the new one exists.
        """
        target = type(self)(msgspec.structs.replace(self.disk, logical_id=tuple(new_id)), self.env)
        if target.group != self.group:
            raise errors.BlockDeviceError(
                f"cannot rename {self.path} to {target.path}: that is another volume group"
            )
        if target.name != self.name:
            with _changes(self.group):
                there = target.attach()
                if self.attach():
                    if there:
                        raise errors.BlockDeviceError(
                            f"cannot rename {self.path} to {target.path}: that exists already"
                        )
                    tool.run(["lvrename", self.group, self.name, target.name])
                elif not there:
                    raise self._make_missing_error()
        self.disk, self.name = target.disk, target.name

    def snapshot(self, name: str, size: int) -> tuple[str, ...]:
        """Freeze the content under another name, with room for ``size`` MiB of later changes.

        0 takes the size of the volume, so that the snapshot cannot overflow. One of that name is
        replaced. Returns its logical id.

        Raises:
            BlockDeviceError: not there, the group is full, or LVM refuses.
        """
        name = name or f"{self.name}.snap"
        frozen = type(self)(
            msgspec.structs.replace(self.disk, logical_id=(self.group, name)), self.env
        )
        if frozen.name == self.name:
            raise errors.BlockDeviceError(f"a snapshot of {self.path} needs another name")
        frozen.remove()
        with _changes(self.group):
            volume = self._need()
            size = size or -(-volume.lv_size // MIB)
            free = report.group(self.group).vg_free // MIB
            if size > free:
                raise self._make_room_error(size, free)
            tool.run(snapshot_argv(self.group, self.name, name, size, volume.tags))
        return (self.group, name)

    def set_info(self, text: str) -> None:
        """Replace the tags of the volume by one made of ``text``; BlockDeviceError."""
        volume = self._need()
        tag = tag_of(text)
        changes = [word for old in volume.tags if old != tag for word in ("--deltag", old)]
        if tag and tag not in volume.tags:
            changes += ["--addtag", tag]
        if changes:
            tool.run(["lvchange", *changes, self._full_name])

    def spindles(self) -> int | None:
        """Physical volumes that the volume lies on; BlockDeviceError when it is not there."""
        return len(self._need().disks)

    def status(self) -> BlockDevStatus:
        volume = self._need()
        major, minor = self._device_number() if volume.is_active else (0, 0)
        return BlockDevStatus(
            dev_path=self.path,
            major=major,
            minor=minor,
            is_degraded=volume.is_faulty,
            ldisk_status=LocalDisk.FAULTY if volume.is_faulty else LocalDisk.OKAY,
        )

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``(volume group, <uuid>.disk<index>)``.

        Raises:
            ParameterError: no volume group, or one whose name cannot be one.
        """
        if not request.vg:
            raise errors.ParameterError(
                f"no volume group for the disks of {request.instance_name}: set the cluster's"
                " with gnt-cluster modify --vg-name, or name one for the disk with vg="
            )
        check_name(request.vg, "volume group")
        return (request.vg, f"{request.disk_uuid}.disk{request.index}")

    @property
    def _full_name(self) -> str:
        return f"{self.group}/{self.name}"

    def _need(self) -> report.Volume:
        volume = report.volume(self.group, self.name)
        if volume is None:
            raise self._make_missing_error()
        return volume

    def _make_missing_error(self) -> errors.BlockDeviceError:
        return errors.BlockDeviceError(f"logical volume {self.path} does not exist")

    def _make_room_error(self, needed: int, free: int) -> errors.BlockDeviceError:
        return errors.BlockDeviceError(
            f"needs {needed} MiB, {free} MiB free in volume group {self.group}"
        )

    def _device_number(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError as err:
            raise errors.BlockDeviceError(f"{self.path} cannot be used: {err.strerror}") from err
        if stat.S_ISREG(found.st_mode) and paths.is_rooted():
            return 0, 0  # a node that lives in a directory has files for volumes
        if not stat.S_ISBLK(found.st_mode):
            raise errors.BlockDeviceError(f"{self.path} is not a block device")
        return os.major(found.st_rdev), os.minor(found.st_rdev)

    def _choose(self, size: int, tag: str) -> tuple[list[str], int]:
        """Physical volumes for a new volume, and over how many of them it is striped."""
        uses = [use for use in report.uses(self.group) if use.allocatable]
        if not uses:
            raise errors.BlockDeviceError(
                f"volume group {self.group} has no disk on this node that may be used"
            )
        step = uses[0].extent_size
        wanted = int(self.disk.params.get("stripes", 1))
        try:
            if self.env.exclusive_storage:
                chosen = self._choose_exclusive(uses, -(-size * MIB // step))
                return chosen, min(max(wanted, 1), len(chosen))
            rooms = [allocation.Room(u.name, u.free // step, tag in u.tags) for u in uses]
            same_disk_sizes, *later = self.disk.dynamic_params.get(BATCH) or [[]]
            batch = [[size, *same_disk_sizes], *later]
            extents = [[-(-each * MIB // step) for each in together] for together in batch]
            if wanted > 1:
                striped = allocation.stripe(rooms, extents[0][0], wanted)
                if striped:
                    return striped, len(striped)
            return self._place(rooms, extents), 1
        except allocation.NoRoomError as err:
            raise self._make_room_error(size, err.free * step // MIB) from err

    @staticmethod
    def _place(rooms: list[allocation.Room], batch: list[list[int]]) -> list[str]:
        try:
            return list(allocation.place(rooms, batch)[0][0])
        except allocation.NoRoomError:
            # The rest of the instance will not fit; this volume may.
            return list(allocation.place(rooms, [batch[0][:1]])[0][0])

    def _choose_exclusive(self, uses: Sequence[report.PhysicalUse], extents: int) -> list[str]:
        if not self.disk.spindles:
            raise errors.BlockDeviceError(
                f"{self.path} cannot be made: with exclusive storage a disk must say how many"
                " spindles (whole physical volumes) it takes"
            )
        rooms = [
            allocation.Room(use.name, use.free // use.extent_size) for use in report.empty(uses)
        ]
        if len(rooms) < self.disk.spindles:
            raise errors.BlockDeviceError(
                f"{self.path} needs {self.disk.spindles} empty physical volumes in group"
                f" {self.group}, {len(rooms)} are left"
            )
        return allocation.exclusive(rooms, extents, self.disk.spindles)

    def _round_to_stripes(self, volume: report.Volume, amount: int) -> int:
        """``amount`` rounded up so that every stripe grows by the same number of extents."""
        if volume.stripes <= 1:
            return amount
        step = report.group(self.group).vg_extent_size // MIB * volume.stripes
        return -(-amount // step) * step if step else amount

    def _growth_disks(self, volume: report.Volume, amount: int) -> list[str]:
        """With exclusive storage a volume grows on its own disks only."""
        own = [
            use
            for use in report.uses(self.group)
            if use.name in volume.disks and use.volumes == (self.name,)
        ]
        free = sum(use.free for use in own) // MIB
        if amount > free:
            raise errors.BlockDeviceError(
                f"cannot grow {self.path}: needs {amount} MiB, {free} MiB free on its own"
                " physical volumes"
            )
        return [use.name for use in own]


def _check_names(uuid: DiskUuid, logical_id: Sequence[object]) -> tuple[str, str]:
    if len(logical_id) != 2 or not all(isinstance(part, str) for part in logical_id):
        raise errors.BlockDeviceError(
            f"disk {uuid}: a logical volume is named by [group, volume], not by {list(logical_id)}"
        )
    try:
        return (
            check_name(str(logical_id[0]), "volume group"),
            check_name(str(logical_id[1]), "logical volume"),
        )
    except errors.ParameterError as err:
        raise errors.BlockDeviceError(f"disk {uuid}: {errors.text(err)}") from err


@contextmanager
def _changes(group: str) -> Iterator[None]:
    """One change of a group at a time, so that the room that was seen is still there."""
    with _changing_guard:
        lock = _changing.setdefault(group, threading.Lock())
    if not lock.acquire(timeout=GROUP_WAIT):
        raise errors.BlockDeviceError(
            f"volume group {group} has been busy for {GROUP_WAIT / 60:.0f} minutes"
        )
    try:
        yield
    finally:
        lock.release()
