"""Node calls about images: made on the master, copied to candidates, written to disks.

A node without a copy fetches the image in pieces from a node that keeps one, over the TLS of node
calls, and continues where an earlier attempt ended. A file gets its name when its SHA-256 is right.
The removal of an image ends what makes or fetches it: that of a master that died may go on here.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from ganeti import errors
from ganeti.base import files
from ganeti.images import location, making, shelf, source, web, writing
from ganeti.model.ids import ImageUuid
from ganeti.net.tls.contexts import Identity
from ganeti.node.context import NamedLocks, NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.calls.images import ImageCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.images import ImageFacts, NodeImage
from ganeti.rpc.objects import NodeDisk

log = logging.getLogger(__name__)

#: Bytes of one piece.
PIECE = 4 * 1024 * 1024
#: Bytes that the cache of a node may have.
CACHE_LIMIT = 20 * 1024**3
#: Seconds that one user of an image waits for another one that fetches it.
_WAIT = 3600.0
#: How often a node that does not answer is asked again, and the pause in seconds.
_ATTEMPTS, _PAUSE = 5, 2.0
#: Seconds after which an upload that no job took is removed.
_OLD_UPLOAD = 7 * 86400.0


class Images(ImageCalls):
    """The images on this node."""

    def __init__(self, context: NodeContext, disks: Disks, copies: Copies) -> None:
        self._context = context
        self._disks = disks
        self._copies = copies
        self._kept = shelf.Shelf(context.paths.images)
        self._cache = shelf.Shelf(context.paths.image_cache)
        self._locks = NamedLocks(context.clock)
        self._facts: dict[str, ImageFacts] = {}
        #: UUIDs of images that are being removed.
        self._removing: set[str] = set()
        self._kept.sweep()
        self._cache.sweep()

    # making

    def image_make(
        self, uuid: ImageUuid, source: str, sha256: str | None, format: str | None
    ) -> str:
        """Begin to make an image of an upload or a URL; OpPrereqError when it is refused."""
        shelf.check_uuid(uuid)
        return self._copies.begin(
            lambda progress: self._make(uuid, source, sha256, format, progress)
        )

    def _make(
        self,
        uuid: ImageUuid,
        given: str,
        sha256: str | None,
        format: str | None,
        progress: Progress,
    ) -> None:
        source.check(given)
        tell = self._make_teller(uuid, progress)
        with self._hold(uuid), _file_errors(), self._kept.work(uuid) as directory:
            self._remove_old_uploads()
            path = directory / "source"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                found = self._read_source(given, fd, directory, tell)
                if sha256 is not None and sha256.lower() != found:
                    raise errors.make_invalid_error(
                        f"the SHA-256 of {source.describe(given)} is {found}, not {sha256.lower()}"
                    )
                image, made = making.make(directory, fd, format, tell)
            finally:
                os.close(fd)
            self._facts[uuid] = ImageFacts(
                source_format=made.format,
                source_sha256=found,
                disk_size=made.disk_size,
                file_size=made.file_size,
                sha256=made.sha256,
            )
            self._kept.publish(uuid, image)
        log.info("made image %s of %s (%s)", uuid, given, made.format)

    def _read_source(self, given: str, fd: int, directory: Path, tell: source.Tell) -> str:
        """Copy what a source names into an empty file of a directory; returns its SHA-256."""
        paths = self._context.paths
        if source.is_url(given):
            return web.download(given, fd, tell, most=making.find_free(directory))
        if not location.is_location(given):
            return source.copy_upload(paths.image_uploads / given, fd, tell)
        opened = location.open_file(Path(paths.local(given)), paths.os_images)
        try:
            return source.copy_file(opened, fd, tell)
        finally:
            os.close(opened)

    def _remove_old_uploads(self) -> None:
        """Jobs take their uploads at once; what nobody took for days was given up."""
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._context.paths.image_uploads):
                age = self._context.clock.now() - entry.stat(follow_symlinks=False).st_mtime
                if age > _OLD_UPLOAD:
                    files.remove(Path(entry.path))
                    log.info("removed the upload %s, which no job has taken", entry.name)

    def image_facts(self, uuid: ImageUuid) -> ImageFacts:
        """Facts of an image that was made here, once; GenericError when they are lost."""
        found = self._facts.pop(uuid, None)
        if found is None:
            raise errors.GenericError("the node daemon was restarted while it made the image")
        return found

    # keeping

    def image_keep(self, image: NodeImage) -> str:
        """Begin to copy an image to the images that are kept here."""
        return self._copies.begin(lambda progress: self._keep(image, progress))

    def _keep(self, image: NodeImage, progress: Progress) -> None:
        with self._hold(image.uuid), _file_errors():
            cached = self._cache.path(image.uuid)
            if self._cache.has(image.uuid, image.size) and not cached.is_symlink():
                self._kept.prepare()
                with contextlib.suppress(OSError):  # another file system: it is fetched then
                    os.replace(cached, self._kept.path(image.uuid))
            self._fetch(image, self._kept, progress)

    def image_list(self) -> dict[ImageUuid, int]:
        """UUIDs and bytes of the images that are kept here."""
        return self._kept.sizes()

    def image_remove(self, uuids: list[ImageUuid]) -> None:
        """Remove images and what is cached of them, also those that are being made or fetched."""
        self._removing.update(uuids)
        try:
            for uuid in uuids:
                with self._hold(uuid), _file_errors():
                    self._facts.pop(uuid, None)
                    self._kept.remove(uuid)
                    self._cache.remove(uuid)
        finally:
            self._removing.difference_update(uuids)

    def image_read(self, uuid: ImageUuid, offset: int, length: int) -> str:
        """A part of an image that is kept here; ParameterError, GenericError."""
        if offset < 0 or not 0 < length <= PIECE:
            raise errors.ParameterError(f"cannot read {length} bytes at {offset} of an image")
        path = self._kept.path(uuid)
        try:
            with path.open("rb") as stream:
                data = os.pread(stream.fileno(), length, offset)
        except OSError as err:
            raise errors.GenericError(f"image {uuid} cannot be read: {err.strerror}") from err
        return base64.b64encode(data).decode("ascii")

    # use

    def image_write(self, image: NodeImage, disk: NodeDisk) -> str:
        """Begin to write an image to the start of an active disk; BlockDeviceError."""
        target = self._find_target(disk)
        return self._copies.begin(lambda progress: self.put(image, lambda _size: target, progress))

    def blockdev_image(self, bdev: NodeDisk, image: str, size: int) -> str:
        """Begin to write what is at a location to an active disk of ``size`` MiB.

        Raises:
            OpPrereqError: this node reads nothing from there.
            BlockDeviceError: the disk is not active.
        """
        location.check(image)
        target = self._find_target(bdev)

        def place(needed: int) -> str:
            if needed > size:
                raise errors.BlockDeviceError(
                    f"the image {image} takes {needed} MiB, and the disk has {size} MiB"
                )
            return target

        return self._copies.begin(lambda progress: self.put(image, place, progress))

    def _find_target(self, disk: NodeDisk) -> str:
        found = self._disks.find_existing(disk)
        return found.uri() or str(found.path)

    def put(self, image: NodeImage | str, place: Callable[[int], str], progress: Progress) -> None:
        """Write an image, or what is at a location, to a disk; blocks until its end.

        ``place`` gets the size of the image in MiB, and returns the path or address of the disk.
        """
        if isinstance(image, str):
            self._put_location(image, place, progress)
            return
        with self._hold(image.uuid), _file_errors():
            path = self._find_here(image, progress)
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            writing.write(fd, place(image.disk_size), image.disk_size, progress.set)
        finally:
            os.close(fd)

    def put_in_file(self, image: NodeImage | str, path: Path, progress: Progress) -> None:
        """Write an image, or what is at a location, to a new file."""

        def place(size: int) -> str:
            with _file_errors(), path.open("xb") as stream:
                os.truncate(stream.fileno(), size << 20)
            return str(path)

        self.put(image, place, progress)

    def _put_location(self, given: str, place: Callable[[int], str], progress: Progress) -> None:
        with _file_errors(), self._cache.work(ImageUuid(str(uuid4()))) as directory:
            path = directory / "source"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                self._read_source(given, fd, directory, progress.set)
                image, made = making.make(directory, fd, None, progress.set)
            finally:
                os.close(fd)
            fd = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
            try:
                writing.write(fd, place(made.disk_size), made.disk_size, progress.set)
            finally:
                os.close(fd)
        log.info("wrote what is at %s to a disk", given)

    def _find_here(self, image: NodeImage, progress: Progress) -> Path:
        """The file of an image, which is fetched into the cache when it is not here."""
        if self._kept.has(image.uuid, image.size):
            return self._kept.path(image.uuid)
        if not self._cache.has(image.uuid, image.size):
            self._cache.prepare()
            self._cache.make_room(image.uuid, image.size, CACHE_LIMIT)
            self._fetch(image, self._cache, progress)
        os.utime(self._cache.path(image.uuid))
        return self._cache.path(image.uuid)

    # fetching

    def _fetch(self, image: NodeImage, place: shelf.Shelf, progress: Progress) -> None:
        """See that a place has the file of an image."""
        if place.has(image.uuid, image.size):
            return
        place.prepare()
        part = place.part(image.uuid)
        done = part.stat().st_size if part.exists() else 0
        if making.find_free(place.directory) < image.size - done:
            free = making.find_free(place.directory) >> 20
            raise errors.GenericError(
                f"image {image.name} does not fit into {place.directory}: it takes"
                f" {image.size >> 20} MiB, {free} MiB may be used"
            )
        tell = self._make_teller(image.uuid, progress)
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._receive(image, fd, tell)
            if making.hash_file(fd) != image.sha256:
                part.unlink()
                raise errors.GenericError(
                    f"image {image.name} arrived damaged: its checksum is wrong; nothing was"
                    " changed, try again"
                )
            os.fsync(fd)
        finally:
            os.close(fd)
        place.publish(image.uuid, part)
        log.info("fetched image %s (%d bytes)", image.uuid, image.size)

    def _receive(self, image: NodeImage, fd: int, tell: Callable[[int, int], None]) -> None:
        paths = self._context.paths
        rpc = NodeRpc(Identity(paths.client_cert, paths.ca_cert).client_context())
        problems: list[str] = []
        try:
            for name, address in image.sources:
                if name == self._context.name:
                    continue
                for _attempt in range(_ATTEMPTS):
                    before = os.fstat(fd).st_size
                    try:
                        self._receive_from(rpc, image, fd, (name, address), tell)
                        return
                    except errors.RpcError as err:
                        problems.append(errors.text(err))
                        # What came so far stays; one that gives nothing at all is left.
                        if os.fstat(fd).st_size == before or self._context.stopping.wait(_PAUSE):
                            break
                    except errors.GenericError as err:
                        problems.append(errors.text(err))
                        break
        finally:
            rpc.stop()
        raise errors.GenericError(
            f"image {image.name} cannot be fetched: {'; '.join(problems) or 'no node has it'}"
        )

    @staticmethod
    def _receive_from(
        rpc: NodeRpc,
        image: NodeImage,
        fd: int,
        node: tuple[str, str],
        tell: Callable[[int, int], None],
    ) -> None:
        name, address = node
        done = os.fstat(fd).st_size
        if done > image.size:
            os.ftruncate(fd, 0)
            done = 0
        while done < image.size:
            text = rpc.call_address(
                address, name, NodeCalls.image_read, image.uuid, done, min(PIECE, image.size - done)
            )
            try:
                data = base64.b64decode(text, validate=True)
            except binascii.Error as err:
                raise errors.GenericError(f"node {name} sent something else: {err}") from err
            if not data:
                raise errors.GenericError(f"the copy of image {image.name} on {name} is cut off")
            os.pwrite(fd, data, done)
            done += len(data)
            tell(done, image.size)

    def _make_teller(self, uuid: ImageUuid, progress: Progress) -> Callable[[int, int], None]:
        """Notes how far it is; raises when the image is removed, or nobody asks any more."""

        def note(done: int, size: int) -> None:
            if uuid in self._removing:
                raise errors.GenericError(f"image {uuid} was removed meanwhile")
            progress.set(done, size)

        return note

    @contextlib.contextmanager
    def _hold(self, uuid: ImageUuid) -> Iterator[None]:
        with self._locks.hold(shelf.check_uuid(uuid), "use of the image", _WAIT):
            yield


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise files.failure(err) from err
