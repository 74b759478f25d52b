"""Making and inspecting X.509 certificates; the only module that imports cryptography.

The library is imported inside the functions that need it: it takes some 60 ms. Functions that
need only the text of a file are in ``pem.py``.

A node gets two files. ``server.pem`` may also be used to call other nodes, as a node that is
just being added has nothing else yet; ``client.pem`` can only be used to call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import SYSTEM
from ganeti.net import pem

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

DEFAULT_DAYS = 1825
#: Mode of a file that a group may read, too.
GROUP_MODE = 0o440
#: A new certificate is valid from a little in the past, as clocks of nodes differ.
BACKDATED_SECONDS = 300


class KeyType(StrEnum):
    """Kind of a new private key: elliptic curve P-256 (fast) or RSA with 2048 bits."""

    EC = "ec"
    RSA = "rsa"


@dataclass(frozen=True, slots=True)
class Credential:
    """A private key and its certificate, both PEM."""

    key: bytes
    cert: bytes

    @property
    def pem(self) -> bytes:
        """Key and certificate, as they stand in one file."""
        return self.key + self.cert

    def __repr__(self) -> str:
        return f"Credential({pem.digest(self.cert)})"


@dataclass(frozen=True, slots=True)
class CertInfo:
    """The content of a certificate: names, validity (seconds since 1970), SHA1 digest."""

    subject_cn: str
    issuer_cn: str
    not_before: float
    not_after: float
    digest: str


def create_ca(name: str, *, days: int = DEFAULT_DAYS, key_type: KeyType = KeyType.EC) -> Credential:
    """A new certificate authority that signs its own certificate."""
    key = _make_key(key_type)
    subject = _name(name)
    builder = _builder(subject, subject, key, key, days)
    return _finish(_add_ca_limits(builder), key, key)


def issue_server(
    authority: Credential,
    name: str,
    addresses: Sequence[str] = (),
    *,
    days: int = DEFAULT_DAYS,
    key_type: KeyType = KeyType.EC,
) -> Credential:
    """A certificate for a node to be called with; also good for calling during set-up.

    ``name`` becomes the common name; name and ``addresses`` (IP) the alternative names.
    """
    return _issue(authority, name, addresses, days, key_type, server=True)


def issue_client(
    authority: Credential,
    name: str,
    addresses: Sequence[str] = (),
    *,
    days: int = DEFAULT_DAYS,
    key_type: KeyType = KeyType.EC,
) -> Credential:
    """A certificate for a node to call others with; no server can use it."""
    return _issue(authority, name, addresses, days, key_type, server=False)


def self_signed(
    name: str,
    addresses: Sequence[str] = (),
    *,
    more_names: Sequence[str] = (),
    days: int = DEFAULT_DAYS,
    key_type: KeyType = KeyType.EC,
) -> Credential:
    """A server certificate without an authority (remote API); clients accept it by itself."""
    from cryptography import x509

    key = _make_key(key_type)
    subject = _name(name)
    builder = _builder(subject, subject, key, key, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    return _finish(_add_use(builder, [name, *more_names], addresses, server=True), key, key)


def normalise(content: bytes) -> bytes:
    """The first certificate of a text, in the usual form of PEM; X509CertError."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return _load_cert(content, None).public_bytes(Encoding.PEM)


def write(path: Path, credential: Credential, *, mode: int = 0o400, gid: int = -1) -> None:
    """Write key and certificate into one file, atomically; mode 0400, or 0440 with a group."""
    files.write_atomic(path, credential.pem, mode=mode, gid=gid)


def write_authority(credential: Credential, key_path: Path, cert_path: Path) -> None:
    """Write the key of an authority (mode 0400) and its certificate (mode 0444)."""
    files.write_atomic(key_path, credential.key, mode=0o400)
    files.write_atomic(cert_path, credential.cert, mode=0o444)


def read_authority(key_path: Path, cert_path: Path) -> Credential:
    """Read an authority; of several certificates in the file the one of the key is taken.

    Raises:
        X509CertError: a file cannot be used, or no certificate belongs to the key.
    """
    key = pem.read(key_path)
    public = _encode_public(_load_key(key, key_path))
    for cert in pem.split(pem.read(cert_path)):
        if _encode_public(_load_cert(cert, cert_path)) == public:
            return Credential(key, cert)
    raise errors.X509CertError(str(cert_path), f"holds no certificate of the key in {key_path}")


def inspect(path: Path) -> CertInfo:
    """Read the first certificate of a file.

    Raises:
        X509CertError: the file cannot be read or holds no good certificate.
    """
    return check(pem.read(path), path)


