"""Disks: objects of their own, referenced by instances through their uuid."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.model.ids import DiskUuid, NodeUuid


class Disk(Tagged, frozen=True, kw_only=True):
    """One disk; ``logical_id`` depends on ``dev_type`` (for files: ``[driver, path]``).

    ``children`` (data and metadata volumes of DRBD) are disks without an entry of their own.
    Tags and limits are written only if there are any: other programs do not know them.
    """

    left_out_empty: ClassVar[frozenset[str]] = frozenset({"tags", "max_iops", "max_bandwidth"})

    uuid: DiskUuid
    dev_type: Annotated[
        DiskTemplate | None, doc("Disk template; only a reserved disk may have none")
    ] = None
    logical_id: Annotated[
        tuple[Any, ...], doc("Name in its storage; its parts depend on the template")
    ] = ()
    children: Annotated[
        tuple[Disk, ...],
        doc("Disks that it is built on, such as data and metadata volume of a mirrored disk"),
    ] = ()
    nodes: Annotated[
        tuple[NodeUuid, ...],
        doc("UUIDs of the nodes that hold the data; empty when all can reach it"),
    ] = ()
    iv_name: Annotated[str, doc("disk/INDEX in its instance; of a detached disk the last one")] = ""
    size: Annotated[int, doc("Size in MiB")] = 0
    mode: Annotated[DiskMode, doc("Whether the guest may write: rw or ro")] = DiskMode.RW
    name: Annotated[str | None, doc("Name that no other disk has")] = None
    spindles: Annotated[int | None, doc("Number of physical disks that it counts as")] = None
    max_iops: Annotated[
        int, doc("Maximum reads and writes of the guest per second; 0 for no limit")
    ] = 0
    max_bandwidth: Annotated[
        int, doc("Maximum MiB that the guest reads and writes per second; 0 for no limit")
    ] = 0
    params: Annotated[JsonObject | None, doc("Parameters of the storage provider")] = None
    forthcoming: Annotated[bool | None, doc("True for a disk of a reservation")] = None

    @property
    def real_template(self) -> DiskTemplate:
        """The template; ConfigurationError without one, as only a reserved disk may be."""
        if self.dev_type is None:
            raise errors.ConfigurationError(f"disk {self.uuid} has no template")
        return self.dev_type
