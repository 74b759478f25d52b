"""The certificate of the other end of a TLS connection."""

from __future__ import annotations

from dataclasses import dataclass

from OpenSSL import crypto

_COMMON_NAME = "2.5.4.3"
_ALTERNATIVE_NAMES = "2.5.29.17"


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer of a connection: SHA1 of the certificate (``AB:CD:..``) and its common name."""

    digest: str
    common_name: str


def read_peer(certificate: crypto.X509) -> Peer:
    """Read the peer whose certificate it is."""
    subject = certificate.to_cryptography().subject
    names = [part.value for part in subject if part.oid.dotted_string == _COMMON_NAME]
    return Peer(certificate.digest("sha1").decode("ascii"), str(names[0]) if names else "")


def read_names(certificate: crypto.X509) -> list[str]:
    """Names and addresses that it is for."""
    for extension in certificate.to_cryptography().extensions:
        if extension.oid.dotted_string == _ALTERNATIVE_NAMES:
            return [str(name.value) for name in extension.value]
    return []
