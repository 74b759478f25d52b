"""Node calls that let other disks take the place of those that a running instance has."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.hypervisor.abilities import DiskConverting
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.calls.conversion import ConversionCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance

log = logging.getLogger(__name__)


class Conversion(ConversionCalls):
    """Hands disks to the hypervisors; all methods raise HypervisorError when they refuse."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def instance_convert_disks(
        self, instance: NodeInstance, disks: list[NodeDisk], bandwidth: int
    ) -> None:
        """Begin to copy.

        Raises:
            BlockDeviceError: a disk is not there, or cannot be activated.
        """
        driver = self._driver(instance)
        with self._context.instance(instance.name, "conversion of disks"):
            found = [self._activate(disk) for disk in disks]
            driver.convert_disks(instance.name, found, bandwidth)
        log.info("%d disks of instance %s are being converted", len(disks), instance.name)

    def _activate(self, disk: NodeDisk) -> AttachedDisk:
        """A disk by its own path: the link still leads to the disk that the guest has."""
        found = self._disks.activate(disk)
        return AttachedDisk(disk, found.path, found.uri(), found.traits.shared)

    def instance_settle_disks(self, instance: NodeInstance) -> None:
        """End it.

        Raises:
            BlockDeviceError: a disk is not there.
        """
        driver = self._driver(instance)
        with self._context.instance(instance.name, "end of a conversion"):
            paths = {}
            for index, disk in enumerate(instance.disks_info):
                paths[disk.uuid] = self._disks.find_existing(disk).path
                self._disks.link(paths[disk.uuid], instance.name, index)
            driver.settle_disks(instance.name, paths)
        log.info("the conversion of disks of instance %s is settled", instance.name)

    def instances_converting(self, hypervisors: list[str]) -> list[str]:
        drivers = map(self._context.hypervisor, hypervisors)
        able = (driver for driver in drivers if isinstance(driver, DiskConverting))
        return sorted(name for driver in able for name in driver.list_conversions())

    def _driver(self, instance: NodeInstance) -> DiskConverting:
        driver = self._context.hypervisor(instance.hypervisor)
        if not isinstance(driver, DiskConverting):
            raise errors.HypervisorError(
                f"the hypervisor {instance.hypervisor} cannot convert the disks of a running"
                f" instance; stop {instance.name} first"
            )
        return driver
