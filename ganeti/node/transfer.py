"""Copying the content of a disk from one node to another, over TLS.

The target opens a port for one sender, who must have a certificate of the cluster and know a token
that only the master told it. What travels: token, size, frames (length, bytes; the last is empty),
SHA-256 of the whole. The target answers with an empty line, or with what was wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from ganeti import errors
from ganeti.net.peers import check_peer_name
from ganeti.net.tls import Identity, TLSSocket
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import space

log = logging.getLogger(__name__)

#: Seconds that a sender may take to come, and the wait for the next bytes of either side.
COMING = 60.0
STALLED = 120.0
CHUNK = 1024 * 1024
_TOKEN = 64
_SIZE = struct.Struct("!Q")
_FRAME = struct.Struct("!I")
_ZEROS = bytes(64 * 1024)
#: zlib level by name of the compression.
LEVELS = {"none": None, "gzip": 6, "gzip-fast": 1, "gzip-slow": 9}


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Decompressor(Protocol):
    """What is used of ``zlib.decompressobj``."""

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class _Plain:
    """No compression, in the shape of one."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class Transfer:
    """Both ends of a copy."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def receive(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        """Wait for the content of an assembled disk at an address; gives port and token.

        One sender is let in, within ``COMING`` seconds; then the port is closed.

        Raises:
            BlockDeviceError: the disk is not here.
            GenericError: nobody can wait at that address.
        """
        _level(compress)
        path = self._disks.existing(disk).path
        token = secrets.token_hex(_TOKEN // 2)
        try:
            listener = socket.create_server((address, 0), backlog=1)
        except OSError as err:
            raise errors.GenericError(f"cannot wait at {address}: {err.strerror}") from err
        listener.settimeout(COMING)
        thread = threading.Thread(
            target=self._receive, args=(listener, path, token, compress), name="disk-in",
            daemon=True,
        )  # fmt: skip
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
                answer = self._take(sock, path, token, compress)
                sock.sendall(answer.encode() + b"\n")
            finally:
                sock.close()
        except OSError as err:
            # The sender sees that the connection ended, and its master hears of that.
            log.warning("a disk did not arrive at %s: %s", path, err)

    def _take(self, sock: TLSSocket, path: str, token: str, compress: str) -> str:
        """Read everything; an empty text, or why it is no good."""
        with sock.makefile("rb") as stream:
            if not hmac.compare_digest(_exactly(stream, _TOKEN), token.encode()):
                return "the token is wrong"
            [size] = _SIZE.unpack(_exactly(stream, _SIZE.size))
            if size > space.device_size(path):
                return f"the disk here has less than {size} bytes"
            digest = hashlib.sha256()
            unpack = None if _level(compress) is None else zlib.decompressobj()
            done = 0
            with open(path, "r+b", buffering=0) as target:
                while frame := _exactly(stream, _FRAME.unpack(_exactly(stream, _FRAME.size))[0]):
                    for data in _unpacked(frame, unpack):
                        done += len(data)
                        if done > size:
                            return "more bytes came than were announced"
                        digest.update(data)
                        _write(target, data)
                os.fsync(target.fileno())
            if done != size or _exactly(stream, digest.digest_size) != digest.digest():
                return "the bytes that arrived are not those that were sent"
        log.info("%d bytes arrived at %s", size, path)
        return ""

    def send(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> int:
        """Send the content of an assembled disk to another node, which waits at a place.

        Blocks until it is on the other disk. Returns the number of bytes.

        Raises:
            BlockDeviceError: the disk is not here, or the other node did not get it whole.
        """
        path = self._disks.existing(disk).path
        paths = self._context.paths
        identity = Identity(paths.client_cert, paths.ca_cert)
        try:
            raw = socket.create_connection(place, timeout=COMING)
            sock = TLSSocket(raw, identity.client_context(), server_side=False)
            sock.settimeout(STALLED)
            try:
                sock.handshake()
                check_peer_name(sock, node)
                size = _give(sock, path, token, compress)
                answer = sock.recv(4096)
            finally:
                sock.close()
        except OSError as err:
            raise errors.BlockDeviceError(
                f"disk {disk.uuid} was not copied to {node}: {err}"
            ) from err
        if answer != b"\n":
            why = answer.decode("utf-8", "replace").strip() or "the other node hung up"
            raise errors.BlockDeviceError(f"disk {disk.uuid} was not copied to {node}: {why}")
        return size


def _give(sock: TLSSocket, path: str, token: str, compress: str) -> int:
    level = _level(compress)
    pack: _Compressor = _Plain() if level is None else zlib.compressobj(level)
    size = space.device_size(path)
    digest = hashlib.sha256()
    sock.sendall(token.encode() + _SIZE.pack(size))
    with open(path, "rb", buffering=0) as source:
        left = size
        while left and (data := source.read(min(CHUNK, left))):
            left -= len(data)
            digest.update(data)
            _frame(sock, pack.compress(data))
    _frame(sock, pack.flush())
    sock.sendall(_FRAME.pack(0) + digest.digest())
    return size


def _frame(sock: TLSSocket, data: bytes) -> None:
    if data:
        sock.sendall(_FRAME.pack(len(data)) + data)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    if count > 4 * CHUNK:
        raise ConnectionAbortedError("a frame is longer than any that is sent")
    data = stream.read(count)
    if len(data) < count:
        raise ConnectionAbortedError("the sender hung up in the middle")
    return data


def _unpacked(frame: bytes, unpack: Decompressor | None) -> Iterator[bytes]:
    """The content of a frame in pieces, none longer than ``CHUNK``."""
    if unpack is None:
        yield frame
        return
    while frame:
        yield unpack.decompress(frame, CHUNK)
        frame = unpack.unconsumed_tail


def _write(target: BinaryIO, data: bytes) -> None:
    """Write at the present place; what is zero already on a new file stays a hole."""
    for start in range(0, len(data), len(_ZEROS)):
        block = memoryview(data)[start : start + len(_ZEROS)]
        if block == _ZEROS[: len(block)] and not any(
            os.pread(target.fileno(), len(block), target.tell())
        ):
            target.seek(len(block), os.SEEK_CUR)
            continue
        while block:
            block = block[target.write(block) :]


def _level(compress: str) -> int | None:
    if compress not in LEVELS:
        raise errors.ParameterError(
            f"disks cannot be compressed by {compress[:40]!r} on their way; known are"
            f" {', '.join(LEVELS)}"
        )
    return LEVELS[compress]
