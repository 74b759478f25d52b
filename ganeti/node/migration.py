"""Node calls that move a running instance; their order is that of ``Migratable``."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.abilities import DiskSending, Migratable
from ganeti.model.ids import DiskUuid
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.node.end_watch import EndWatch
from ganeti.node.instances import forget_metadata
from ganeti.node.run_rights import RunRights
from ganeti.rpc.calls.migration import MigrationCalls
from ganeti.rpc.objects import DiskProgress, MigrationStatus, NodeInstance, RightState

log = logging.getLogger(__name__)


class Migration(MigrationCalls):
    """Hands moves to the hypervisors; all methods raise HypervisorError when they refuse,
    and RunRightError when the master has not recorded that the instance is on its way."""

    def __init__(
        self, context: NodeContext, disks: Disks, rights: RunRights, ends: EndWatch
    ) -> None:
        self._context = context
        self._disks = disks
        self._rights = rights
        self._ends = ends

    # the source

    def instance_migratable(self, instance: NodeInstance, live: bool) -> None:
        """Refuse an instance that cannot be moved that way."""
        self._driver(instance).check_migratable(instance, live=live)

    def migration_info(self, instance: NodeInstance, live: bool) -> JsonObject:
        """Return the facts that the target needs, with a key for the connection."""
        return self._driver(instance).migration_info(instance, live=live)

    def instance_migrate(
        self, cluster_name: str, instance: NodeInstance, target: str, live: bool
    ) -> None:
        """Begin to send."""
        with self._context.instance(instance.name, "begin of a migration"):
            self._rights.demand(instance, RightState.LEAVING)
            # Its process ends when it has arrived; until the move is over nobody can tell.
            self._ends.forget(instance.name)
            self._driver(instance).migrate(instance, target, live=live)
        log.info("instance %s is being moved to %s", instance.name, target)

    def instance_send_disks(
        self, instance: NodeInstance, disks: list[DiskUuid], target: str, bandwidth: int
    ) -> None:
        """Begin to send disks; the memory follows when they are ready."""
        with self._context.instance(instance.name, "begin of a migration"):
            self._rights.demand(instance, RightState.LEAVING)
            self._ends.forget(instance.name)
            self._sender(instance).send_disks(instance.name, disks, target, bandwidth)
        log.info("%d disks of instance %s are being sent to %s", len(disks), instance.name, target)

    def instance_disk_progress(self, instance: NodeInstance) -> list[DiskProgress]:
        """How far the disks are; waits up to 2 s until all are ready, and blocks nobody else."""
        return self._sender(instance).disk_progress(instance.name)

    def instance_get_migration_status(self, instance: NodeInstance) -> MigrationStatus:
        """How far it is; waits up to 2 s for the end, and blocks nobody else meanwhile."""
        return self._driver(instance).migration_status(instance)

    def instance_finalize_migration_src(
        self, instance: NodeInstance, success: bool, live: bool
    ) -> None:
        """Forget the instance, or run it again."""
        with (
            self._context.instance(instance.name, "end of a migration"),
            self._ends.expect(instance.name, instance.hypervisor),
        ):
            self._driver(instance).finish_source(instance, success=success, live=live)
            if success:
                forget_metadata(self._context, instance)
        log.info("instance %s was %s", instance.name, "moved away" if success else "kept here")

    # the target

    def accept_instance(self, instance: NodeInstance, info: JsonObject, target: str) -> str:
        """Wait for the instance at an address of this node; its disks must be assembled."""
        if self._context.paths.host_stops.exists():
            raise errors.HypervisorError(
                f"instance {instance.name} is not received: this host is being shut down"
            )
        with self._context.instance(instance.name, "reception"):
            source = self._rights.demand(instance, RightState.ARRIVING).peer
            try:
                disks = self._disks.all_attached(instance)
            except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
                raise errors.HypervisorError(
                    f"instance {instance.name} cannot be received: {errors.text(err)}"
                ) from err
            # The sender is the node that the master named, not the one that it claims to be.
            known = {**info, "source": source}
            where = self._driver(instance).accept(instance, disks, known, target)
        log.info("instance %s is awaited at %s", instance.name, where)
        return where

    def instance_receive_disks(
        self, instance: NodeInstance, disks: list[DiskUuid], address: str
    ) -> str:
        """Take the content of disks at an address of this node."""
        with self._context.instance(instance.name, "reception"):
            self._rights.demand(instance, RightState.ARRIVING)
            return self._sender(instance).receive_disks(instance.name, disks, address)

    def instance_arrived(self, instance: NodeInstance) -> None:
        """Wait until all of an instance that is paused is here; blocks nobody else meanwhile."""
        self._driver(instance).check_arrived(instance)

    def instance_finalize_migration_dst(
        self, instance: NodeInstance, info: JsonObject, success: bool
    ) -> None:
        """See that the instance runs here, or end what waits for it."""
        with (
            self._context.instance(instance.name, "end of a reception"),
            self._ends.expect(instance.name, instance.hypervisor, begins=success),
        ):
            if success:
                self._rights.demand(instance, RightState.HERE)
            self._driver(instance).finish_target(instance, info, success=success)
            if not success:
                forget_metadata(self._context, instance)
        log.info(
            "instance %s %s", instance.name, "has arrived" if success else "is not awaited any more"
        )

    def _driver(self, instance: NodeInstance) -> Migratable:
        driver = self._context.hypervisor(instance.hypervisor)
        if not isinstance(driver, Migratable):
            raise errors.HypervisorError(
                f"the hypervisor {instance.hypervisor} cannot move a running instance; stop"
                f" {instance.name} and fail it over"
            )
        return driver

    def _sender(self, instance: NodeInstance) -> DiskSending:
        driver = self._context.hypervisor(instance.hypervisor)
        if not isinstance(driver, DiskSending):
            raise errors.HypervisorError(
                f"the hypervisor {instance.hypervisor} cannot send the disks of a running instance;"
                f" stop {instance.name} and move it"
            )
        return driver
