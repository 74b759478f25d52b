"""Checksums of all chunks of a disk at one time: what tells whether a chunk has changed.

A table has one digest of 16 bytes for each 64 KiB; zeros stand for a chunk of zeros. With the table
of the last backup the next one finds what differs without reading the last one, and a restored disk
is proven to be right. As a file it is compressed. Pure.
"""

from __future__ import annotations

import hashlib
import zlib

from ganeti import errors

#: Bytes of a chunk, also the granularity of dirty bitmaps.
CHUNK = 64 * 1024
_DIGEST = 16
_NOTHING = bytes(_DIGEST)
_ZEROS = bytes(CHUNK)


def digest(data: bytes) -> bytes:
    """The digest of a chunk; the last one of a disk may be shorter."""
    if data == _ZEROS[: len(data)]:
        return _NOTHING
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


class Sums:
    """The table of one disk."""

    def __init__(self, size: int, table: bytes = b"") -> None:
        """``size`` in bytes; what a given table does not reach is zeros."""
        self.size = size
        length = -(-size // CHUNK) * _DIGEST
        self._table = bytearray(table[:length].ljust(length, b"\0"))

    def get(self, chunk: int) -> bytes:
        """The digest of a chunk by its number."""
        return bytes(self._table[chunk * _DIGEST : (chunk + 1) * _DIGEST])

    def set(self, chunk: int, value: bytes) -> None:
        self._table[chunk * _DIGEST : (chunk + 1) * _DIGEST] = value

    def is_zero(self, chunk: int) -> bool:
        """Whether a chunk is all zeros."""
        return self.get(chunk) == _NOTHING

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self._table) // _DIGEST

    def resize(self, size: int) -> Sums:
        """A copy for a disk of another size; new bytes are zeros, a cut chunk is not known.

        The last chunk, when it grows, has another digest; it must be read again.
        """
        return Sums(size, bytes(self._table))

    @property
    def fingerprint(self) -> str:
        """One checksum of the whole disk."""
        return hashlib.sha256(bytes(self._table)).hexdigest()

    def pack(self) -> bytes:
        """As the content of a file."""
        return zlib.compress(bytes(self._table), 1)


def unpack(data: bytes, size: int, fingerprint: str) -> Sums:
    """The table of a file, which must be the one with this fingerprint.

    Raises:
        GenericError: it is damaged.
    """
    try:
        table = zlib.decompress(data)
    except zlib.error as err:
        raise errors.GenericError(f"the checksums are damaged: {err}") from err
    found = Sums(size, table)
    if found.fingerprint != fingerprint or len(table) != found.chunks * _DIGEST:
        raise errors.GenericError("the checksums are not those of this backup")
    return found
