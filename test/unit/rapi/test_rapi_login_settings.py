"""The file login.toml: what is refused names its line and shows no secret."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.rapi import login_settings

GOOD = """\
[oidc.corp]
title = "Corp"
issuer = "https://id.example.com/realms/corp"
client_id = "ganeti"
client_secret = "s3cr3t"
redirect_uri = "https://cluster.example.com:5080/2/oidc/corp/callback"

[oidc.corp.groups]
admins = "@admin"
"the ops" = "@operator,-instance.console"

[ldap]
url = "ldaps://ldap.example.com"
user_dn = "uid={user},ou=people,dc=example,dc=com"

[ldap.groups]
"*" = "@readonly"
"""


def test_a_good_file_is_read() -> None:
    found = login_settings.parse(GOOD)
    anna = found.oidc["corp"].identify("corp", "anna", ["admins", "x"])
    assert anna is not None
    assert (anna.name, anna.permissions) == ("corp:anna", {"write"})
    assert found.oidc["corp"].identify("corp", "anna", ["x"]) is None
    assert found.ldap is not None
    assert found.ldap.identify("ldap", "bob", []) is not None
    assert "s3cr3t" not in repr(found)
    assert login_settings.parse("") == login_settings.Settings()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"s3cr3t"', '"s3cr3t', "line 5: not TOML"),
        ('client_id = "ganeti"', "client_id = 7", "line 4: "),
        ('title = "Corp"', 'titel = "Corp"', "line 1: .*titel"),
        ('"@admin"', '"@amdin"', "line 9: '@amdin' is not a permission .*@admin"),
        ('"https://id', '"http://id', "line 1: issuer: it must be a URL"),
        ("oidc/corp/callback", "oidc/other/callback", "line 1: redirect_uri"),
        ("oidc.corp", "oidc.token", "line 1: 'token' cannot"),
        ("ldaps://", "http://", "line 12: url"),
        ("{user}", "anna", "line 12: user_dn needs"),
        ('"*" = "@readonly"', "", "line 12: without group"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, said: str) -> None:
    with pytest.raises(errors.ParseError, match=said) as caught:
        login_settings.parse(GOOD.replace(old, new))
    assert "s3cr3t" not in str(caught.value)
