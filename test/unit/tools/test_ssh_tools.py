"""ssh-update and prepare-node-join: the files of SSH on a node, as requests ask."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.tools import prepare_node_join, ssh_update

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB7 root@node1"
OTHER = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAB root@node2"
MINE = "# people\nno-pty ssh-rsa AAAAMINE== admin@home\n"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    made = Paths(tmp_path)
    made.data.mkdir(parents=True)
    ssh = made.under("/root/.ssh")
    ssh.mkdir(parents=True)
    (ssh / "authorized_keys").write_text(MINE)
    return made


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(tool: Any, request: Any, *words: str) -> int:
        text = request if isinstance(request, str) else json.dumps(request)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return int(tool.main(list(words)))

    return run


def authorized(paths: Paths) -> str:
    return paths.under("/root/.ssh/authorized_keys").read_text()


def test_who_may_log_in_is_added_once_and_removed_and_people_stay(paths: Paths, ask: Any) -> None:
    request = {"cluster_name": "c", "authorized_keys": ["add", {ONE: [KEY]}]}
    for _ in range(2):
        assert ask(ssh_update, request) == 0
        assert authorized(paths) == f"{MINE}{KEY}\n"
    # The same key with another comment is the same key.
    shown = KEY.replace("root@node1", "somebody")
    request = {"cluster_name": "c", "authorized_keys": ["remove", {ONE: [shown]}]}
    assert ask(ssh_update, request) == 0
    assert authorized(paths) == MINE
    assert paths.under("/root/.ssh/authorized_keys").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("action", "given", "left"),
    [
        ("add", {ONE: [OTHER]}, f"{ONE} {KEY}\n{ONE} {OTHER}\n"),
        ("replace_or_add", {ONE: [OTHER]}, f"{ONE} {OTHER}\n"),
        ("replace_or_add", {TWO: [OTHER]}, f"{ONE} {KEY}\n{TWO} {OTHER}\n"),
        ("remove", {ONE: []}, ""),
        ("override", {TWO: [OTHER]}, f"{TWO} {OTHER}\n"),
        ("clear", {}, ""),
    ],
)
def test_keys_of_nodes(paths: Paths, ask: Any, action: str, given: Any, left: str) -> None:
    file = paths.data / "ganeti_pub_keys"
    file.write_text(f"{ONE} {KEY}\n")
    request = {"cluster_name": "c", "public_keys": [action, given]}
    assert ask(ssh_update, request, "--dry-run") == 0
    assert file.read_text() == f"{ONE} {KEY}\n"
    assert ask(ssh_update, request) == 0
    assert file.read_text() == left


def test_new_keys_of_root(paths: Paths, ask: Any) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen on this machine: install openssh-client")
    request = {"cluster_name": "c", "generate": ["ecdsa", 256, "_master_tmp"]}
    for _ in range(2):
        assert ask(ssh_update, request) == 0
    ssh = paths.under("/root/.ssh")
    assert (ssh / "id_ecdsa_master_tmp").stat().st_mode & 0o777 == 0o600
    assert (ssh / "id_ecdsa_master_tmp.pub").read_text().startswith("ecdsa-sha2-nistp256 ")


def test_a_server_gets_the_keys_of_a_cluster(paths: Paths, ask: Any) -> None:
    request = {
        "cluster_name": "c",
        "ssh_host_key": [["ecdsa", PRIVATE, OTHER]],
        "ssh_root_key": [["ed25519", PRIVATE, KEY]],
        "authorized_keys": [OTHER],
    }
    assert ask(prepare_node_join, request, "--dry-run") == 0
    assert not paths.under("/etc/ssh").exists()
    assert ask(prepare_node_join, request) == 0
    private = paths.under("/etc/ssh/ssh_host_ecdsa_key")
    assert (private.read_text(), private.stat().st_mode & 0o777) == (PRIVATE, 0o600)
    assert paths.under("/etc/ssh/ssh_host_ecdsa_key.pub").read_text() == f"{OTHER}\n"
    assert paths.under("/root/.ssh/id_ed25519").read_text() == PRIVATE
    assert authorized(paths) == f"{MINE}{OTHER}\n{KEY}\n"


def test_requests_of_another_cluster_are_refused(
    paths: Paths, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = Paths(paths.root / "elsewhere")
    elsewhere.data.mkdir(parents=True)
    for place in (paths, elsewhere):
        certs.write_authority(certs.create_ca("c"), place.ca_key, place.ca_cert)
    text = elsewhere.ca_cert.read_text()
    request = {"cluster_name": "c", "authorized_keys": ["add", {ONE: [KEY]}]}
    assert ask(ssh_update, {**request, "node_daemon_certificate": paths.ca_cert.read_text()}) == 0
    other = {**request, "node_daemon_certificate": text}
    assert ask(ssh_update, other) == 1
    assert "node-cleanup" in capsys.readouterr().err
    paths.ssconf("cluster_name").write_text("mine.example.com\n")
    assert ask(prepare_node_join, {"cluster_name": "c"}) == 1
    assert "belongs to cluster mine.example.com, not to c" in capsys.readouterr().err


@pytest.mark.parametrize("tool", [ssh_update, prepare_node_join])
@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("{", "is not JSON"),
        ({}, "cluster_name"),
        ({"cluster_name": 3}, "cluster_name"),
        ({"cluster_name": "c", "colour": 1}, "colour"),
        ({"cluster_name": "c", "node_daemon_certificate": "x"}, "no certificate"),
    ],
)
def test_requests_that_are_none(
    paths: Paths, ask: Any, capsys: pytest.CaptureFixture[str], tool: Any, request_: Any, text: str
) -> None:
    assert ask(tool, request_) == 1
    assert text in capsys.readouterr().err
    assert authorized(paths) == MINE


@pytest.mark.parametrize(
    ("tool", "change", "text"),
    [
        (ssh_update, {"authorized_keys": ["add", {ONE: ["ssh-rsa A\nB"]}]}, "not a public key"),
        (ssh_update, {"authorized_keys": ["add", {ONE: ['command="x" ' + KEY]}]}, "not a public"),
        (ssh_update, {"authorized_keys": ["clear", {}]}, "cannot be changed by 'clear'"),
        (ssh_update, {"authorized_keys": ["steal", {}]}, "steal"),
        (ssh_update, {"generate": ["rsa", 2048, "/../x"]}, "end of a file name"),
        (ssh_update, {"generate": ["x509", 2048, ""]}, "not a type of key"),
        (prepare_node_join, {"ssh_root_key": [["../x", PRIVATE, KEY]]}, "not a type of key"),
        (prepare_node_join, {"ssh_root_key": [["rsa", "x", KEY]]}, "not in PEM form"),
        (prepare_node_join, {"ssh_host_key": [["rsa", PRIVATE, "x"]]}, "not a public key"),
    ],
)
def test_values_that_would_do_harm(
    paths: Paths, ask: Any, capsys: pytest.CaptureFixture[str], tool: Any, change: Any, text: str
) -> None:
    assert ask(tool, {"cluster_name": "c", **change}) == 1
    assert text in capsys.readouterr().err
    assert authorized(paths) == MINE
