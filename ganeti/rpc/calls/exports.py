"""Node calls about exports of instances that lie on a node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.rpc.timing import FAST, NORMAL, call


class ExportCalls(ABC):
    """Answered by :class:`ganeti.node.exports.Exports`."""

    @abstractmethod
    @call(timeout=FAST)
    def export_list(self) -> list[str]:
        """Names of the instance exports on this node."""

    @abstractmethod
    @call(timeout=FAST)
    def export_info(self, path: str) -> str:
        """Text of ``config.ini`` of an export."""

    @abstractmethod
    @call(timeout=FAST)
    def export_remove(self, export: str) -> None:
        """Destroy an export, and what an unfinished one left; no error when there is none."""

    @abstractmethod
    @call(timeout=NORMAL)
    def finalize_export(
        self, instance: NodeInstance, snap_disks: list[NodeDisk], private: JsonObject
    ) -> None:
        """Write ``config.ini`` beside the dumps of all disks, and let the export be listed.

        ``private`` are the OS parameters that ``instance`` does not have.
        """
