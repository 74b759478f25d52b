"""Certificates: what is in them, how they are stored, what is said about bad ones."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from ganeti import errors
from ganeti.net import certs, expiry, pem
from ganeti.net.expiry import Expiry

DAY = 86400


def parse(credential: certs.Credential) -> x509.Certificate:
    return x509.load_pem_x509_certificate(credential.cert)


def extension(cert: x509.Certificate, kind: type) -> object:
    return cert.extensions.get_extension_for_class(kind).value


def test_an_authority_signs_itself_and_may_sign_others():
    cert = parse(certs.create_ca("My cluster"))
    assert cert.subject.rfc4514_string() == "CN=My cluster"
    assert cert.issuer == cert.subject
    limits = extension(cert, x509.BasicConstraints)
    assert limits.ca
    assert limits.path_length == 0
    assert extension(cert, x509.KeyUsage).key_cert_sign
    cert.verify_directly_issued_by(cert)


def test_node_certificates_carry_name_addresses_and_issuer(pki):
    cert = parse(certs.issue_server(pki.authority, "n1.example.com", ["192.0.2.1", "2001:db8::1"]))
    names = extension(cert, x509.SubjectAlternativeName)
    assert names.get_values_for_type(x509.DNSName) == ["n1.example.com"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == [
        "192.0.2.1",
        "2001:db8::1",
    ]
    assert cert.subject.rfc4514_string() == "CN=n1.example.com"
    assert not extension(cert, x509.BasicConstraints).ca
    cert.verify_directly_issued_by(parse(pki.authority))


def test_only_server_certificates_may_serve(pki):
    server = parse(certs.issue_server(pki.authority, "n1"))
    client = parse(certs.issue_client(pki.authority, "n1"))
    serving, calling = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    assert list(extension(server, x509.ExtendedKeyUsage)) == [serving, calling]
    assert list(extension(client, x509.ExtendedKeyUsage)) == [calling]


def test_keys_are_elliptic_unless_rsa_is_wanted(pki):
    assert isinstance(
        parse(certs.issue_client(pki.authority, "n1")).public_key(), ec.EllipticCurvePublicKey
    )
    key = parse(certs.self_signed("rapi", key_type=certs.KeyType.RSA)).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.key_size == 2048


def test_serial_numbers_differ(pki):
    made = {parse(certs.issue_client(pki.authority, "n1")).serial_number for _ in range(3)}
    assert len(made) == 3


@pytest.mark.parametrize(("name", "addresses"), [("", []), ("n1", ["no address"]), ("ü", [])])
def test_impossible_names_are_refused(pki, name, addresses):
    with pytest.raises(errors.X509CertError):
        certs.issue_server(pki.authority, name, addresses)


def test_a_file_holds_key_and_certificate_and_is_only_for_its_owner(pki, tmp_path):
    path = tmp_path / "client.pem"
    first = certs.issue_client(pki.authority, "n1")
    certs.write(path, first)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert path.read_bytes() == first.key + first.cert
    certs.write(path, certs.issue_client(pki.authority, "n2"), mode=0o440, gid=os.getgid())
    assert stat.S_IMODE(path.stat().st_mode) == 0o440
    assert certs.inspect(path).subject_cn == "n2"
    assert os.listdir(tmp_path) == ["client.pem"]


def test_a_credential_does_not_show_its_key():
    made = certs.self_signed("rapi")
    assert "PRIVATE" not in repr(made)
    assert pem.digest(made.cert) in repr(made)


def test_an_authority_is_found_among_several(pki, tmp_path):
    mine = certs.create_ca("Mine")
    certs.write_authority(mine, tmp_path / "ca.key", tmp_path / "one.pem")
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o400
    assert stat.S_IMODE((tmp_path / "one.pem").stat().st_mode) == 0o444
    (tmp_path / "ca.pem").write_bytes(pki.authority.cert + mine.cert)
    found = certs.read_authority(tmp_path / "ca.key", tmp_path / "ca.pem")
    assert found == mine
    assert len(pem.split((tmp_path / "ca.pem").read_bytes())) == 2


def test_an_authority_without_its_certificate_is_an_error(pki):
    with pytest.raises(errors.X509CertError) as caught:
        certs.read_authority(pki.path("ca.key"), pki.path("foreign-ca.pem"))
    assert caught.value.args[0] == str(pki.path("foreign-ca.pem"))
    with pytest.raises(errors.X509CertError, match="not a good private key"):
        certs.read_authority(pki.path("ca.pem"), pki.path("ca.pem"))


def test_the_digest_is_the_sha1_fingerprint_with_colons(pki):
    content = pki.path("client.pem").read_bytes()
    expected = x509.load_pem_x509_certificate(content).fingerprint(hashes.SHA1())
    text = pem.digest(content)
    assert bytes.fromhex(text.replace(":", "")) == expected
    assert text == text.upper()
    assert len(text) == 59
    assert pem.digest(content.decode()) == text
    assert pem.digest_of_file(pki.path("client.pem")) == text


def test_inspect_tells_names_validity_and_digest(pki):
    info = certs.inspect(pki.path("client.pem"))
    assert info.subject_cn == "node2.example.com"
    assert info.issuer_cn == "Cluster CA"
    assert info.digest == pki.digest("client.pem")
    assert info.not_before < time.time() < info.not_after
    assert abs(info.not_after - time.time() - 1825 * DAY) < 600


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        (b"", "no certificate in PEM form"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "not a good certificate",
        ),
        (b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "not a good certificate"),
    ],
)
def test_inspect_names_a_bad_file(tmp_path, content, reason):
    path = tmp_path / "bad.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(errors.X509CertError) as caught:
        certs.inspect(path)
    assert caught.value.args[0] == str(path)
    assert reason in caught.value.args[1]


def test_the_digest_of_rubbish_is_an_error():
    with pytest.raises(errors.X509CertError, match="no certificate"):
        pem.digest("rubbish", "server.pem")
    damaged = b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"
    with pytest.raises(errors.X509CertError, match="damaged"):
        pem.digest(damaged)


@pytest.mark.parametrize(
    ("moment", "level", "words"),
    [
        (-1, Expiry.ERROR, "valid only from 1970-01-02"),
        (0, Expiry.OK, "100 days left"),
        (70.5, Expiry.WARNING, "29 days left"),
        (94, Expiry.ERROR, "6 days left"),
        (100, Expiry.ERROR, "expired on 1970-04-12"),
    ],
)
def test_expiry_warns_thirty_days_before_and_alarms_seven_days_before(moment, level, words):
    info = certs.CertInfo("n1", "ca", 1 * DAY, 101 * DAY, "AA")
    found, text = expiry.judge(info, (1 + moment) * DAY)
    assert found is level
    assert words in text


def test_importing_the_module_does_not_load_the_library():
    code = "import sys, ganeti.net.certs; sys.exit('cryptography' in sys.modules)"
    where = Path(certs.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=where, timeout=30, check=False)
    assert done.returncode == 0
