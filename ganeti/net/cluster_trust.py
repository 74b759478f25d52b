"""How two clusters that share a domain secret trust each other; pure.

The secret stands in ``cluster-domain-secret`` of both. Values for the other cluster have a
salted HMAC-SHA1 made with it, in lower-case hexadecimal digits. These are the handshake, the name
of a key, the place where a disk is expected, and certificates. A certificate has it in a line
before its PEM text.
Forms and values are those of Ganeti 3.0.2.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ganeti import errors

#: Version of what the clusters say to each other.
VERSION = 0
#: Seconds for which the certificate of one transfer is valid.
VALIDITY = 86400
_GREETING = "Hi, I'm Ganeti"
_HEADER = "X-Ganeti-Signature"
_SIGNED = re.compile(rf"^{_HEADER}: *([!-.0-~]+)/([0-9a-fA-F]+)\s*$", re.MULTILINE)
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\n.*?-----END CERTIFICATE-----\n?", re.DOTALL)
_MAGIC = re.compile(r"[-_.a-zA-Z0-9]{5,100}")
_SALT_BYTES = 8


class DiskPlace(NamedTuple):
    """The place where the other cluster expects one disk."""

    host: str
    port: int
    #: what the sender says first
    magic: str


def make_salt() -> str:
    """A new random salt."""
    return secrets.token_hex(_SALT_BYTES)


def make_magic() -> str:
    """A new word by which the receiver of a disk recognises its sender."""
    return secrets.token_hex(20)


def sign(secret: str, text: str, salt: str) -> str:
    """The salted HMAC of a text."""
    return hmac.new(secret.encode(), (salt + text).encode(), hashlib.sha1).hexdigest()


def _holds(secret: str, text: str, digest: object, salt: object) -> bool:
    if not (isinstance(digest, str) and isinstance(salt, str)):
        return False
    wanted = sign(secret, text, salt)
    return hmac.compare_digest(wanted.encode(), digest.lower().encode("utf-8", "replace"))


def _make_refusal(what: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(
        f"{what} was not signed with the domain secret of this cluster; both clusters need the same"
        " one (gnt-cluster renew-crypto --cluster-domain-secret)"
    )


def _unpack(value: object, size: int, what: str, form: str) -> list[object]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != size:
        raise errors.make_invalid_error(f"{what} must be a list of {form}")
    return list(value)


# handshake -----------------------------------------------------------------------------------


def make_handshake(secret: str) -> tuple[int, str, str]:
    """Version, digest and salt: proof that a cluster has the secret."""
    salt = make_salt()
    return VERSION, sign(secret, _GREETING, salt), salt


def check_handshake(secret: str, value: object) -> None:
    """Refuse a cluster that does not have the secret; OpPrereqError."""
    version, digest, salt = _unpack(value, 3, "the handshake", "version, digest and salt")
    if not _holds(secret, _GREETING, digest, salt):
        raise _make_refusal("the handshake of the other cluster")
    if version != VERSION:
        raise errors.make_invalid_error(
            f"the other cluster speaks version {version!r} of remote imports, this one {VERSION}"
        )


# names of keys -------------------------------------------------------------------------------


def sign_key_name(secret: str, name: str) -> tuple[str, str, str]:
    """Name, digest and salt."""
    salt = make_salt()
    return name, sign(secret, name, salt), salt


def check_key_name(secret: str, value: object) -> str:
    """The name in what :func:`sign_key_name` returned; OpPrereqError."""
    name, digest, salt = _unpack(value, 3, "x509_key_name", "name, digest and salt")
    if not isinstance(name, str) or not _holds(secret, name, digest, salt):
        raise _make_refusal("the name of the key (x509_key_name)")
    return name


# places of disks -----------------------------------------------------------------------------


def _describe(index: int, place: DiskPlace) -> str:
    return f"{index}:{place.host}:{place.port}:{place.magic}"


def sign_place(secret: str, index: int, place: DiskPlace) -> tuple[str, int, str, str, str]:
    """Host, port, magic, digest and salt of the place of a disk."""
    salt = make_salt()
    return *place, sign(secret, _describe(index, place), salt), salt


def check_place(secret: str, index: int, value: object) -> DiskPlace:
    """The place in what :func:`sign_place` returned; OpPrereqError."""
    what = f"the destination of disk {index}"
    host, port, magic, digest, salt = _unpack(value, 5, what, "host, port, magic, digest and salt")
    if not (isinstance(host, str) and type(port) is int and isinstance(magic, str)):
        raise errors.make_invalid_error(f"{what} has no host, port and magic")
    place = DiskPlace(host, port, magic)
    if not _holds(secret, _describe(index, place), digest, salt):
        raise _make_refusal(what)
    if not (0 < port < 65536 and _MAGIC.fullmatch(magic)):
        raise errors.make_invalid_error(f"{what} has a port or a magic that nobody can use")
    return place


# certificates --------------------------------------------------------------------------------


def sign_certificate(secret: str, pem: str) -> str:
    """A certificate (PEM) with its signature in a line before it."""
    salt = make_salt()
    return f"{_HEADER}: {salt}/{sign(secret, pem, salt)}\n\n{pem}"


def check_certificate(secret: str, text: str, normalise: Callable[[bytes], bytes]) -> str:
    """The certificate (PEM) in what :func:`sign_certificate` returned.

    ``normalise`` writes a certificate again: the signature is that of its usual form.

    Raises:
        OpPrereqError: there is no certificate, or it was not signed with the secret.
    """
    header, body = _SIGNED.search(text), _PEM.search(text)
    if header is None or body is None:
        raise errors.make_invalid_error(
            f"the certificate of the other cluster has no line '{_HEADER}', or no PEM text"
        )
    try:
        pem = normalise(body[0].encode()).decode()
    except errors.X509CertError as err:
        raise errors.make_invalid_error(
            f"the certificate of the other cluster cannot be used: {errors.text(err)}"
        ) from err
    if not _holds(secret, pem, header[2], header[1]):
        raise _make_refusal("the certificate of the other cluster")
    return pem
