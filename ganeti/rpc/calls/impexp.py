"""Node calls that send the dump of a disk to another node, of this cluster or another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.rpc.objects import ImportExportOptions, ImportExportStatus, NodeInstance
from ganeti.rpc.timing import FAST, NORMAL, call


class ImpexpCalls(ABC):
    """Answered by :class:`ganeti.node.impexp.Impexp`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def export_start(
        self,
        opts: ImportExportOptions,
        host: str,
        port: int,
        instance: NodeInstance,
        component: str,
        source: tuple[str, list[Any]],
    ) -> str:
        """Begin to send a dump to a host that waits for it; the name of the transfer.

        ``source`` is ``["script", [disk, index, disk to read]]``, ``["raw", [disk]]`` or
        ``["file", [path, compression]]``.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def import_start(
        self,
        opts: ImportExportOptions,
        instance: NodeInstance,
        component: str,
        dest: tuple[str, list[Any]],
    ) -> str:
        """Wait for one sender of a dump; the name of the transfer.

        ``dest`` is ``["script", [disk, index]]``, ``["raw", [disk]]`` or ``["file", [path]]``.
        """

    @abstractmethod
    @call(timeout=FAST)
    def impexp_status(self, names: list[str]) -> list[ImportExportStatus | None]:
        """How far transfers are, None for one that is not known; waits up to 2 s for news."""

    @abstractmethod
    @call(timeout=NORMAL)
    def impexp_abort(self, name: str) -> None:
        """End a transfer; no error when it has ended."""

    @abstractmethod
    @call(timeout=NORMAL)
    def impexp_cleanup(self, name: str) -> None:
        """End a transfer and forget it; no error when it is not known."""
