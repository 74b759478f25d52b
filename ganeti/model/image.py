"""Images: what instances can be made from without an OS definition."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.ids import ImageUuid, NodeUuid


class Image(Tagged, frozen=True, kw_only=True):
    """Content for the first disk of new instances; master candidates keep it as a file."""

    uuid: ImageUuid
    name: Annotated[str, doc("Name of the image")]
    description: Annotated[str | None, doc("What is in the image")] = None
    source: Annotated[str, doc("File or URL that it was made from")] = ""
    source_format: Annotated[str | None, doc("Format of that file")] = None
    source_sha256: Annotated[str | None, doc("SHA-256 of that file")] = None
    disk_size: Annotated[int, doc("Size of the smallest disk that it fits on")] = 0
    file_size: Annotated[int, doc("Size of the file that is kept, in bytes")] = 0
    sha256: Annotated[str | None, doc("SHA-256 of the file that is kept")] = None
    nodes: Annotated[tuple[NodeUuid, ...], doc("UUIDs of the nodes with the whole file")] = ()
    creating: Annotated[
        int | None, doc("Job that makes the image, or was interrupted while it did")
    ] = None

    @property
    def ready(self) -> bool:
        """Whether instances can be made from it."""
        return self.creating is None
