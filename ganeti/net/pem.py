"""Certificates in PEM files: their parts and digests, without a cryptographic library."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path

from ganeti import errors

_PEM_CERT = re.compile(rb"-----BEGIN CERTIFICATE-----\s+(.*?)-----END CERTIFICATE-----", re.DOTALL)


def split(pem: bytes) -> list[bytes]:
    """The certificates in a PEM text, each as PEM, in their order."""
    return [match.group(0) + b"\n" for match in _PEM_CERT.finditer(pem)]


def digest(pem: bytes | str, source: str = "-") -> str:
    """SHA1 of the first certificate in a PEM text, as ``AB:CD:..``.

    Raises:
        X509CertError: there is no certificate in it; ``source`` names the file in the error.
    """
    match = _PEM_CERT.search(pem.encode("ascii") if isinstance(pem, str) else pem)
    if match is None:
        raise errors.X509CertError(source, "holds no certificate in PEM form")
    try:
        der = base64.b64decode(b"".join(match.group(1).split()), validate=True)
    except binascii.Error as err:
        raise errors.X509CertError(source, f"is damaged: {err}") from err
    return hashlib.sha1(der, usedforsecurity=False).digest().hex(":").upper()


def digest_of_file(path: Path) -> str:
    """SHA1 of the first certificate in a file.

    Raises:
        X509CertError: the file cannot be read or holds none.
    """
    return digest(read(path), str(path))


def read(path: Path) -> bytes:
    """The content of a file; X509CertError when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as err:
        raise errors.X509CertError(str(path), f"cannot be read: {err.strerror}") from err
