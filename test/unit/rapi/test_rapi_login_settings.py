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


def test_a_provider_is_a_table() -> None:
    with pytest.raises(errors.ParseError, match="line 2: write"):
        login_settings.parse("# ours\noidc = 7\n")


def test_of_two_tables_the_wrong_one_is_named() -> None:
    second = GOOD.replace("corp", "other").partition("[ldap]")[0]
    text = GOOD.partition("[ldap]")[0].replace('client_id = "ganeti"', "client_id = 7") + second
    with pytest.raises(errors.ParseError, match="line 4: "):
        login_settings.parse(text)


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
        ('"https://id', '"http://id', "line 1: issuer: the URL must"),
        ("oidc/corp/callback", "oidc/other/callback", "line 1: redirect_uri"),
        ("oidc.corp", "oidc.token", "line 1: 'token' cannot"),
        ("ldaps://", "http://", "line 12: url"),
        ("{user}", "anna", "line 12: user_dn needs"),
        ('"*" = "@readonly"', "", "line 12: without group"),
        ('[ldap.groups]\n"*"', "[ldap.groups]\nops", "line 12: without group_base"),
        ("user_dn =", 'user_base = "x"\nuser_dn =', "line 12: one of"),
        ('user_dn = "', 'user_filter = "(uid=x)"\nuser_dn = "', "line 12: user_filter needs"),
        ("[ldap.groups]", 'bind_dn = "cn=x"\n[ldap.groups]', "line 12: bind_dn and"),
        ("[ldap.groups]", 'bind_password = "s3cr3t"\n[ldap.groups]', "line 12: bind_dn and"),
        ('admins = "@admin"\n"the ops" = "@operator,-instance.console"', "", "line 1: without"),
        ('client_id = "ganeti"', 'client_id = ""', "line 4: "),
        ('client_id = "ganeti"', f'client_id = "{"x" * 1001}"', "line 4: "),
        ('title = "Corp"', 'scopes = ["profile"]', "line 1: scopes must have openid"),
        ('"ldaps://ldap.example.com"', '"ldaps://ldap.example.com/dc=x"', "line 12: url"),
        ('"ldaps://ldap.example.com"', '"ldaps://ldap.example.com:x"', "line 12: url"),
        ("[ldap]", "[ldaps]", "line 12: unknown 'ldaps'"),
        ('client_id = "ganeti"', "", "line 1: .*client_id"),
        ('"@admin"', "7", "line 8: "),
        ("oidc.corp", "oidc.Corp", "line 1: 'Corp' cannot"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, said: str) -> None:
    with pytest.raises(errors.ParseError, match=said) as caught:
        login_settings.parse(GOOD.replace(old, new))
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "anna", "anna@example.com", "a.b-c+d", "Ünal", "x" * 128])
def test_names_of_users(name: str) -> None:
    assert login_settings.check_user(name) == name


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\n", "a/b", "*", "x" * 129, None, 7])
def test_what_is_not_a_name_of_a_user(name: object) -> None:
    assert login_settings.check_user(name) is None
