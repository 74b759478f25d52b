"""Disks: objects of their own, referenced by instances through their uuid."""

from __future__ import annotations

from typing import Any, ClassVar

from ganeti import errors
from ganeti.model.base import Tagged
from ganeti.model.names import DiskMode, DiskTemplate, DiskUuid, NodeUuid


class Disk(Tagged, frozen=True, kw_only=True):
    """One disk; ``logical_id`` depends on ``dev_type`` (for files: ``[driver, path]``).

    ``children`` (data and metadata volumes of DRBD) are disks without an entry of their own.
    Tags are written only if there are any: other programs know no tags of disks.
    """

    left_out_empty: ClassVar[frozenset[str]] = frozenset({"tags"})

    uuid: DiskUuid
    dev_type: DiskTemplate | None = None
    logical_id: tuple[Any, ...] = ()
    children: tuple[Disk, ...] = ()
    #: uuids of the nodes that hold the data; empty: any node
    nodes: tuple[NodeUuid, ...] = ()
    #: ``disk/<index>`` within its instance; of a detached disk the last one it had, or empty
    iv_name: str = ""
    #: MiB
    size: int = 0
    mode: DiskMode = DiskMode.RW
    name: str | None = None
    spindles: int | None = None
    params: dict[str, Any] | None = None
    forthcoming: bool | None = None

    @property
    def real_template(self) -> DiskTemplate:
        """The template; ConfigurationError without one, as only a reserved disk may be."""
        if self.dev_type is None:
            raise errors.ConfigurationError(f"disk {self.uuid} has no template")
        return self.dev_type
