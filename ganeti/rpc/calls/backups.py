"""Node calls about backups: made, listed, restored, verified and removed on a node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.model.backup import Manifest
from ganeti.rpc.backups import BackupPlace, BackupRequest, BackupResult, BootTest
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.rpc.timing import FAST, URGENT, call


class BackupCalls(ABC):
    """Answered by :class:`ganeti.node.backups.Backups`.

    Calls that take long return the name of a copy for
    :meth:`ganeti.rpc.calls.copying.CopyCalls.copy_status`.
    """

    @abstractmethod
    @call(timeout=URGENT)
    def backup_run(self, instance: NodeInstance, request: BackupRequest) -> str:
        """Begin to back up the disks of an instance, which runs here or has active disks."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_result(self, copy: str) -> BackupResult:
        """The backup that a copy has made; it is returned once."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_cancel(self, instance: str) -> None:
        """End what copies for an instance; no error when nothing does."""

    @abstractmethod
    @call(timeout=FAST)
    def backup_list(self, repository: str, instance: str | None) -> list[Manifest]:
        """Backups of one instance or of all, without their settings, the oldest first."""

    @abstractmethod
    @call(timeout=FAST)
    def backup_find(self, place: BackupPlace) -> Manifest:
        """One backup with its settings."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_restore(self, place: BackupPlace, disks: list[tuple[int, NodeDisk]]) -> str:
        """Begin to write disks of a backup, by their numbers there, to active disks of a node."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_verify(self, place: BackupPlace) -> str:
        """Begin to read all of a backup and to compare it with its checksums."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_boot(self, place: BackupPlace, instance: NodeInstance, test: BootTest) -> str:
        """Begin to compare a backup with its checksums and to start a copy, which is removed."""

    @abstractmethod
    @call(timeout=URGENT)
    def backup_remove(self, repository: str, instance: str, backups: list[str]) -> str:
        """Begin to remove backups of an instance; what later ones need of them stays."""
