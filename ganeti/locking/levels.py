"""The levels of locks, in the order in which a job must take them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class LockLevel(IntEnum):
    """Levels in the order in which they must be taken."""

    CLUSTER = 0
    INSTANCE = 1
    DISK = 2
    NODEGROUP = 3
    NODE = 4
    NODE_RES = 5
    NETWORK = 6

    @property
    def label(self) -> str:
        """Name on the wire and in lists."""
        return self.name.lower().replace("_", "-")


#: Name of the one lock of the cluster level, as Ganeti calls it ("big Ganeti lock").
BGL: Final = "BGL"
