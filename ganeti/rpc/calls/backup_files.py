"""Node calls about single files of backups."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.backups import BackupPlace, FileRequest, FileResult
from ganeti.rpc.objects import NodeInstance
from ganeti.rpc.timing import URGENT, call


class BackupFileCalls(ABC):
    """Answered by :class:`ganeti.node.backup_files.BackupFiles`."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_files(self, place: BackupPlace, guest: NodeInstance, request: FileRequest) -> str:
        """Begin to read files of a backup in a helper guest; returns the name of a copy."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_files_result(self, copy: str) -> FileResult:
        """Return the result of a copy that reads files; it is returned once."""
