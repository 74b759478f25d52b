"""users-setup and node-cleanup: what makes a server ready, and what it forgets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import constants
from ganeti.doctor import users
from ganeti.paths import Paths
from ganeti.tools import node_cleanup, users_setup


def test_users_and_groups_that_are_missing() -> None:
    assert [words[0] for words in users.commands(set(), {})] == [
        *["groupadd"] * (1 + len(users.USERS)),
        *["useradd", "usermod"] * len(users.USERS),
    ]
    groups = {name: set() for name in users.USERS}
    have = {**groups, constants.DAEMONS_GROUP: set(users.USERS)}
    assert list(users.commands(set(users.USERS), have)) == []
    assert list(users.commands(set(users.USERS), {**groups, constants.DAEMONS_GROUP: set()})) == [
        ["usermod", "--append", "--groups", constants.DAEMONS_GROUP, user] for user in users.USERS
    ]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for the tools that change users; what they were told."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setattr(users, "USERS", {"gnt-test-only": "test"})
    directory = Paths(tmp_path).under("/usr/local/sbin")
    directory.mkdir(parents=True)
    log = tmp_path / "log"
    log.touch()
    for name in ("groupadd", "useradd", "usermod"):
        (directory / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{log}\n')
        (directory / name).chmod(0o755)
    return log


def test_users_are_created_when_that_is_confirmed(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert users_setup.main([]) == 1
    said = capsys.readouterr()
    assert "useradd --system --gid gnt-test-only" in said.out
    assert "--yes-do-it" in said.err
    assert tools.read_text() == ""
    assert users_setup.main(["--yes-do-it"]) == 0
    assert [line.split()[-1] for line in tools.read_text().splitlines()][-2:] == [
        "gnt-test-only"
    ] * 2
    (tools.parent / "usr/local/sbin/useradd").write_text("#!/bin/sh\necho no room >&2; exit 1\n")
    assert users_setup.main(["--yes-do-it"]) == 1
    assert "exit code 1: no room" in capsys.readouterr().err


# leaving -----------------------------------------------------------------------------------------


@pytest.fixture
def member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """The master of a cluster, with all that such a node can have."""
    cluster = OneProcess(tmp_path / "cluster", count=2)
    cluster.close()
    where = cluster.paths["node1"]
    monkeypatch.setenv("GANETI_ROOTDIR", str(where.root))
    for path in (
        where.domain_secret,
        where.hmac_key,
        where.rapi_cert,
        where.rapi_users,
        where.rapi_tokens,
        where.rapi_login,
        where.spice_cert,
        where.queue / "job-7",
        where.queue / "archive" / "0" / "job-3",
        where.history / "1",
        where.previous_crypto / "1" / "client.pem",
        where.data / "config.data.backup",
        where.watcher_certificates,
        where.run / "crypto" / "x509" / "key",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a SECRET of this cluster")
    where.file_storage.mkdir(parents=True, exist_ok=True)
    (where.file_storage / "disk").write_text("data")
    return where


def secrets(where: Paths) -> list[Path]:
    found = [path for root in (where.data, where.run) for path in root.rglob("*") if path.is_file()]
    return [path for path in found if b"SECRET" in path.read_bytes() or b"KEY" in path.read_bytes()]


def test_a_server_that_has_left_keeps_no_secret(
    member: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(member.data.rglob("*"))
    assert secrets(member)
    assert node_cleanup.main([]) == 1
    said = capsys.readouterr().err
    assert "files of cluster c.example.com would be removed; --yes-do-it" in said
    assert sorted(member.data.rglob("*")) == before
    assert node_cleanup.main(["--yes-do-it", "--no-backup"]) == 0
    assert secrets(member) == []
    assert not list(member.data.glob("ssconf_*"))
    assert (member.file_storage / "disk").read_text() == "data"
    assert node_cleanup.main(["--yes-do-it"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Removed 0 files"


def test_a_file_that_cannot_be_removed_is_named(
    member: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    member.hmac_key.unlink()
    member.hmac_key.mkdir()
    assert node_cleanup.main(["--yes-do-it"]) == 1
    assert f"cannot remove {member.hmac_key}" in capsys.readouterr().err
    shutil.rmtree(member.hmac_key)
    assert node_cleanup.main(["--yes-do-it"]) == 0
