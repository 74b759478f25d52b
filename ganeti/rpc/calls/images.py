"""Node calls about images: made on the master, copied to candidates, written to disks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.model.ids import ImageUuid
from ganeti.rpc.images import ImageFacts, NodeImage
from ganeti.rpc.objects import NodeDisk
from ganeti.rpc.timing import FAST, URGENT, call


class ImageCalls(ABC):
    """Answered by :class:`ganeti.node.images.Images`.

    Calls that take long return the name of a copy for
    :meth:`ganeti.rpc.calls.copying.CopyCalls.copy_status`.
    """

    @abstractmethod
    @call(timeout=URGENT)
    def image_make(
        self, uuid: ImageUuid, source: str, sha256: str | None, format: str | None
    ) -> str:
        """Begin to make an image of an upload or a URL and to keep it here; name of the copy."""

    @abstractmethod
    @call(timeout=URGENT)
    def image_facts(self, uuid: ImageUuid) -> ImageFacts:
        """Facts of an image that was made here; they are returned once."""

    @abstractmethod
    @call(timeout=URGENT)
    def image_keep(self, image: NodeImage) -> str:
        """Begin to copy an image of another node to the images that are kept here."""

    @abstractmethod
    @call(timeout=URGENT)
    def image_list(self) -> dict[ImageUuid, int]:
        """UUIDs of the images that are kept here, with the bytes of their files."""

    @abstractmethod
    @call(timeout=FAST)
    def image_remove(self, uuids: list[ImageUuid]) -> None:
        """Remove images and what is cached of them; no error for missing ones.

        Work here that makes or fetches one of them ends.
        """

    @abstractmethod
    @call(timeout=URGENT)
    def image_write(self, image: NodeImage, disk: NodeDisk) -> str:
        """Begin to write an image to the start of an active disk, from the cache if it is there."""

    @abstractmethod
    @call(timeout=URGENT)
    def blockdev_image(self, bdev: NodeDisk, image: str, size: int) -> str:
        """Begin to write what a URL or a path names to an active disk of ``size`` MiB."""

    @abstractmethod
    @call(timeout=FAST, by_any_node=True)
    def image_read(self, uuid: ImageUuid, offset: int, length: int) -> str:
        """A part of the file of an image that is kept here, in base64; shorter at the end."""
