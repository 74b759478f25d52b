"""Names and volumes of a mirrored disk that is going to be made. Pure."""

from __future__ import annotations

from ganeti import errors
from ganeti.storage.interface import ChildPlan, PlanRequest

#: MiB of the metadata volume: what DRBD 8.4 needs for one device at a fixed place.
META_SIZE = 128


def logical_id(request: PlanRequest) -> tuple[str | int, ...]:
    """``(node A, node B, port, minor A, minor B, secret)``; the first node is the primary.

    Raises:
        ParameterError: not two different nodes, or no place was reserved.
    """
    if len(request.nodes) != 2 or request.nodes[0] == request.nodes[1]:
        raise errors.ParameterError(
            f"disks of {request.instance_name} are mirrored: two different nodes are needed"
        )
    if request.mirror is None:
        raise errors.ParameterError(
            f"no minors are reserved for the disks of {request.instance_name}"
        )
    return (
        request.nodes[0],
        request.nodes[1],
        request.mirror.port,
        *request.mirror.minors,
        request.mirror.secret,
    )


def children(request: PlanRequest) -> tuple[ChildPlan, ...]:
    """Data volume and metadata volume; ParameterError without volume group."""
    if not request.vg:
        raise errors.ParameterError(
            f"no volume group for the disks of {request.instance_name}: set the cluster's"
            " with gnt-cluster modify --vg-name, or name one for the disk with vg="
        )
    name = f"{request.disk_uuid}.disk{request.index}"
    return (
        ChildPlan("plain", (request.vg, f"{name}_data"), request.size),
        ChildPlan("plain", (request.metavg or request.vg, f"{name}_meta"), META_SIZE),
    )
