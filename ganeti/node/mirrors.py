"""Node calls about the link between the two sides of mirrored disks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from ganeti import errors
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.calls.mirrors import MirrorCalls
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.drbd import host
from ganeti.storage.interface import Device, Mirrored

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds to wait for the other side, which is ordered to connect at the same time.
CONNECT_WAIT = 60
#: Seconds for which an answer about progress waits for a side that is away.
PROGRESS_WAIT = 10
#: Disks of one instance that are connected at the same time.
_PARALLEL = 8


class Mirrors(MirrorCalls):
    """Drives the mirrored disks of this node; disks of other templates are refused."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def drbd_attach_net(self, disks: list[NodeDisk], two_primaries: bool) -> None:
        """Connect disks to their other side and wait until all are; blocks up to two minutes.

        Raises:
            BlockDeviceError: some are not connected; the text has all of them.
        """
        self._all(
            disks,
            lambda side: side.connect_and_wait(two_primaries=two_primaries, seconds=CONNECT_WAIT),
        )

    def drbd_disconnect_net(self, disks: list[NodeDisk]) -> None:
        """Let disks work alone; BlockDeviceError with all that refuse."""
        self._all(disks, lambda side: side.disconnect())

    def drbd_wait_sync(self, disks: list[NodeDisk]) -> tuple[bool, float]:
        """Whether all are synchronised, and the percent of the one that is furthest behind.

        Waits some seconds for an other side that is away, not for the synchronisation.

        Raises:
            BlockDeviceError: some have no other side.
        """
        found = self._all(disks, lambda side: side.progress(PROGRESS_WAIT))
        return all(done for done, _ in found), min((percent for _, percent in found), default=100.0)

    def drbd_needs_activation(self, disks: list[NodeDisk]) -> list[str]:
        """Uuids of disks that are not active, have lost their data, or do not look for the peer."""
        found: list[str] = []
        for disk in disks:
            try:
                if self._mirrored(self._disks.device(disk)).needs_activation():
                    found.append(disk.uuid)
            except errors.BlockDeviceError as err:
                log.warning("disk %s: %s", disk.uuid, errors.text(err))
                found.append(disk.uuid)
        return found

    def blockdev_addchildren(self, disk: NodeDisk, children: list[NodeDisk]) -> None:
        """Give a disk new volumes; BlockDeviceError."""
        self._mirrored(self._disks.find_existing(disk)).attach_children(children)

    def blockdev_removechildren(self, disk: NodeDisk, children: list[NodeDisk]) -> None:
        """Take a disk's volumes away from it; BlockDeviceError."""
        self._mirrored(self._disks.find_existing(disk)).detach_children(children)

    def drbd_helper(self) -> str:
        """The program that the kernel calls; BlockDeviceError without DRBD."""
        return host.helper(self._context.paths)

    def _all(self, disks: Sequence[NodeDisk], what: Callable[[Mirrored], T]) -> list[T]:
        """Do something with every disk, whatever becomes of the others."""
        if not disks:
            return []
        sides = [self._mirrored(self._disks.device(disk)) for disk in disks]
        with ThreadPoolExecutor(min(len(sides), _PARALLEL), "mirrors") as pool:
            waiting = [pool.submit(what, side) for side in sides]
            failures = [future.exception() for future in waiting]
        texts: list[str] = []
        for failure in failures:
            if isinstance(failure, errors.GanetiError):
                texts.append(errors.text(failure))
            elif failure is not None:
                raise failure
        if texts:
            raise errors.BlockDeviceError("; ".join(texts))
        return [future.result() for future in waiting]

    @staticmethod
    def _mirrored(found: Device) -> Mirrored:
        if not isinstance(found, Mirrored):
            raise errors.BlockDeviceError(
                f"disk {found.disk.uuid} is of template {found.disk.dev_type}: it is not mirrored"
            )
        return cast(Mirrored, found)
