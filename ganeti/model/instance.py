"""Instances: the virtual machines."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.model.base import ConfigObject, Tagged
from ganeti.model.names import (
    AdminState,
    AdminStateSource,
    DiskTemplate,
    DiskUuid,
    HypervisorName,
    InstanceUuid,
    NodeUuid,
)
from ganeti.model.nic import Nic


class Reservation(ConfigObject, frozen=True, kw_only=True):
    """For whom and how long the place of a forthcoming instance is kept."""

    owner: str | None = None
    reason: str | None = None
    #: seconds since the epoch after which it may be removed; unset: never
    expires: float | None = None
    #: template of disks that have no place yet, or ``diskless``; unset: as its disks, or unknown
    disk_template: DiskTemplate | None = None


class Instance(Tagged, frozen=True, kw_only=True):
    """A virtual machine; a forthcoming one may lack everything but its uuid."""

    uuid: InstanceUuid
    name: str = ""
    primary_node: NodeUuid = NodeUuid("")
    #: OS definition with variant, ``debian+minimal``
    os: str = ""
    hypervisor: HypervisorName | None = None
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    osparams_private: dict[str, Any] = {}
    admin_state: AdminState = AdminState.DOWN
    admin_state_source: AdminStateSource = AdminStateSource.ADMIN
    nics: tuple[Nic, ...] = ()
    #: uuids, in the order in which the guest sees them
    disks: tuple[DiskUuid, ...] = ()
    disks_active: bool = False
    #: port for the graphical console
    network_port: int | None = None
    forthcoming: bool | None = None
    #: only while it is forthcoming, and unset when another implementation reserved it
    reservation: Reservation | None = None
    #: job that is making it real, or was when it was interrupted; only while it is forthcoming
    creating: int | None = None

    @property
    def handle(self) -> str:
        """What locks, lists and messages call it: its name, or the uuid while it has none."""
        return self.name or self.uuid

    @property
    def real_hypervisor(self) -> HypervisorName:
        """The hypervisor; ConfigurationError without one, as only a reservation may be."""
        if self.hypervisor is None:
            raise errors.ConfigurationError(f"instance '{self.handle}' has no hypervisor")
        return self.hypervisor

    @property
    def interrupted(self) -> bool:
        """Whether a job began to make it real; true also while that job still runs."""
        return bool(self.forthcoming and self.creating is not None)

    @property
    def removable_only(self) -> bool:
        """Whether it is what a creation left behind that nobody had reserved before."""
        return self.interrupted and self.reservation is None
