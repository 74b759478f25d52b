"""Node calls that change the devices of a running instance."""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.abilities import DiskLimiting, Hotpluggable, ProcessorChanging
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import HotplugAction, HotplugTarget
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.calls.hotplug import HotplugCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

log = logging.getLogger(__name__)

Device = TypeVar("Device", NodeDisk, NodeNic)


class Hotplug(HotplugCalls):
    """Hands devices to the hypervisors; all methods raise HotplugError when they refuse."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def hotplug_supported(self, instance: NodeInstance) -> None:
        """Refuse when nothing can be changed while the instance runs."""
        self._driver(instance).check_hotplug(instance)

    def hotplug_device(
        self,
        instance: NodeInstance,
        action: HotplugAction,
        dev_type: HotplugTarget,
        device: JsonObject,
        extra: object,
        seq: int,
    ) -> None:
        """Add, remove or modify one device, as the hypervisor's own method of that name."""
        driver = self._driver(instance)
        with self._context.instance(instance.name, f"{action} of a device"):
            if dev_type is HotplugTarget.DISK:
                self._change_disk(driver, instance, action, _decode(device, NodeDisk))
            else:
                self._change_nic(driver, instance, action, _decode(device, NodeNic), seq)
        log.info("%s of %s %d for instance %s is done", action, dev_type, seq, instance.name)

    def _change_disk(
        self, driver: Hotpluggable, instance: NodeInstance, action: HotplugAction, disk: NodeDisk
    ) -> None:
        if action is HotplugAction.ADD:
            driver.plug_disk(instance, self._find_attached(instance, disk))
        elif action is HotplugAction.REMOVE:
            driver.unplug_disk(instance, disk)
        elif isinstance(driver, DiskLimiting):
            driver.limit_disk(instance, disk)
        else:
            raise errors.HotplugError(
                f"the hypervisor {instance.hypervisor} cannot change the limits of a disk while"
                f" instance {instance.name} runs"
            )

    @staticmethod
    def _change_nic(
        driver: Hotpluggable,
        instance: NodeInstance,
        action: HotplugAction,
        nic: NodeNic,
        index: int,
    ) -> None:
        if action is HotplugAction.ADD:
            driver.plug_nic(instance, index, nic)
        elif action is HotplugAction.REMOVE:
            driver.unplug_nic(instance, nic)
        else:
            driver.change_nic(instance, index, nic)

    def resize_disk(self, instance: NodeInstance, disk: NodeDisk, new_size: int) -> None:
        """Tell the guest that an assembled disk has ``size`` MiB."""
        driver = self._driver(instance)
        with self._context.instance(instance.name, "resize of a disk"):
            driver.resize_disk(instance, self._find_attached(instance, disk), new_size)

    def instance_change_media(self, instance: NodeInstance) -> None:
        """Put the CD images of the parameters into the drives."""
        driver = self._driver(instance)
        with self._context.instance(instance.name, "change of images"):
            driver.change_media(instance)

    def instance_set_vcpus(self, instance: NodeInstance) -> None:
        """Set the number of processors of the guest to that of its parameters."""
        driver = self._context.hypervisor(instance.hypervisor)
        if not isinstance(driver, ProcessorChanging):
            raise errors.HotplugError(
                f"the hypervisor {instance.hypervisor} cannot change the processors of a running"
                " instance"
            )
        with self._context.instance(instance.name, "change of processors"):
            driver.set_vcpus(instance)

    def _driver(self, instance: NodeInstance) -> Hotpluggable:
        driver = self._context.hypervisor(instance.hypervisor)
        if not isinstance(driver, Hotpluggable):
            raise errors.HotplugError(
                f"the hypervisor {instance.hypervisor} cannot change devices of a running instance;"
                f" stop {instance.name} first"
            )
        return driver

    def _find_attached(self, instance: NodeInstance, disk: NodeDisk) -> AttachedDisk:
        try:
            return self._disks.find_attached(instance.name, disk)
        except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
            raise errors.HotplugError(f"instance {instance.name}: {errors.text(err)}") from err


def _decode(device: JsonObject, kind: type[Device]) -> Device:
    try:
        return typed.convert(device, kind)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"call hotplug_device: device: {err}") from err
