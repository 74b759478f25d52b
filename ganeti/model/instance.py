"""Instances: the virtual machines."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import Tagged
from ganeti.model.names import AdminState, AdminStateSource, DiskUuid, HypervisorName, NodeUuid
from ganeti.model.nic import Nic


class Instance(Tagged, frozen=True, kw_only=True):
    """A virtual machine; a forthcoming one may lack everything but its uuid."""

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
