"""The node call that follows a copy of a disk."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import CopyStatus
from ganeti.rpc.timing import URGENT, call


class CopyCalls(ABC):
    """Answered by :class:`ganeti.node.copying.Copies`."""

    @abstractmethod
    @call(timeout=URGENT)
    def copy_status(self, copy: str) -> CopyStatus:
        """How far a copy is; waits up to 2 s for its end, and refuses with why it failed.

        A copy about which nobody asks for five minutes ends.
        """
