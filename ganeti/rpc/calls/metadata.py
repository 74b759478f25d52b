"""Node calls about what guests read of themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import InstanceMetadata
from ganeti.rpc.timing import URGENT, call


class MetadataCalls(ABC):
    """Answered by :class:`ganeti.node.metadata.Metadata`."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_metadata_modify(self, instance: InstanceMetadata) -> None:
        """Keep what the guest of an instance may read, in place of what is kept for it."""
