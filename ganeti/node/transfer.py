"""Copying the content of a disk from one node to another, over TLS.

The target opens a port for one sender, who must have a certificate of the cluster and know a token
that only the master told it. On the wire: token, size, frames, SHA-256 of the whole. A frame has
a kind and a length: bytes of the disk, so many zeros (which are not sent), or the end. The target
answers long runs of zeros with a dot each, because clearing a block device may take long, and
everything with an empty line, or with what was wrong. The checksum covers all of the content: the
bytes, and place and length of what is zero.
"""

from __future__ import annotations

import contextvars
import hashlib
import hmac
import logging
import os
import secrets
import socket
import struct
import threading
import zlib
from enum import IntEnum
from typing import BinaryIO

from ganeti import errors
from ganeti.base import sparse
from ganeti.net.peers import check_peer_name
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSSocket
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.rpc.calls.transfer import TransferCalls
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import measure

log = logging.getLogger(__name__)

#: Seconds that a sender may take to come, and the wait for the next bytes of either side.
COMING = 60.0
STALLED = 120.0
_TOKEN = 64
_SIZE = struct.Struct("!Q")
_FRAME = struct.Struct("!BQ")
#: Zeros from this length on are answered, by a dot.
_LONG = 16 * 1024 * 1024
_DOT = b"."
#: Bytes after which the target waits for its disk, so that no wait is longer than ``STALLED``.
_FLUSH_EVERY = 512 * 1024 * 1024
#: Longest frame of bytes: what does not compress becomes a little longer.
_LONGEST = 2 * sparse.CHUNK
_DAMAGED = "the bytes that arrived are not those that were sent"
#: zlib level by name of the compression.
LEVELS = {"none": None, "gzip": 6, "gzip-fast": 1, "gzip-slow": 9}


class _Kind(IntEnum):
    """Kind of a frame."""

    END = 0
    DATA = 1
    ZEROS = 2


class _Digest:
    """SHA-256 of the content, piece by piece; long zeros cost nothing."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, kind: _Kind, size: int, data: bytes | memoryview = b"") -> None:
        self._digest.update(_FRAME.pack(kind, size))
        self._digest.update(data)

    def value(self) -> bytes:
        return self._digest.digest()


class Transfer(TransferCalls):
    """Both ends of a copy."""

    def __init__(self, context: NodeContext, disks: Disks, copies: Copies) -> None:
        self._context = context
        self._disks = disks
        self._copies = copies

    def disk_expect(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        """Wait for the content of an assembled disk at an address; returns port and token.

        One sender is let in, within ``COMING`` seconds; then the port is closed.

        Raises:
            BlockDeviceError: the disk is not here.
            GenericError: nobody can wait at that address.
        """
        _level(compress)
        path = self._disks.find_existing(disk).path
        token = secrets.token_hex(_TOKEN // 2)
        try:
            listener = socket.create_server((address, 0), backlog=1)
        except OSError as err:
            raise errors.GenericError(f"cannot wait at {address}: {err.strerror}") from err
        listener.settimeout(COMING)
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._receive, listener, path, token, compress),
            name="disk-in",
            daemon=True,
        )
        thread.start()
        return listener.getsockname()[1], token

    def _receive(self, listener: socket.socket, path: str, token: str, compress: str) -> None:
        try:
            with listener:
                raw, _peer = listener.accept()
            paths = self._context.paths
            identity = Identity(paths.server_cert, paths.ca_cert)
            sock = TLSSocket(raw, identity.server_context(), server_side=True)
            sock.settimeout(STALLED)
            try:
                sock.handshake()
                self._answer(sock, path, token, compress)
            finally:
                sock.close()
        except OSError as err:
            # The sender sees that the connection ended, and its master hears of that.
            log.warning("a disk did not arrive at %s: %s", path, err)

    def _answer(self, sock: TLSSocket, path: str, token: str, compress: str) -> None:
        try:
            answer = self._take(sock, path, token, compress)
        except errors.BlockDeviceError as err:
            answer = errors.text(err)
        except OSError as err:
            answer = f"{path}: {err.strerror}" if err.strerror else str(err)
        sock.sendall(answer.encode() + b"\n")
        if answer:
            log.warning("a disk did not arrive at %s: %s", path, answer)
            # The sender reads the answer after its next piece, and hangs up.
            while sock.recv(sparse.CHUNK):
                pass

    def _take(self, sock: TLSSocket, path: str, token: str, compress: str) -> str:
        """Read everything; an empty text, or why it cannot be used."""
        with sock.makefile("rb") as stream:
            if not hmac.compare_digest(_read_exactly(stream, _TOKEN), token.encode()):
                return "the token is wrong"
            [size] = _SIZE.unpack(_read_exactly(stream, _SIZE.size))
            if size > measure.device_size(path):
                return f"the disk here has less than {size} bytes"
            with open(path, "r+b", buffering=0) as target:
                writer = _Writer(sock, target.fileno(), size, compress)
                while writer.take(stream):
                    pass
                os.fsync(target.fileno())
            if writer.done != size or _read_exactly(stream, 32) != writer.digest.value():
                return _DAMAGED
        log.info("%d bytes arrived at %s", size, path)
        return ""

    def disk_transfer(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> str:
        """Begin to send the content of an assembled disk to another node, which waits at a place.

        The copy ends when all is on the other disk. Returns its name for :class:`Copies`.

        Raises:
            BlockDeviceError: the disk is not here.
        """
        path = self._disks.find_existing(disk).path
        _level(compress)

        def work(progress: Progress) -> None:
            self._send(path, node, place, token, compress, progress)

        return self._copies.begin(work)

    def _send(
        self,
        path: str,
        node: str,
        place: tuple[str, int],
        token: str,
        compress: str,
        progress: Progress,
    ) -> None:
        paths = self._context.paths
        identity = Identity(paths.client_cert, paths.ca_cert)
        try:
            raw = socket.create_connection(place, timeout=COMING)
            sock = TLSSocket(raw, identity.client_context(), server_side=False)
            sock.settimeout(STALLED)
            try:
                sock.handshake()
                check_peer_name(sock, node)
                _give(sock, path, token, compress, progress)
                answer = sock.recv(4096)
            finally:
                sock.close()
        except _RefusedError as err:
            answer = err.answer
        except OSError as err:
            raise errors.BlockDeviceError(f"{path} was not copied to {node}: {err}") from err
        if answer != b"\n":
            why = answer.decode("utf-8", "replace").strip() or "the other node hung up"
            raise errors.BlockDeviceError(f"{path} was not copied to {node}: {why}")


class _RefusedError(Exception):
    """The target wants no more; ``answer`` says why, empty: it hung up."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer)
        self.answer = answer


