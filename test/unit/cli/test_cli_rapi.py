"""gnt-rapi: users and tokens, as an administrator sees them."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from recording_master import Ran, RecordingMaster

from ganeti.cli import program, programs
from ganeti.rapi import tokens, users


@pytest.fixture
def gnt_rapi(master: RecordingMaster, tmp_path: Path, monkeypatch, capsys):
    """Run gnt-rapi with a line of standard input."""
    data = tmp_path / "var/lib/ganeti"
    data.mkdir(parents=True, exist_ok=True)
    (data / "ssconf_master_node").write_text("node1.example.com\n")

    def run(line: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = program.main(programs.RAPI, line.split())
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "var/lib/ganeti/rapi"


def test_a_user_from_first_to_last(gnt_rapi, directory):
    ran = gnt_rapi("user add --permissions @readonly,-query.read anna", "geheim\n")
    assert ran.code == 0, ran.err
    text = (directory / "users").read_text()
    assert "geheim" not in text
    assert (directory / "users").stat().st_mode & 0o777 == 0o640
    known = users.Users(users.parse(text)[0].values())
    assert known.check("anna", b"geheim").permissions == {"read", "-query.read"}
    assert gnt_rapi("user add anna", "x\n").code == 1
    assert gnt_rapi("user passwd anna", "neu\n").code == 0
    known = users.Users(users.parse((directory / "users").read_text())[0].values())
    assert known.check("anna", b"geheim") is None
    assert known.check("anna", b"neu").permissions == {"read", "-query.read"}
    rows = json.loads(gnt_rapi("user list --format json").out)
    assert rows == [
        {"name": "anna", "permissions": ["@readonly", "-query.read"], "password": "bcrypt"}
    ]
    assert gnt_rapi("user remove anna").code == 0
    assert gnt_rapi("user remove anna").code == 1
    assert gnt_rapi("user passwd anna", "x\n").code == 1


@pytest.mark.parametrize(
    ("line", "stdin", "text"),
    [
        ("user add anna", "", "must not be empty"),
        ("user add --permissions wriet anna", "pw\n", "'wriet' is not a permission"),
        ("user add --permissions instance.fly anna", "pw\n", "Unknown permission instance.fly"),
        ("user add a:b", "pw\n", "cannot be a user name"),
        ("token add --permissions instance.fly ci", "", "Unknown permission"),
        ("token add --expires soon ci", "", "soon"),
        ("token revoke ci", "", "no token ci"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(gnt_rapi, directory, line, stdin, text):
    ran = gnt_rapi(line, stdin)
    assert ran.code == 1
    assert text in ran.err
    assert "pw" not in ran.err
    assert not (directory / "users").exists()
    assert not (directory / "tokens").exists() or not list(tokens.read(directory / "tokens"))


@pytest.mark.parametrize(
    ("quota", "text"),
    [
        ("disks=1", "unknown field `disks`"),
        ("memory=much", "'much' is not a size"),
        ("vcpus=-1", ">= 0"),
        ("instances", "--quota"),
    ],
)
def test_a_wrong_quota_makes_no_token(gnt_rapi, directory, quota, text):
    ran = gnt_rapi(f"token add --tag shop --quota {quota} shop")
    assert ran.code == 1
    assert text in ran.err
    assert not (directory / "tokens").exists()


def test_a_token_is_shown_once(gnt_rapi, directory):
    ran = gnt_rapi("token add --permissions read --expires 90d --tag mine ci")
    assert ran.code == 0, ran.err
    text = ran.out.strip()
    known = tokens.read(directory / "tokens")
    identity = known.check(text, time.time() + 89 * 86400)
    assert identity.name == "token:ci"
    assert identity.limits.tag == "mine"
    assert known.check(text, time.time() + 91 * 86400) is None
    listed = gnt_rapi("token list --no-headers --separator=|").out
    assert listed.split("|")[1:5] == ["ci", "read", "-", "mine"]
    assert text not in listed
    ran = gnt_rapi("token revoke ci other")
    assert ran.code == 1
    assert "other" in ran.err
    assert list(tokens.read(directory / "tokens")) == []


def test_only_the_master_node_has_users(gnt_rapi, tmp_path):
    (tmp_path / "var/lib/ganeti/ssconf_master_node").write_text("node2.example.com\n")
    ran = gnt_rapi("user add anna", "pw\n")
    assert ran.code == 11
    assert "node2.example.com" in ran.err
