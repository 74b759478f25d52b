"""Node calls about what guests read of themselves; ``ganeti-metad`` serves it."""

from __future__ import annotations

from ganeti.base import files
from ganeti.guest_os import metadata
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.metadata import MetadataCalls
from ganeti.rpc.objects import InstanceMetadata


class Metadata(MetadataCalls):
    """Writes the files that the daemon reads, so that neither waits for the other."""

    def __init__(self, context: NodeContext) -> None:
        self._paths = context.paths

    def instance_metadata_modify(self, instance: InstanceMetadata) -> None:
        """Keep it until the guest is stopped here; a guest without a NIC for it has none.

        Raises:
            ParameterError: the address is none that a guest can have there, or it is too much.
            FileError: it cannot be written.
        """
        try:
            metadata.store(self._paths, instance)
        except OSError as err:
            raise files.failure(err) from err
