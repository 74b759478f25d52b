"""Users of an LDAP directory, against a real slapd."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ldap_server import BASE, SLAPD, LdapServer, serve

from ganeti import errors
from ganeti.rapi import directory_search
from ganeti.rapi.authenticate import Authenticator
from ganeti.rapi.directory import Directory
from ganeti.rapi.failures import Refused
from ganeti.rapi.login_settings import LdapSettings

pytestmark = pytest.mark.skipif(not SLAPD.exists(), reason="slapd is not installed")
HERE = "192.0.2.1"
GROUPS = {"ops": "@operator"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    with serve(tmp_path_factory.mktemp("ldap")) as made:
        yield made


def by_template(server: LdapServer, **changes: Any) -> LdapSettings:
    values = {
        "url": f"ldaps://localhost:{server.tls}",
        "ca_file": server.authority,
        "user_dn": f"uid={{user}},ou=people,{BASE}",
        "group_base": f"ou=groups,{BASE}",
        "groups": GROUPS,
    }
    return LdapSettings(**{**values, **changes})


def by_search(server: LdapServer, **changes: Any) -> LdapSettings:
    return by_template(
        server,
        **{
            "url": f"ldap://localhost:{server.plain}",
            "user_dn": None,
            "bind_dn": f"cn=ganeti,{BASE}",
            "bind_password": "daemon-pw",
            "user_base": f"ou=people,{BASE}",
            **changes,
        },
    )


WAYS = pytest.mark.parametrize("way", [by_template, by_search])


@WAYS
def test_a_right_password_has_the_rights_of_the_groups(server: LdapServer, way: Any) -> None:
    directory = Directory(lambda: way(server))
    anna = directory.check("anna", b"anna-pw")
    assert anna is not None
    identity = directory.identify(anna)
    assert identity is not None
    assert identity.name == "ldap:anna"
    assert "instance.startup" in identity.permissions
    bob = directory.check("bob", b"bob-pw")
    assert bob is not None
    assert directory.identify(bob) is None


@WAYS
@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("anna", b"bob-pw"),
        ("anna", b""),
        ("anna", b"anna-pw\0x"),
        ("nobody", b"anna-pw"),
        ("*", b"anna-pw"),
        ("anna)(uid=*", b"anna-pw"),
        ("anna,ou=people", b"anna-pw"),
        ("anna+uid=bob", b"bob-pw"),
        ("", b"anna-pw"),
    ],
)
def test_what_proves_nothing_gets_nobody_in(
    server: LdapServer, way: Any, name: str, password: bytes
) -> None:
    assert Directory(lambda: way(server)).check(name, password) is None


def test_a_name_cannot_leave_its_place_in_filters_and_names(server: LdapServer) -> None:
    """Also if the check of names let it through."""
    search = directory_search._Conversation(by_search(server))
    assert search.prove("*", b"anna-pw") is None
    assert search.prove("anna)(|(uid=*", b"anna-pw") is None
    template = directory_search._Conversation(by_template(server))
    assert template._find_dn("a,b+c=d") == f"uid=a\\,b\\+c\\=d,ou=people,{BASE}"
    with pytest.raises(errors.RemoteError):
        directory_search._Conversation(by_search(server, bind_password="wrong")).prove(
            "anna", b"anna-pw"
        )


def test_a_server_with_another_certificate_is_not_asked(server: LdapServer) -> None:
    for settings in (by_template(server, ca_file=None), by_search(server, ca_file=None)):
        with pytest.raises(Refused) as caught:
            Directory(lambda s=settings: s).check("anna", b"anna-pw")
        assert caught.value.status == 503


def test_a_server_that_is_down_or_silent_is_left_alone_for_a_while(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_search, "TIMEOUT", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = LdapSettings(
            url=f"ldap://127.0.0.1:{port}", user_dn="uid={user}", groups={"*": "read"}
        )
        directory = Directory(lambda: settings, clock)
        with pytest.raises(Refused):
            directory.check("anna", b"pw")
    with pytest.raises(Refused, match="does not answer"):
        directory.check("anna", b"pw")


def test_a_right_password_is_remembered_for_a_minute(server: LdapServer, clock: Any) -> None:
    settings = [by_template(server)]
    directory = Directory(lambda: settings[0], clock)
    assert directory.recall("anna", b"anna-pw") is None
    directory.check("anna", b"anna-pw")
    assert directory.recall("anna", b"anna-pw") is not None
    assert directory.recall("anna", b"other") is None
    clock.at += 61
    assert directory.recall("anna", b"anna-pw") is None
    directory.check("anna", b"anna-pw")
    settings[0] = by_search(server)
    assert directory.recall("anna", b"anna-pw") is None


LOGIN = """\
[ldap]
url = "ldaps://localhost:{port}"
ca_file = "{authority}"
user_dn = "uid={{user}},ou=people,{base}"
group_base = "ou=groups,{base}"
[ldap.groups]
ops = "@readonly"
"""


def test_log_in_requests_and_the_throttle(server: LdapServer, tmp_path: Path, clock: Any) -> None:
    text = LOGIN.format(port=server.tls, authority=server.authority, base=BASE)
    (tmp_path / "login.toml").write_text(text)
    (tmp_path / "users").write_text("bob file-pw write\n")
    door = Authenticator(tmp_path, clock=clock)
    back = door.log_in("anna", b"anna-pw", HERE)
    anna = door.identify(back)
    assert anna is not None
    assert (anna.name, anna.permissions) == ("ldap:anna", {"read"})
    assert door("Basic YW5uYTphbm5hLXB3", HERE) == anna
    with pytest.raises(errors.AuthenticationError, match="wrong"):
        door.log_in("bob", b"bob-pw", HERE)  # the users file comes first
    for _ in range(4):
        with pytest.raises(errors.AuthenticationError, match="wrong"):
            door.log_in("anna", b"guess", HERE)
    with pytest.raises(errors.ThrottledError):
        door.log_in("anna", b"guess", HERE)
    assert door("Basic YW5uYTphbm5hLXB3", HERE) == anna
    (tmp_path / "login.toml").write_text(text.replace("ops", "others"))
    door.reload()
    assert door.identify(back) is None


def test_a_user_that_the_server_will_not_bind_is_wrong_and_the_server_works(
    server: LdapServer,
) -> None:
    """Such as a locked account: it must not keep others out."""
    directory = Directory(lambda: by_template(server, user_dn=f"uid={{user}},,{BASE}"))
    assert directory.check("anna", b"anna-pw") is None
    directory = Directory(lambda: by_template(server, user_dn=f"cn={{user}},ou=groups,{BASE}"))
    assert directory.check("ops", b"pw") is None
    assert directory.check("ops", b"pw") is None
