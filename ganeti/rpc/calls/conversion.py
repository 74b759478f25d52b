"""Node calls that let other disks take the place of those that a running instance has.

See the protocol ``DiskConverting`` for their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.rpc.timing import NORMAL, URGENT, call


class ConversionCalls(ABC):
    """Answered by :class:`ganeti.node.conversion.Conversion`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_convert_disks(
        self, instance: NodeInstance, disks: list[NodeDisk], bandwidth: int
    ) -> None:
        """Activate disks, and begin to copy those with the same uuids to them.

        In all at most ``bandwidth`` MiB/s, 0: no limit.

        :meth:`ganeti.rpc.calls.migration.MigrationCalls.instance_disk_progress` tells how far.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_settle_disks(self, instance: NodeInstance) -> None:
        """End the copies, so that the guest goes on with the disks that the instance has here.

        Links of the node lead to these then.
        """

    @abstractmethod
    @call(timeout=URGENT)
    def instances_converting(self, hypervisors: list[str]) -> list[str]:
        """Names of guests whose disks are copied and not settled."""