def check(content: bytes, path: Path) -> CertInfo:
    """As :func:`inspect`, for content that is not in a file yet; ``path`` is its name."""
    return _info(_read_first_cert(content, path))


def inspect_pair(path: Path, authorities: bytes | None = None) -> CertInfo:
    """Read a file that holds a private key and its certificate.

    With ``authorities`` (PEM, one or several) one of them must have signed the certificate.

    Raises:
        X509CertError: the file cannot be read, a part is missing or damaged, the two do not
            belong together, or nobody of those has signed it.
    """
    return check_pair(pem.read(path), path, authorities)


def check_pair(content: bytes, path: Path, authorities: bytes | None = None) -> CertInfo:
    """As :func:`inspect_pair`, for content that is not in a file yet; ``path`` is its name."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    cert = _read_first_cert(content, path)
    if _encode_public(_load_key(content, path)) != _encode_public(cert):
        raise errors.X509CertError(str(path), "its key and its certificate do not belong together")
    if authorities is None:
        return _info(cert)
    for authority in pem.split(authorities):
        with contextlib.suppress(ValueError, TypeError, InvalidSignature):
            cert.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
            return _info(cert)
    raise errors.X509CertError(
        str(path), f"was issued by {_common_name(cert.issuer)!r}, not by the cluster's authority"
    )


def _read_first_cert(content: bytes, path: Path) -> x509.Certificate:
    found = pem.split(content)
    if not found:
        raise errors.X509CertError(str(path), "holds no certificate in PEM form")
    return _load_cert(found[0], path)


def _info(cert: x509.Certificate) -> CertInfo:
    from cryptography.hazmat.primitives.serialization import Encoding

    return CertInfo(
        subject_cn=_common_name(cert.subject),
        issuer_cn=_common_name(cert.issuer),
        not_before=cert.not_valid_before_utc.timestamp(),
        not_after=cert.not_valid_after_utc.timestamp(),
        digest=pem.digest(cert.public_bytes(Encoding.PEM)),
    )


def _issue(
    authority: Credential,
    name: str,
    addresses: Sequence[str],
    days: int,
    key_type: KeyType,
    *,
    server: bool,
) -> Credential:
    from cryptography import x509

    signer = _load_key(authority.key, None)
    issuer = _load_cert(authority.cert, None)
    key = _make_key(key_type)
    builder = _builder(_name(name), issuer.subject, key, signer, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    return _finish(_add_use(builder, [name], addresses, server=server), key, signer)


def _make_key(key_type: KeyType) -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if key_type is KeyType.RSA:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as err:
        raise errors.X509CertError("-", f"{common_name!r} cannot be a subject: {err}") from err


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, signer: PrivateKey, days: int
) -> x509.CertificateBuilder:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509

    now = datetime.fromtimestamp(SYSTEM.now(), UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(seconds=BACKDATED_SECONDS))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
        )
    )


def _add_ca_limits(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    from cryptography import x509

    usage = _key_usage(digital_signature=False, key_cert_sign=True, crl_sign=True)
    limits = x509.BasicConstraints(ca=True, path_length=0)
    return builder.add_extension(limits, True).add_extension(usage, True)


def _add_use(
    builder: x509.CertificateBuilder,
    dns: Sequence[str],
    addresses: Sequence[str],
    *,
    server: bool,
) -> x509.CertificateBuilder:
    import ipaddress

    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if server:
        uses.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    try:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    except ValueError as err:
        raise errors.X509CertError("-", f"no certificate for {dns[0]!r}: {err}") from err
    return (
        builder.add_extension(_key_usage(digital_signature=True), True)
        .add_extension(x509.ExtendedKeyUsage(uses), False)
        .add_extension(x509.SubjectAlternativeName(names), False)
    )


def _key_usage(
    *, digital_signature: bool, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _finish(builder: x509.CertificateBuilder, key: PrivateKey, signer: PrivateKey) -> Credential:
    from cryptography.hazmat.primitives import hashes, serialization

    cert = builder.sign(signer, hashes.SHA256())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Credential(key_pem, cert.public_bytes(serialization.Encoding.PEM))


def _load_cert(content: bytes, path: Path | None) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as err:
        raise errors.X509CertError(str(path or "-"), f"is not a good certificate: {err}") from err


def _load_key(content: bytes, path: Path | None) -> PrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as err:
        raise errors.X509CertError(str(path or "-"), f"is not a good private key: {err}") from err
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise errors.X509CertError(str(path or "-"), "is neither an EC nor an RSA key")
    return key


def _encode_public(holder: PrivateKey | x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return holder.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _common_name(name: x509.Name) -> str:
    from cryptography.x509.oid import NameOID

    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""
