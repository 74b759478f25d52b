"""Instances: the virtual machines."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.backup import BackupPlan
from ganeti.model.base import ConfigObject, Tagged
from ganeti.model.cloud_init import CloudInit
from ganeti.model.enums import AdminState, AdminStateSource, DiskTemplate, HypervisorName
from ganeti.model.ids import DiskUuid, ImageUuid, InstanceUuid, NodeUuid
from ganeti.model.nic import Nic
from ganeti.model.recovery import Attempt
from ganeti.model.snapshot import Snapshot


class Reservation(ConfigObject, frozen=True, kw_only=True):
    """For whom and how long the place of a forthcoming instance is kept."""

    owner: Annotated[str | None, doc("For whom the capacity is reserved")] = None
    reason: Annotated[str | None, doc("What the capacity is reserved for")] = None
    expires: Annotated[
        float | None, doc("When it may be removed, in seconds since 1970; unset for never")
    ] = None
    disk_template: Annotated[
        DiskTemplate | None,
        doc("Template of disks that have no place yet, or diskless; unset: that of its disks"),
    ] = None


class Instance(Tagged, frozen=True, kw_only=True):
    """A virtual machine; a forthcoming one may lack everything but its uuid."""

    left_out_empty: ClassVar[frozenset[str]] = frozenset({"snapshots"})

    uuid: InstanceUuid
    name: Annotated[str, doc("Host name; a reservation may have none")] = ""
    primary_node: Annotated[
        NodeUuid, doc("UUID of the node that runs it; empty for a reservation without a place")
    ] = NodeUuid("")
    os: Annotated[str, doc("OS definition, with the variant after a plus sign")] = ""
    hypervisor: Annotated[
        HypervisorName | None, doc("Hypervisor; only a reservation may have none")
    ] = None
    hvparams: Annotated[
        JsonObject,
        doc("Hypervisor parameters that differ from those of the cluster and of the OS"),
    ] = {}
    beparams: Annotated[
        JsonObject, doc("Back-end parameters that differ from those of the cluster")
    ] = {}
    osparams: Annotated[JsonObject, doc("OS parameters that differ from those of the cluster")] = {}
    osparams_private: Annotated[JsonObject, doc("OS parameters that are stored but not shown")] = {}
    admin_state: Annotated[AdminState, doc("State that the administrator wants")] = AdminState.DOWN
    admin_state_source: Annotated[
        AdminStateSource, doc("Who wants that state: an administrator, or a user in the guest")
    ] = AdminStateSource.ADMIN
    nics: Annotated[tuple[Nic, ...], doc("NICs, in the order in which the guest sees them")] = ()
    disks: Annotated[
        tuple[DiskUuid, ...], doc("UUIDs of the disks, in the order in which the guest sees them")
    ] = ()
    disks_active: Annotated[bool, doc("Whether the disks are to be active on the nodes")] = False
    network_port: Annotated[int | None, doc("TCP port of the graphical console")] = None
    forthcoming: Annotated[bool | None, doc("True for a reservation")] = None
    reservation: Annotated[
        Reservation | None, doc("For whom and how long it is reserved; only of a reservation")
    ] = None
    creating: Annotated[
        int | None,
        doc("Job that makes an instance of the reservation, or was interrupted while it did"),
    ] = None

    image: Annotated[ImageUuid | None, doc("UUID of the image that it was made from")] = None
    cloud_init: Annotated[
        CloudInit | None, doc("What cloud-init tells the guest; unset: it gets no disk for that")
    ] = None
    snapshots: Annotated[tuple[Snapshot, ...], doc("Snapshots of its disks, the oldest first")] = ()

    backup: Annotated[
        BackupPlan | None, doc("How it is backed up; unset before the first time")
    ] = None

    recovery: Annotated[
        Attempt | None, doc("The last attempt to start it elsewhere, as its node was dead")
    ] = None

    @property
    def handle(self) -> str:
        """Its name in locks, lists and messages; the uuid while it has none."""
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
