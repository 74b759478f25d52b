"""Sources of a backup: the disks of an instance as they are at one moment."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.backup import served
from ganeti.base import files
from ganeti.hypervisor.abilities import Freezing
from ganeti.hypervisor.interface import Moment
from ganeti.model.backup import Mode
from ganeti.model.enums import Consistency
from ganeti.net import nbd
from ganeti.node.backup_desk import READ
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.objects import NodeDisk, NodeInstance

log = logging.getLogger(__name__)

#: File in the directory of a backup: whose guest it is.
_HYPERVISOR = "hypervisor"


@dataclass(frozen=True)
class Source:
    """One disk to be read: served by QEMU already, or a device that is served then."""

    disk: NodeDisk
    size: int
    socket: Path | None = None
    bitmap: str | None = None
    target: str = ""


@dataclass(frozen=True)
class Frozen:
    """All disks of an instance; ``consistency`` is None when no guest runs."""

    disks: list[Source]
    consistency: Consistency | None = None


class Sources:
    """Shows disks of instances on this node to backups."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def end_interrupted(self) -> None:
        """Let guests go whose backup ended with an earlier node daemon, and remove its files."""
        for work in self._context.paths.backup_work.glob("*"):
            if work.name.endswith(READ):
                continue
            try:
                self._thaw(work)
                served.end_left(work)
            except (errors.GanetiError, OSError) as err:
                log.warning("the backup of %s that was cut off is not ended: %s", work.name, err)
                continue
            shutil.rmtree(work, ignore_errors=True)
            log.info("ended the backup of %s that was cut off", work.name)

    def _thaw(self, work: Path) -> None:
        """Let the guest go, if one can be frozen."""
        try:
            driver = self._context.hypervisor(files.read_text(work / _HYPERVISOR))
        except FileNotFoundError:
            return
        if isinstance(driver, Freezing):
            driver.thaw_disks(work.name, work, None, keep=False)

    @contextlib.contextmanager
    def freeze(
        self,
        instance: NodeInstance,
        work: Path,
        since: str | None,
        until: str,
        copies: Sequence[NodeDisk] = (),
    ) -> Iterator[Frozen]:
        """The disks as they are at the moment ``until``, which ends with the context.

        ``since`` is the moment of the last backup, and ``work`` takes what the guest overwrites.
        With ``copies`` these are read, and the guest is left alone.

        Raises:
            GenericError: the guest cannot be frozen, or the moment was lost while it was read.
        """
        if copies:
            pairs = zip(instance.disks_info, copies, strict=True)
            yield Frozen([self._find_copy(disk, copy) for disk, copy in pairs])
            return
        name, driver = instance.name, self._context.hypervisor(instance.hypervisor)
        moment = None
        if isinstance(driver, Freezing):
            (work / _HYPERVISOR).write_text(instance.hypervisor, encoding="ascii")
            with self._context.instance(name, "begin of a backup"):
                moment = driver.freeze_disks(name, work, since, until)
        elif driver.info(name) is not None:
            raise errors.GenericError(
                f"instance {name} runs, and {instance.hypervisor} cannot freeze its disks; stop it"
                f" first: gnt-instance shutdown {name}"
            )
        if moment is None or not isinstance(driver, Freezing):
            yield Frozen([self._find_attached(disk) for disk in instance.disks_info])
            return
        good = False
        try:
            yield Frozen(_pair(instance, moment), moment.consistency)
            good = True
        except errors.BlockDeviceError as err:
            self._check_moment(moment, work, err)
            raise
        finally:
            with self._context.instance(name, "end of a backup"):
                driver.thaw_disks(name, work, until, keep=good)

    @staticmethod
    def _check_moment(moment: Moment, work: Path, err: errors.BlockDeviceError) -> None:
        """Say it when the moment is lost: no byte of such a disk can be read any more."""
        for disk in moment.disks:
            try:
                with nbd.connect(disk.socket, disk.export) as probe:
                    probe.read(0, min(512, disk.size))
            except errors.BlockDeviceError:
                raise errors.GenericError(
                    f"the backup was ended: what the guest overwrites could not be kept in {work};"
                    " check whether there is room"
                ) from err

    def _find_attached(self, disk: NodeDisk) -> Source:
        found = self._disks.find_existing(disk)
        return Source(disk, found.size(), target=found.uri() or found.path)

    def _find_copy(self, disk: NodeDisk, copy: NodeDisk) -> Source:
        """A copy may be larger, as volumes are rounded up."""
        found = self._disks.device(copy)
        found.assemble()
        return Source(disk, min(found.size(), disk.size << 20), target=found.path)

    @contextlib.contextmanager
    def open(self, source: Source, work: Path, mode: Mode) -> Iterator[nbd.Nbd]:
        """A connection that reads a disk, and knows its holes and what is dirty."""
        if source.socket is None:
            with served.serve(source.target, "raw", work, contexts=[nbd.ALLOCATION]) as reader:
                yield reader
            return
        contexts = [nbd.ALLOCATION]
        if mode is Mode.DIRTY:
            contexts.append(f"{nbd.BITMAP}{source.bitmap}")
        with nbd.connect(source.socket, source.disk.uuid, contexts) as reader:
            yield reader


def _pair(instance: NodeInstance, moment: Moment) -> list[Source]:
    """The disks of an instance as QEMU shows them; GenericError when it does not have one."""
    having = {each.uuid: each for each in moment.disks}
    missing = [disk.uuid for disk in instance.disks_info if disk.uuid not in having]
    if missing:
        raise errors.GenericError(
            f"the running guest does not have disk {missing[0]}; reboot the instance first"
        )
    return [
        Source(disk, each.size, each.socket, each.bitmap)
        for disk in instance.disks_info
        for each in (having[disk.uuid],)
    ]
