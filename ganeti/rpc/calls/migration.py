"""Node calls that migrate an instance; see the protocol ``Migratable`` for their order."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.base.json_types import JsonObject
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress, MigrationStatus, NodeInstance
from ganeti.rpc.timing import NORMAL, SLOW, call


class MigrationCalls(ABC):
    """Answered by :class:`ganeti.node.migration.Migration`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_migratable(self, instance: NodeInstance, live: bool) -> None:
        """Refuse when the running instance cannot be moved, going on meanwhile or not."""

    @abstractmethod
    @call(timeout=NORMAL)
    def migration_info(self, instance: NodeInstance, live: bool) -> JsonObject:
        """At the source: what the target has to know. Contains a key: not to be logged."""

    @abstractmethod
    @call(timeout=NORMAL)
    def accept_instance(self, instance: NodeInstance, info: JsonObject, target: str) -> str:
        """At the target, whose address ``target`` is: wait for the instance, disks assembled.

        Returns where it waits, for :meth:`instance_migrate`.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_receive_disks(
        self, instance: NodeInstance, disks: list[DiskUuid], address: str
    ) -> str:
        """At the target: take the content of disks of an instance that is awaited.

        Returns where they are taken, for :meth:`instance_send_disks`.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_send_disks(
        self, instance: NodeInstance, disks: list[DiskUuid], target: str, bandwidth: int
    ) -> None:
        """At the source: begin to send disks, in all at most so many MiB/s (0: no limit)."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_disk_progress(self, instance: NodeInstance) -> list[DiskProgress]:
        """How far disks are that are copied; waits up to 2 s until all are ready."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_migrate(
        self, cluster_name: str, instance: NodeInstance, target: str, live: bool
    ) -> None:
        """At the source: begin to move the instance; does not wait for the end."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_get_migration_status(self, instance: NodeInstance) -> MigrationStatus:
        """At the source: how far it is; waits up to 2 s for the end."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_arrived(self, instance: NodeInstance) -> None:
        """At the target, of an instance that is paused: wait until all of it is there."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_finalize_migration_src(
        self, instance: NodeInstance, success: bool, live: bool
    ) -> None:
        """At the source: forget the instance that was moved, or stop the move and let it run."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_finalize_migration_dst(
        self, instance: NodeInstance, info: JsonObject, success: bool
    ) -> None:
        """At the target: see that the instance runs, or end what waits for it.

        Without ``success`` it is refused when the instance has taken over here.
        """
