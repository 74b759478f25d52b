"""The file that says how etcd is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.net.etcd_settings import Member, read_settings

TLS = "ETCDCTL_CACERT=/etc/ganeti/etcd-ca.pem\n"


def test_three_members_over_tls(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    path.write_text(
        "# etcd of this site\n"
        "ETCDCTL_API=3\n"
        "\n"
        "ETCDCTL_ENDPOINTS='https://192.0.2.1,https://[2001:db8::2]:2000/, https://e3:2379'\n"
        'export ETCDCTL_CACERT="/ca.pem"\n'
        "ETCDCTL_CERT=/cert.pem\n"
        "ETCDCTL_KEY=/key.pem\n"
    )
    found = read_settings(path)
    assert found.members == (
        Member("192.0.2.1", 2379),
        Member("2001:db8::2", 2000),
        Member("e3", 2379),
    )
    assert str(found.members[1]) == "[2001:db8::2]:2000"
    assert found.identity is not None
    assert (found.identity.cert_file, found.identity.ca_file, found.identity.key_file) == (
        Path("/cert.pem"),
        Path("/ca.pem"),
        Path("/key.pem"),
    )


def test_loopback_needs_no_tls(tmp_path: Path) -> None:
    (tmp_path / "etcd").write_text("ETCDCTL_ENDPOINTS=http://127.0.0.1:2379,http://[::1]:2380\n")
    assert read_settings(tmp_path / "etcd").identity is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "ETCDCTL_ENDPOINTS is not set"),
        ("ETCDCTL_ENDPOINTS=\n", "ETCDCTL_ENDPOINTS is not set"),
        ("ETCDCTL_ENDPOINTS=https://a\n", "ETCDCTL_CACERT is not set"),
        ("ETCDCTL_ENDPOINTS=http://192.0.2.1:2379\n", "without TLS only this server itself"),
        ("ETCDCTL_ENDPOINTS=http://127.0.0.1.example.com\n", "without TLS only this server itself"),
        ("ETCDCTL_ENDPOINTS=http://127.0.0.1,https://a\n" + TLS, "mixes http and https"),
        ("ETCDCTL_ENDPOINTS=a:2379\n" + TLS, "is not of the form https://HOST:2379"),
        ("ETCDCTL_ENDPOINTS=https://a/v3\n" + TLS, "is not of the form https://HOST:2379"),
        ("ETCDCTL_ENDPOINTS=https://u:p@a\n" + TLS, "is not of the form https://HOST:2379"),
        ("ETCDCTL_ENDPOINTS=https://a:99999\n" + TLS, "is not a URL"),
        ("ETCDCTL_ENDPOINTS=https://a,\n" + TLS, "is not of the form https://HOST:2379"),
        ("ETCDCTL_ENDPOINTS=https://a\n" + TLS + "ETCDCTL_CERT=/c\n", "or neither"),
        ("ETCDCTL_USER=root:secret\n", "line 1 does not set one of ETCDCTL_ENDPOINTS"),
        ("nonsense\n", "line 1 does not set one of"),
    ],
)
def test_what_cannot_be_used_is_explained(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "etcd"
    path.write_text(text)
    with pytest.raises(errors.ParameterError, match=str(path)) as caught:
        read_settings(path)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(errors.ParameterError, match="is missing: write into it how etcd"):
        read_settings(tmp_path / "etcd")
    (tmp_path / "etcd").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.ParameterError, match="it is not a text"):
        read_settings(tmp_path / "etcd")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.touch(0o644)
    path = tmp_path / "etcd"
    text = f"ETCDCTL_ENDPOINTS=https://a\n{TLS}ETCDCTL_CERT=/c\nETCDCTL_KEY={key}\n"
    path.write_text(text)
    with pytest.raises(errors.ParameterError, match="chmod 600"):
        read_settings(path)
    key.chmod(0o600)
    assert read_settings(path).identity is not None