def _give(sock: TLSSocket, path: str, token: str, compress: str, progress: Progress) -> None:
    level = _level(compress)
    progress.size = measure.device_size(path)
    digest = _Digest()
    sock.sendall(token.encode() + _SIZE.pack(progress.size))
    with open(path, "rb", buffering=0) as source:
        for size, data in sparse.pieces(source.fileno(), progress.size):
            if (early := sock.try_recv(4096)) is not None:
                raise _RefusedError(early)
            if data is None:
                digest.add(_Kind.ZEROS, size)
                sock.sendall(_FRAME.pack(_Kind.ZEROS, size))
                if size >= _LONG and (answer := sock.recv(4096)) != _DOT:
                    raise _RefusedError(answer)
            else:
                digest.add(_Kind.DATA, size, data)
                packed = data if level is None else zlib.compress(data, level)
                sock.sendall(b"".join((_FRAME.pack(_Kind.DATA, len(packed)), packed)))
            progress.add(size, zeros=data is None)
    sock.sendall(_FRAME.pack(_Kind.END, 0) + digest.value())


class _Writer:
    """Writes frames to the target's disk."""

    def __init__(self, sock: TLSSocket, target: int, size: int, compress: str) -> None:
        self._sock = sock
        self._target = target
        self._size = size
        self._packed = _level(compress) is not None
        self._flushed = 0
        self.done = 0
        self.digest = _Digest()

    def take(self, stream: BinaryIO) -> bool:
        """Take one frame; False when it was the end.

        Raises:
            OSError: the sender hung up, or sent what nobody sends.
        """
        kind: int
        length: int
        kind, length = _FRAME.unpack(_read_exactly(stream, _FRAME.size))
        if kind == _Kind.ZEROS:
            self._clear(length)
        elif kind == _Kind.DATA:
            self._write(self._unpack(_read_exactly(stream, length)))
        elif kind != _Kind.END:
            raise ConnectionAbortedError(f"frames of kind {kind} are not known")
        return kind != _Kind.END

    def _clear(self, size: int) -> None:
        self._check_room(size)
        self.digest.add(_Kind.ZEROS, size)
        for step in sparse.clear(self._target, self.done, size):
            self.done += step
            self._flush()
        if size >= _LONG:
            self._sock.sendall(_DOT)

    def _write(self, data: bytes) -> None:
        self._check_room(len(data))
        self.digest.add(_Kind.DATA, len(data), data)
        sparse.write(self._target, self.done, data)
        self.done += len(data)
        self._flush()

    def _check_room(self, size: int) -> None:
        if self.done + size > self._size:
            raise ConnectionAbortedError("more bytes came than were announced")

    def _flush(self) -> None:
        if self.done - self._flushed >= _FLUSH_EVERY:
            os.fdatasync(self._target)
            self._flushed = self.done

    def _unpack(self, frame: bytes) -> bytes:
        if not self._packed:
            return frame
        unpack = zlib.decompressobj()
        try:
            # One more than any content, so that the end of the frame is reached.
            data = unpack.decompress(frame, sparse.CHUNK + 1)
        except zlib.error as err:
            raise ConnectionAbortedError(f"a frame cannot be unpacked: {err}") from err
        if not unpack.eof:
            raise ConnectionAbortedError("a frame is longer than any that is sent")
        return data


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    if count > _LONGEST:
        raise ConnectionAbortedError("a frame is longer than any that is sent")
    data = stream.read(count)
    if len(data) < count:
        raise ConnectionAbortedError("the sender hung up in the middle")
    return data


def _level(compress: str) -> int | None:
    if compress not in LEVELS:
        raise errors.ParameterError(
            f"disks cannot be compressed by {compress[:40]!r} on their way; choose from"
            f" {', '.join(LEVELS)}"
        )
    return LEVELS[compress]
