"""The client of etcd against a real member (Debian's package ``etcd-server``), over TLS."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from etcd_server import EtcdServers
from waiting import wait_for

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.net.etcd import Etcd, Item, LeaseGoneError
from ganeti.net.etcd_settings import Member, read_settings

A, B = "/test/a", "/test/b"


def make_deadline() -> Deadline:
    return Deadline(30.0)


@pytest.fixture
def etcd(etcd_servers: EtcdServers) -> Iterator[Etcd]:
    with Etcd(read_settings(etcd_servers.settings)) as client:
        yield client


def test_a_value_is_set_once_under_the_same_condition(etcd: Etcd) -> None:
    assert etcd.change({A: Item()}, {A: "one", B: "1"}, make_deadline(), reads=[A]) == (True, {})
    done, seen = etcd.change({A: Item()}, {A: "two"}, make_deadline(), reads=[A, "/test/none"])
    assert not done
    assert seen[A].value == "one"
    assert seen["/test/none"] == Item()
    assert etcd.change({A: Item("other")}, {A: "two"}, make_deadline())[0] is False
    assert etcd.change({A: Item("one"), B: Item("1")}, {A: "two"}, make_deadline())[0] is True
    assert etcd.change({A: seen[A]}, {A: "three"}, make_deadline())[0] is False
    found = etcd.read([A, B], make_deadline())
    assert (found[A].value, found[B].value) == ("two", "1")
    assert etcd.change({A: found[A]}, {A: "Ümlaut"}, make_deadline())[0] is True
    assert etcd.read([A], make_deadline())[A].value == "Ümlaut"


def test_a_key_ends_with_its_lease(etcd: Etcd) -> None:
    lease, seconds = etcd.grant(60, make_deadline())
    assert seconds >= 60
    assert etcd.change({}, {"/test/l": "x"}, make_deadline(), lease={"/test/l": lease})[0] is True
    assert etcd.read(["/test/l"], make_deadline())["/test/l"].lease == lease
    etcd.revoke(lease, make_deadline())
    etcd.revoke(lease, make_deadline())
    assert etcd.read(["/test/l"], make_deadline())["/test/l"] == Item()
    with pytest.raises(LeaseGoneError):
        etcd.change({}, {"/test/l": "x"}, make_deadline(), lease={"/test/l": lease})


def test_a_lease_that_nobody_renews_ends_after_its_time(etcd: Etcd) -> None:
    begin = time.monotonic()
    lease, seconds = etcd.grant(2, make_deadline())
    etcd.change({}, {"/test/e": "x"}, make_deadline(), lease={"/test/e": lease})
    wait_for(
        lambda: etcd.read(["/test/e"], make_deadline())["/test/e"] == Item(), "the key stays", 30
    )
    assert time.monotonic() - begin >= seconds


def test_a_key_that_moved_to_another_lease_outlives_the_first(etcd: Etcd) -> None:
    first, second = etcd.grant(60, make_deadline())[0], etcd.grant(60, make_deadline())[0]
    etcd.change({}, {"/test/m": "x"}, make_deadline(), lease={"/test/m": first})
    etcd.change(
        {"/test/m": Item("x")}, {"/test/m": "x"}, make_deadline(), lease={"/test/m": second}
    )
    etcd.revoke(first, make_deadline())
    assert etcd.read(["/test/m"], make_deadline())["/test/m"].lease == second


def test_etcdctl_uses_the_same_settings(etcd_servers: EtcdServers, etcd: Etcd) -> None:
    if shutil.which("etcdctl") is None:
        pytest.skip("needs etcdctl (Debian's package etcd-client)")
    etcd.change({}, {"/test/ctl": "seen"}, make_deadline())
    script = "set -a; . $0; exec etcdctl get --print-value-only /test/ctl"
    done = subprocess.run(
        ["sh", "-c", script, str(etcd_servers.settings)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "seen"


def test_a_member_says_how_it_is(etcd: Etcd) -> None:
    (health,) = etcd.examine(10.0)
    assert health.problem == ""
    assert health.version.count(".") == 2
    assert health.has_leader
    assert health.alarms == ()
    assert health.clock_ahead == 0.0


def test_a_client_without_a_certificate_is_refused(etcd_servers: EtcdServers) -> None:
    settings = read_settings(etcd_servers.settings)
    assert settings.identity is not None
    bare = replace(settings, identity=replace(settings.identity, cert_file=None, key_file=None))
    with Etcd(bare) as client, pytest.raises(errors.RemoteError):
        client.read([A], make_deadline())


def test_members_that_hang_or_are_gone_leave_time_for_one_that_answers(
    etcd_servers: EtcdServers,
) -> None:
    settings = read_settings(etcd_servers.settings)
    with socket.create_server(("127.0.0.1", 0)) as mute, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        bad = [Member("127.0.0.1", int(item.getsockname()[1])) for item in (mute, closed)]
        mixed = replace(settings, members=(*bad, *settings.members))
        with Etcd(mixed) as client:
            begin = time.monotonic()
            client.change({}, {A: "x"}, Deadline(12.0))
            assert 1.9 <= time.monotonic() - begin < 6.0
            begin = time.monotonic()
            client.change({}, {A: "y"}, Deadline(12.0))
            assert time.monotonic() - begin < 1.9, "the one that answered is asked first"


def test_an_etcd_that_is_frozen_is_given_up_in_time(etcd_servers: EtcdServers, etcd: Etcd) -> None:
    etcd_servers.members[0].signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        with pytest.raises(errors.RemoteError, match="no member of etcd answers"):
            etcd.read([A], Deadline(1.0))
        assert time.monotonic() - begin < 3.0
    finally:
        etcd_servers.members[0].signal(signal.SIGCONT)


def test_settings_name_a_certificate_that_is_missing(
    etcd_servers: EtcdServers, tmp_path: Path
) -> None:
    text = etcd_servers.settings.read_text().replace("client.pem", "gone.pem")
    (tmp_path / "settings").write_text(text)
    with pytest.raises(errors.X509CertError, match="cannot be read"):
        Etcd(read_settings(tmp_path / "settings"))
