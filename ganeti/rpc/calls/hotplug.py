"""Node calls that change the devices of a running instance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.model.enums import HotplugAction, HotplugTarget
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.rpc.timing import NORMAL, call


class HotplugCalls(ABC):
    """Answered by :class:`ganeti.node.hotplug.Hotplug`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hotplug_supported(self, instance: NodeInstance) -> None:
        """Refuse when devices of the instance cannot be changed while it runs."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hotplug_device(
        self,
        instance: NodeInstance,
        action: HotplugAction,
        dev_type: HotplugTarget,
        device: JsonObject,
        extra: Any,
        seq: int,
    ) -> str | None:
        """Add, remove or modify a disk or NIC (number ``seq``); ``extra`` is not used.

        A disk that is added must be assembled, a disk that was removed can be shut down.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def resize_disk(self, instance: NodeInstance, disk: NodeDisk, new_size: int) -> None:
        """Tell a running instance that a disk has ``new_size`` MiB now."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_change_media(self, instance: NodeInstance) -> None:
        """Put the CD images of its parameters into the drives of a running instance."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_set_vcpus(self, instance: NodeInstance) -> None:
        """Set the number of processors of a running instance to that of its parameters."""
