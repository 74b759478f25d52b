"""Restricted commands: what a node runs for its master, and what it refuses."""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path

import pytest
from local_node import LocalNode
from needs import needs_root

from ganeti import errors
from ganeti.base import files
from ganeti.node import restricted
from ganeti.paths import Paths

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(autouse=True)
def directory(paths: Paths) -> Path:
    """The directory of commands, in which ``status`` is allowed."""
    paths.restricted_commands.mkdir(parents=True)
    command(paths.restricted_commands / "status", "echo fine; echo also >&2")
    allow(paths, f"status {ME}\n")
    return paths.restricted_commands


def command(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def allow(paths: Paths, text: str) -> None:
    paths.restricted_allow.write_text(text)


def check_refused(node: LocalNode, name: str, why: str) -> None:
    with pytest.raises(errors.GanetiError, match=why):
        node.restricted_command(name)


def test_an_allowed_command_runs(node: LocalNode) -> None:
    assert node.restricted_command("status") == "fine\nalso\n"


def test_it_is_off_without_a_list(node: LocalNode, paths: Paths) -> None:
    paths.restricted_allow.unlink()
    check_refused(node, "status", "are off on this node: .*restricted-commands.allow is missing")


def test_only_listed_names_run(node: LocalNode, paths: Paths, directory: Path) -> None:
    command(directory / "other", "echo other")
    check_refused(node, "other", "other is not allowed")
    allow(paths, f"# other {ME}\nstatus # other\n")
    check_refused(node, "other", "other is not allowed")
    allow(paths, "status root more\n")
    check_refused(node, "status", "line 1: write NAME or NAME USER")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../status", "sub/status", "/bin/true", "status ", "a b", "a\nb", "ä", "a\0",
     "-" * 81, "status;id"],
)  # fmt: skip
def test_names_that_are_no_names(node: LocalNode, paths: Paths, name: str) -> None:
    allow(paths, f"{name} {ME}\n")
    check_refused(node, name, "cannot be the name of a restricted command")


def test_what_is_listed_and_missing(node: LocalNode, directory: Path) -> None:
    (directory / "status").unlink()
    check_refused(node, "status", "status does not exist")


def test_what_is_no_program(node: LocalNode, directory: Path) -> None:
    (directory / "status").chmod(0o644)
    check_refused(node, "status", "status cannot be executed")
    (directory / "status").unlink()
    (directory / "status").mkdir()
    check_refused(node, "status", "status is not a regular file")


@pytest.mark.parametrize("place", ["file", "directory", "above", "list"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_nobody_else_may_write_anything(
    node: LocalNode, paths: Paths, directory: Path, place: str, mode: int
) -> None:
    where = {
        "file": directory / "status",
        "directory": directory,
        "above": paths.conf,
        "list": paths.restricted_allow,
    }[place]
    where.chmod(where.stat().st_mode | mode)
    check_refused(node, "status", "can be written by others than its owner")


@needs_root("to give files to another user")
@pytest.mark.parametrize("place", ["file", "directory", "list"])
def test_everything_belongs_to_root(
    node: LocalNode, paths: Paths, directory: Path, place: str
) -> None:
    where = {"file": directory / "status", "directory": directory, "list": paths.restricted_allow}
    os.chown(where[place], pwd.getpwnam("nobody").pw_uid, -1)
    check_refused(node, "status", "belongs to the user with the uid")


def test_links_are_as_safe_as_what_they_lead_through(
    node: LocalNode, directory: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = command(elsewhere / "status", "echo linked")
    (directory / "status").unlink()
    (directory / "status").symlink_to(target)
    assert node.restricted_command("status") == "linked\n"
    elsewhere.chmod(0o777)
    check_refused(node, "status", "elsewhere can be written by others")
    (directory / "status").unlink()
    (directory / "status").symlink_to("status")
    check_refused(node, "status", "status")


def test_a_failure_says_how_it_ended(node: LocalNode, directory: Path) -> None:
    command(directory / "status", "echo no such disk >&2; exit 3")
    check_refused(node, "status", "exit code 3: no such disk")


def test_long_output_is_cut(node: LocalNode, directory: Path) -> None:
    command(directory / "status", "head -c 1000000 /dev/zero | tr '\\0' x")
    found = node.restricted_command("status")
    assert found == "x" * 65_536 + f"\n[{1_000_000 - 65_536} bytes left out]\n"


def test_one_at_a_time(node: LocalNode, paths: Paths) -> None:
    files.ensure_dir(paths.locks)
    with files.FileLock(paths.restricted_lock).hold():
        check_refused(node, "status", "another restricted command runs")
    assert node.restricted_command("status")


def test_unknown_users(node: LocalNode, paths: Paths) -> None:
    allow(paths, "status no-such-user\n")
    check_refused(node, "status", "user no-such-user, whom this node does not have")


def test_a_daemon_that_is_not_root_becomes_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    other = pwd.getpwnam("nobody")
    monkeypatch.setattr(os, "geteuid", lambda: other.pw_uid)
    for wanted in ("", "nobody"):
        assert restricted._user("status", wanted).pw_uid == other.pw_uid
    with pytest.raises(errors.CommandError, match="run as user root, which needs a node daemon"):
        restricted._user("status", "root")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert restricted._user("status", "").pw_name == "nobody"
    assert restricted._user("status", "root").pw_uid == 0


def test_it_gets_nothing_of_ours(
    node: LocalNode, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    command(directory / "status", 'pwd; echo "$#"; cat; env')
    lines = node.restricted_command("status").splitlines()
    assert lines[:2] == ["/", "0"]
    assert {line.partition("=")[0] for line in lines[2:]} <= {"PATH", "LC_ALL", "PWD"}


def test_without_a_user_it_runs_as_nobody(node: LocalNode, paths: Paths, directory: Path) -> None:
    allow(paths, "status\n")
    command(directory / "status", "id -un")
    found = ""
    # The directories of this test may be closed to others than root.
    with contextlib.suppress(errors.CommandError):
        found = node.restricted_command("status")
    assert found in ("", "nobody\n" if os.geteuid() == 0 else f"{ME}\n")
