"""A client of NBD servers on Unix sockets: reads, writes, and what is known of each extent.

The protocol is that of the NBD project (doc/proto.md): fixed newstyle, structured replies, one
request at a time. Servers are QEMU and qemu-nbd of the same node.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ganeti import errors

#: Meta context that tells data from holes, and how QEMU names those of its bitmaps.
ALLOCATION = "base:allocation"
BITMAP = "qemu:dirty-bitmap:"
#: Bits of an extent: there is no data below it, it reads as zeros; bit of one in a bitmap.
_ZERO, _DIRTY = 2, 1
#: Most bytes of one request, and of one question about extents.
LARGEST = 4 * 1024 * 1024
_MOST_STATUS = 1 << 30
#: Most bytes of an answer that are believed.
_MOST_ANSWER = 64 * 1024 * 1024

_HELLO, _OPTION = b"NBDMAGIC", b"IHAVEOPT"
_OPTION_REPLY = 0x3E889045565A9
_REQUEST, _SIMPLE, _STRUCTURED = 0x25609513, 0x67446698, 0x668E33EF
_OPT_GO, _OPT_STRUCTURED, _OPT_SET_META = 7, 8, 10
_REP_ACK, _REP_INFO, _REP_META = 1, 3, 4
_READ, _WRITE, _DISCONNECT, _FLUSH, _ZEROES, _STATUS = 0, 1, 2, 3, 6, 7
_PART_DATA, _PART_HOLE, _PART_STATUS, _PART_ERROR = 1, 2, 5, 1 << 15
_DONE = 1
_SHORT_HEADER = 16


class Extent(NamedTuple):
    """Bytes of one kind: whether they are zeros (or, of a bitmap, clean)."""

    offset: int
    length: int
    flag: bool


class _Part(NamedTuple):
    kind: int
    body: bytes
    last: bool


class Nbd:
    """One export of a server; not for use by two threads at a time. Use :func:`connect`.

    Raises (all methods): BlockDeviceError with the server's words, or when it ended.
    """

    def __init__(
        self, sock: socket.socket, export: str, contexts: Sequence[str] = (), what: str = ""
    ) -> None:
        """Agree with a server on a connected socket; it belongs to this object then.

        ``what`` is what error messages call it.
        """
        self._what = what or f"NBD server of {export or 'a disk'}"
        self._sock = sock
        self._export = export
        self._contexts: dict[int, str] = {}
        self._handle = 0
        try:
            #: Bytes of the export.
            self.size = self._negotiate(contexts)
        except BaseException:  # an interrupt too: close the connection and raise it
            sock.close()
            raise

    # data

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the export; at most :data:`LARGEST` at a time."""
        found = bytearray(length)
        self._send(_READ, offset, length)
        for part in self._parts():
            if part.kind == _PART_DATA:
                at = int(struct.unpack_from(">Q", part.body)[0]) - offset
                data = memoryview(part.body)[8:]
                if at < 0 or at + len(data) > length:
                    raise self._error("it sent data that nobody requested")
                found[at : at + len(data)] = data
            elif part.kind == _PART_HOLE:
                continue
        return bytes(found)

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes; at most :data:`LARGEST` at a time."""
        self._send(_WRITE, offset, len(data), data)
        self._finish()

    def zero(self, offset: int, length: int) -> None:
        """Let bytes read as zeros, without taking space where the server can do that."""
        while length > 0:
            part = min(length, _MOST_STATUS)
            self._send(_ZEROES, offset, part)
            self._finish()
            offset, length = offset + part, length - part

    def flush(self) -> None:
        """Returns when everything that was written is durable."""
        self._send(_FLUSH, 0, 0)
        self._finish()

    # extents

    def holes(self) -> Iterator[Extent]:
        """All extents in order; flagged are those that read as zeros."""
        return self._extents(ALLOCATION, _ZERO)

    def dirty(self, bitmap: str) -> Iterator[Extent]:
        """All extents in order; flagged are those that the bitmap has."""
        return self._extents(BITMAP + bitmap, _DIRTY)

    def _extents(self, context: str, bit: int) -> Iterator[Extent]:
        if context not in self._contexts.values():
            raise self._error(f"it does not tell {context}")
        position = 0
        while position < self.size:
            wanted = min(self.size - position, _MOST_STATUS)
            self._send(_STATUS, position, wanted)
            end = position + wanted
            for length, flags in self._read_status(context):
                length = min(length, end - position)
                if length <= 0:
                    break
                yield Extent(position, length, bool(flags & bit))
                position += length

    def _read_status(self, context: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for part in self._parts():
            if part.kind != _PART_STATUS:
                continue
            (number,) = struct.unpack_from(">I", part.body)
            if self._contexts.get(number) == context:
                found = list(struct.iter_unpack(">II", part.body[4:]))
        if not found or found[0][0] == 0:
            raise self._error("it does not tell what is allocated")
        return found

    # the end

    def close(self) -> None:
        """Tell the server that this is the end; idempotent."""
        with contextlib.suppress(OSError, errors.BlockDeviceError):
            self._send(_DISCONNECT, 0, 0)
        self._sock.close()

    def __enter__(self) -> Nbd:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # the wire

    def _negotiate(self, contexts: Sequence[str]) -> int:
        head = self._receive(18)
        if head[:8] != _HELLO or head[8:16] != _OPTION:
            raise self._error("it is not an NBD server of today")
        self._put(struct.pack(">I", 3))
        for _kind, _body in self._option(_OPT_STRUCTURED, b""):
            pass
        name = self._export.encode()
        if contexts:
            words = [word.encode() for word in contexts]
            query = b"".join(struct.pack(">I", len(word)) + word for word in words)
            data = struct.pack(">I", len(name)) + name + struct.pack(">I", len(words)) + query
            for kind, body in self._option(_OPT_SET_META, data):
                if kind == _REP_META:
                    (number,) = struct.unpack_from(">I", body)
                    self._contexts[number] = body[4:].decode()
        size = -1
        for kind, body in self._option(_OPT_GO, struct.pack(">I", len(name)) + name + b"\0\0"):
            if kind == _REP_INFO and body[:2] == b"\0\0":
                (size,) = struct.unpack_from(">Q", body, 2)
        if size < 0:
            raise self._error("it does not tell the size")
        return size

    def _option(self, option: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Ask for an option; kinds and bodies of the answers before the last one."""
        self._put(_OPTION + struct.pack(">II", option, len(data)) + data)
        while True:
            magic, _option, kind, length = struct.unpack(">QIII", self._receive(20))
            if magic != _OPTION_REPLY or length > _MOST_ANSWER:
                raise self._error("its answer cannot be read")
            body = self._receive(length)
            if kind & (1 << 31):
                words = body.decode("utf-8", "replace")
                raise self._error(f"it refused option {option}: {words or hex(kind)}")
            if kind == _REP_ACK:
                return
            yield kind, body

    def _send(self, command: int, offset: int, length: int, data: bytes = b"") -> None:
        self._handle += 1
        head = struct.pack(">IHHQQI", _REQUEST, 0, command, self._handle, offset, length)
        self._put(head + data)

    def _finish(self) -> None:
        for _part in self._parts():
            pass

    def _parts(self) -> Iterator[_Part]:
        """All parts of the answer to the last request, the last one included."""
        while True:
            head = self._receive(_SHORT_HEADER)
            (magic,) = struct.unpack_from(">I", head)
            if magic == _SIMPLE:
                code, handle = struct.unpack_from(">IQ", head, 4)
                self._check(handle, code, "")
                return
            if magic != _STRUCTURED:
                raise self._error("its answer cannot be read")
            flags, kind, handle = struct.unpack_from(">HHQ", head, 4)
            (length,) = struct.unpack(">I", self._receive(4))
            if length > _MOST_ANSWER:
                raise self._error("its answer is too long")
            body = self._receive(length)
            if kind & _PART_ERROR:
                code, size = struct.unpack_from(">IH", body)
                self._check(handle, code or 5, body[6 : 6 + size].decode("utf-8", "replace"))
            self._check(handle, 0, "")
            yield _Part(kind, body, bool(flags & _DONE))
            if flags & _DONE:
                return

    def _check(self, handle: int, code: int, words: str) -> None:
        if handle != self._handle:
            raise self._error("it answered another request")
        if code:
            reason = os.strerror(code)
            raise self._error(f"{words}: {reason}" if words else reason)

    def _put(self, data: bytes) -> None:
        try:
            self._sock.sendall(data)
        except OSError as err:
            raise self._error(f"the connection was lost: {err.strerror or err}") from err

    def _receive(self, length: int) -> bytes:
        found = bytearray(length)
        view = memoryview(found)
        done = 0
        while done < length:
            try:
                count = self._sock.recv_into(view[done:])
            except OSError as err:
                raise self._error(f"the connection was lost: {err.strerror or err}") from err
            if not count:
                raise self._error("it closed the connection")
            done += count
        return bytes(found)

    def _error(self, text: str) -> errors.BlockDeviceError:
        return errors.BlockDeviceError(f"{self._what}: {text}")


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Another name for a socket, for this process and its children: the kernel takes 107 bytes."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/{os.getpid()}/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def listen(path: Path) -> socket.socket:
    """A socket that listens at a path, for a server that gets its descriptor; BlockDeviceError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path) as address:
            sock.bind(address)
        sock.listen(8)
    except OSError as err:
        sock.close()
        raise errors.BlockDeviceError(f"cannot listen at {path}: {err.strerror}") from err
    return sock


def connect(
    path: Path,
    export: str = "",
    contexts: Sequence[str] = (),
    *,
    what: str = "",
    timeout: float = 300.0,
) -> Nbd:
    """One export of the server at a socket; no answer may take longer than ``timeout`` seconds.

    Error messages call it ``what``.

    Raises:
        BlockDeviceError: nobody is there, or it has no such export or context.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        with short_address(path) as address:
            sock.connect(address)
    except OSError as err:
        sock.close()
        raise errors.BlockDeviceError(f"cannot connect to {path}: {err.strerror or err}") from err
    return Nbd(sock, export, contexts, what)
