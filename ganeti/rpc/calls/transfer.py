"""Node calls that copy the content of a disk to another node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import NodeDisk
from ganeti.rpc.timing import FAST, NORMAL, call


class TransferCalls(ABC):
    """Answered by :class:`ganeti.node.transfer.Transfer`."""

    @abstractmethod
    @call(timeout=FAST)
    def disk_expect(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        """Wait at an address of this node for one sender of an assembled disk's content.

        Returns the port, and the token that the sender must know.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def disk_transfer(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> str:
        """Begin to send the content of an assembled disk to a node that waits at a place.

        Returns the name of the copy for :meth:`ganeti.rpc.calls.copying.CopyCalls.copy_status`.
        """
