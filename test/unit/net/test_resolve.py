"""Names and ports: the cluster's own files first, then the system."""

from __future__ import annotations

import os
import socket

import pytest

from ganeti import errors, paths
from ganeti.net import resolve

HOSTS = """\
# the cluster
127.0.1.1   node1.example.com node1   # master
127.0.1.2\tnode2.example.com Node2
::1         node6.example.com
2001:db8::7 both.example.com
127.0.1.7   both.example.com
rubbish     node9.example.com
127.0.1.8
127.0.1.1   late-alias
"""

SERVICES = """\
ganeti-noded    2811/tcp   noded   # ours
ganeti-noded    2812/tcp
ganeti-rapi     2080/udp
broken
worse           x/tcp
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.ROOTDIR_VARIABLE, str(tmp_path))
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "hosts").write_text(HOSTS)
    (etc / "services").write_text(SERVICES)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("node1.example.com", "127.0.1.1"),
        ("node1", "127.0.1.1"),
        ("NODE2", "127.0.1.2"),
        ("node6.example.com", "::1"),
        ("both.example.com", "127.0.1.7"),
        ("late-alias", "127.0.1.1"),
        ("192.0.2.5", "192.0.2.5"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_the_hosts_file_of_the_cluster_gives_addresses(root, name, expected):
    assert resolve.address(name) == expected


def test_the_system_is_asked_when_the_file_does_not_know(root):
    assert resolve.address("localhost") == "127.0.0.1"
    (root / "etc" / "hosts").unlink()
    assert resolve.address("localhost") == "127.0.0.1"


def test_the_file_is_read_anew_after_a_change(root):
    hosts = root / "etc" / "hosts"
    assert resolve.address("node1") == "127.0.1.1"
    hosts.write_text("127.0.3.3 node1 and-more-of-them\n")
    assert resolve.address("node1") == "127.0.3.3"
    replacement = root / "new"
    replacement.write_text("127.0.4.4 node1 and-more-of-them\n")
    os.utime(replacement, ns=(1, 1))
    replacement.rename(hosts)
    assert resolve.address("node1") == "127.0.4.4"


@pytest.mark.parametrize("name", ["a..b", "x" * 70 + ".example.com", "node9.example.com\0"])
def test_an_unknown_name_is_an_error_with_name_code_and_text(root, name):
    with pytest.raises(errors.ResolverError) as caught:
        resolve.address(name)
    assert caught.value.args[0] == name
    assert isinstance(caught.value.args[1], int)
    assert isinstance(caught.value.args[2], str)


def test_names_of_addresses(root):
    assert resolve.reverse("127.0.1.1") == "node1.example.com"
    assert resolve.reverse("0:0:0:0:0:0:0:1") == "node6.example.com"
    assert resolve.reverse("127.9.9.9") is None
    assert resolve.reverse("node1") is None


def test_ports_come_from_the_services_file_then_from_the_defaults(root):
    assert resolve.port("ganeti-noded") == 2811
    assert resolve.port("noded") == 2811
    assert resolve.port("ganeti-rapi") == 5080


def test_without_a_root_the_defaults_count(monkeypatch):
    monkeypatch.delenv(paths.ROOTDIR_VARIABLE, raising=False)
    assert resolve.port("ganeti-noded") == 1811
    assert resolve.address("localhost") == "127.0.0.1"


def test_an_unknown_service_is_an_error(root):
    with pytest.raises(errors.ResolverError) as caught:
        resolve.port("worse")
    assert caught.value.args == ("worse", socket.EAI_SERVICE, "has no known port")


def test_what_is_an_address():
    assert resolve.is_address("127.0.0.1")
    assert resolve.is_address("::1")
    assert not resolve.is_address("127.0.0")
    assert not resolve.is_address("localhost")
