"""Node calls about disks: make, destroy, make usable, grow, rename, inspect.

A disk that can be used by an instance has a link ``<run>/instance-disks/<instance>:<index>``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model import ssconf_keys
from ganeti.model.ids import NodeUuid
from ganeti.net import pem
from ganeti.node import authorise
from ganeti.node.context import NodeContext, check_name
from ganeti.rpc.calls.disks import DiskCalls
from ganeti.rpc.objects import BlockDevStatus, NodeDisk, NodeInstance
from ganeti.storage import file_paths
from ganeti.storage.interface import (
    Device,
    Environment,
    Labelled,
    Mirrored,
    Renamable,
    Snapshotting,
    Spindled,
)
from ganeti.storage.registry import device, file_settings

log = logging.getLogger(__name__)


class Disks(DiskCalls):
    """Drives the storage of this node."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def environment(self) -> Environment:
        """The facts of drivers about this node, read again from its files.

        ``node_uuid`` is empty on a node that is not a master candidate: only those are listed.

        Raises:
            FileStoragePathError: the list of allowed directories cannot be used.
        """
        context = self._context
        local = context.paths.local
        listed = file_paths.load_allowed(context.paths)
        # The list of the node bounds the master, so what the master says counts only without one.
        allowed = self._cluster_directories() if listed is None else listed
        roots = tuple(Path(local(str(path))) for path in allowed)
        found = Environment(context.paths, self._read_own_uuid(), roots)
        gluster = (context.ssconf(ssconf_keys.GLUSTER_STORAGE_DIR) or "").strip()
        return replace(found, gluster_dir=Path(local(gluster or str(found.gluster_dir))))

    def _cluster_directories(self) -> list[Path]:
        keys = file_settings()
        found = ((self._context.ssconf(key) or "").strip() for key in keys)
        return [Path(directory) for directory in found if directory]

    def _read_own_uuid(self) -> NodeUuid:
        listed = self._context.ssconf(ssconf_keys.MASTER_CANDIDATES_CERTS)
        if not listed:
            return NodeUuid("")
        try:
            own = pem.digest_of_file(self._context.paths.client_cert)
        except errors.X509CertError as err:
            log.debug("no own certificate: %s", errors.text(err))
            return NodeUuid("")
        found = (uuid for uuid, digest in authorise.parse(listed).items() if digest == own)
        return NodeUuid(next(found, ""))

    def device(self, disk: NodeDisk, *, exclusive_storage: bool = False) -> Device:
        """The driver of a disk; ParameterError for a template without one."""
        env = self.environment()
        if exclusive_storage:
            env = replace(env, exclusive_storage=True)
        return device(disk, env)

    def find_existing(self, disk: NodeDisk, *, exclusive_storage: bool = False) -> Device:
        """The driver of a disk that is on this node; BlockDeviceError when it is not."""
        found = self.device(disk, exclusive_storage=exclusive_storage)
        if not found.attach():
            raise errors.BlockDeviceError(f"disk {disk.uuid} is not on this node: {found.path}")
        return found

    # life

    def blockdev_create(
        self,
        disk: NodeDisk,
        size: int,
        owner: str,
        on_primary: bool,
        info: str,
        exclusive_storage: bool,
    ) -> list[Any]:
        """Make a disk of ``size`` MiB, on volumes that are there already; its logical id.

        A mirrored one is activated, and on the primary node the first synchronisation begins.

        Raises:
            BlockDeviceError: it exists, or cannot be made.
        """
        if size <= 0:
            raise errors.ParameterError(f"disk {disk.uuid} cannot have {size} MiB")
        new = self.device(disk, exclusive_storage=exclusive_storage)
        if new.attach() and not new.traits.must_adopt:
            raise errors.BlockDeviceError(
                f"disk {disk.uuid} is not created: {new.path} exists already"
            )
        new.create(size, info=info)
        if isinstance(new, Mirrored):
            try:
                new.begin(on_primary=on_primary)
            except errors.GanetiError:
                self._remove(disk, [], with_children=False)
                raise
        log.info("created disk %s (%d MiB) at %s", disk.uuid, size, new.path)
        return list(disk.logical_id)

    def blockdev_remove(self, disk: NodeDisk) -> None:
        """Destroy a disk, its links and its children; no error when it is gone.

        Raises:
            BlockDeviceError: a part could not be removed; the others have been.
        """
        problems: list[errors.GanetiError] = []
        self._remove(disk, problems)
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise errors.BlockDeviceError("; ".join(map(errors.text, problems)))

    def _remove(
        self, disk: NodeDisk, problems: list[errors.GanetiError], *, with_children: bool = True
    ) -> None:
        try:
            old = self.device(disk)
            self._unlink_device(old)
            old.remove()
            log.info("removed disk %s at %s", disk.uuid, old.path)
        except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
            problems.append(err)
        for child in disk.children if with_children else ():
            self._remove(child, problems)

    def blockdev_assemble(
        self, disk: NodeDisk, instance: NodeInstance, on_primary: bool, idx: int
    ) -> tuple[str, str, str | None]:
        """Make a disk usable, on the primary node also writable and linked.

        Returns device path, link (empty on other nodes) and address (or None).

        Raises:
            BlockDeviceError: it is not there, or cannot be made usable.
        """
        found = self._assemble(disk, on_primary, self.environment())
        if not on_primary:
            return found.path, "", found.uri()
        return found.path, self.link(found.path, instance.name, idx), found.uri()

    def activate(self, disk: NodeDisk) -> Device:
        """Make a disk usable and writable, without a link; BlockDeviceError."""
        return self._assemble(disk, True, self.environment())

    def _assemble(self, disk: NodeDisk, on_primary: bool, env: Environment) -> Device:
        for child in disk.children:
            self._assemble(child, on_primary, env)
        found = device(disk, env)
        if not found.attach():
            raise errors.BlockDeviceError(f"disk {disk.uuid} is not on this node: {found.path}")
        found.assemble()
        if on_primary:
            found.open()
        return found

    def blockdev_shutdown(self, disk: NodeDisk) -> None:
        """Undo :meth:`blockdev_assemble`, links included; the data stays. BlockDeviceError."""
        self._shutdown(disk, self.environment())

    def _shutdown(self, disk: NodeDisk, env: Environment) -> None:
        found = device(disk, env)
        self._unlink_device(found)
        found.shutdown()
        for child in disk.children:
            self._shutdown(child, env)

    def blockdev_find(self, disk: NodeDisk) -> BlockDevStatus | None:
        """State of a disk, None when it is not on this node."""
        found = self.device(disk)
        return found.status() if found.is_active() else None

    def blockdev_getdimensions(self, disks: list[NodeDisk]) -> list[tuple[int, int | None] | None]:
        """Size in bytes and spindles (None: not known) of each disk, None when not usable."""
        env = self.environment()
        return [self._dimension(disk, env) for disk in disks]

    def _dimension(self, disk: NodeDisk, env: Environment) -> tuple[int, int | None] | None:
        try:
            found = device(disk, env)
            if not found.attach():
                return None
            spindles = found.spindles() if isinstance(found, Spindled) else None
            return found.size(), spindles
        except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
            # One bad disk must not hide the others.
            log.warning("disk %s: %s", disk.uuid, errors.text(err))
            return None

    def all_attached(self, instance: NodeInstance) -> list[AttachedDisk]:
        """The assembled disks of an instance by their links, in the order of the guest.

        Raises:
            BlockDeviceError: one is not there or not assembled.
        """
        env = self.environment()
        return [
            self._make_attached(disk, instance.name, index, env)
            for index, disk in enumerate(instance.disks_info)
        ]

    def find_attached(self, instance: str, disk: NodeDisk) -> AttachedDisk:
        """One assembled disk of an instance; BlockDeviceError like :meth:`all_attached`."""
        return self._make_attached(disk, instance, disk.index, self.environment())

    def _make_attached(
        self, disk: NodeDisk, instance: str, index: int, env: Environment
    ) -> AttachedDisk:
        found = device(disk, env)
        link = self._context.paths.instance_disks / f"{instance}:{index}"
        if not found.attach():
            raise errors.BlockDeviceError(f"its disk {index} is not on this node ({found.path})")
        if _target(link) != found.path:
            raise errors.BlockDeviceError(f"its disk {index} is not activated on this node")
        return AttachedDisk(disk, str(link), found.uri(), found.traits.shared)

    # changes

    def blockdev_rename(self, renames: list[tuple[NodeDisk, list[Any]]]) -> None:
        """Give disks new logical ids; all are tried.

        Raises:
            BlockDeviceError: some could not be renamed; the text has all of them.
        """
        problems: list[str] = []
        for disk, new_id in renames:
            try:
                self._rename(disk, new_id)
            except errors.GanetiError as err:
                problems.append(f"disk {disk.uuid}: {errors.text(err)}")
        if problems:
            raise errors.BlockDeviceError("; ".join(problems))

    def _rename(self, disk: NodeDisk, new_id: Sequence[object]) -> None:
        found = self.device(disk)
        if not isinstance(found, Renamable):
            raise errors.BlockDeviceError(f"disks of type {disk.dev_type} cannot be renamed")
        if not new_id:
            raise errors.BlockDeviceError("the new logical id has no parts")
        self._unlink(found.path)
        *first, last = (str(part) for part in new_id)
        if found.traits.file_based:
            last = self._context.paths.local(last)
        found.rename([*first, last])

    def blockdev_grow(
        self,
        disk: NodeDisk,
        amount: int,
        dry_run: bool,
        backing_store: bool,
        exclusive_storage: bool,
    ) -> None:
        """Add ``amount`` MiB.

        A grow travels in two calls: with ``backing_store`` what holds the bytes grows, without
        it a mirror on top of that; so for disks without a mirror the second does nothing.

        Raises:
            BlockDeviceError: the disk is not there, or cannot grow.
        """
        if amount < 0:
            raise errors.ParameterError(f"disk {disk.uuid} cannot grow by {amount} MiB")
        if backing_store and disk.children:
            disk = disk.children[0]
        found = self.find_existing(disk, exclusive_storage=exclusive_storage)
        if backing_store or found.traits.mirrored:
            found.grow(amount, dry_run=dry_run)

    def blockdev_open(self, instance_name: str, disks: list[NodeDisk], exclusive: bool) -> None:
        """Allow writing on this node, and make the links of the instance; BlockDeviceError."""
        for disk in disks:
            found = self.find_existing(disk)
            found.open(exclusive=exclusive)
            self.link(found.path, instance_name, disk.index)

    def blockdev_close(self, instance_name: str, disks: list[NodeDisk]) -> None:
        """Forbid writing on this node, and remove the links; all are tried.

        Raises:
            BlockDeviceError: some could not be closed; the text has all of them.
        """
        problems: list[str] = []
        for disk in disks:
            try:
                found = self.find_existing(disk)
                found.close()
                self._unlink(found.path)
            except errors.GanetiError as err:
                problems.append(f"disk {disk.uuid}: {errors.text(err)}")
        if problems:
            raise errors.BlockDeviceError("; ".join(problems))

    def blockdev_snapshot(
        self, disk: NodeDisk, snap_name: str | None, snap_size: int | None
    ) -> list[Any]:
        """Freeze the content of a disk; the logical id of the copy.

        Of a mirrored disk the copy is made of the data on this node.

        Raises:
            BlockDeviceError: the disk is not there or cannot be frozen.
        """
        if disk.children:
            return self.blockdev_snapshot(disk.children[0], snap_name, snap_size)
        found = self.find_existing(disk)
        if not isinstance(found, Snapshotting):
            raise errors.BlockDeviceError(f"disks of type {disk.dev_type} have no snapshots")
        return list(found.snapshot(snap_name or "", snap_size or 0))

    def blockdev_setinfo(self, disk: NodeDisk, info: str) -> None:
        """Note a text beside the data, where the template has a place for it; BlockDeviceError."""
        for child in disk.children:
            self.blockdev_setinfo(child, info)
        found = self.find_existing(disk)
        if isinstance(found, Labelled):
            found.set_info(info)

    # links

    def link(self, target: str, instance: str, index: int) -> str:
        """Make or replace the link of a disk in one step."""
        directory = self._context.paths.instance_disks
        link = directory / f"{check_name(instance)}:{index}"
        fresh = directory / f".{link.name}.{threading.get_ident()}"
        try:
            files.ensure_dir(directory, 0o755)
            os.symlink(target, fresh)
            os.rename(fresh, link)
        except OSError as err:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise errors.BlockDeviceError(f"cannot make {link}: {err.strerror}") from err
        return str(link)

    def _unlink_device(self, found: Device) -> None:
        """Remove the links that lead to a disk."""
        if found.traits.found_by_attach:
            found.attach()
        self._unlink(found.path)

    def _unlink(self, target: str) -> None:
        """Remove the links that lead to a device."""
        directory = self._context.paths.instance_disks
        try:
            links = [entry for entry in os.scandir(directory) if entry.is_symlink()]
        except FileNotFoundError:
            return
        for link in links:
            if not link.name.startswith(".") and _target(Path(link.path)) == target:
                files.remove(Path(link.path))


def _target(link: Path) -> str | None:
    """The target of a symbolic link, None when it is not one."""
    try:
        return os.readlink(link)
    except OSError:
        return None
