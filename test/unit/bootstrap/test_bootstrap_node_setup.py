"""Preparing a node: what is refused before anything is touched, and starting daemons by name."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti import constants, errors
from ganeti.base import jsonio, services
from ganeti.base.clock import SYSTEM
from ganeti.bootstrap import init, node_setup
from ganeti.bootstrap.settings import InitSettings
from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.storage import file_paths

REPOSITORY = Path(__file__).parents[3]
NAME = "node2.example.com"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", NAME)
    made = Paths(tmp_path)
    made.conf.parent.mkdir()
    made.hosts.write_text(f"127.0.0.12 {NAME}\n")
    return made


def request(**changes: Any) -> dict[str, Any]:
    authority = certs.create_ca("cluster.example.com")
    pem = {
        "server_pem": certs.issue_server(authority, NAME, ["192.0.2.2"]),
        "client_pem": certs.issue_client(authority, NAME),
    }
    return {
        "cluster_name": "cluster.example.com",
        "node_name": NAME,
        "ca_pem": authority.cert.decode(),
        **{key: (made.key + made.cert).decode() for key, made in pem.items()},
        "ssconf": {"cluster_name": "cluster.example.com", "master_node": "node1", "uid_pool": ""},
        "start": False,
        **changes,
    }


def run(value: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    data = value if isinstance(value, bytes) else jsonio.dumps_bytes(value)
    stdin = io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(sys, "stdin", stdin)
    return node_setup.main([])


def content(paths: Paths) -> list[str]:
    """Files below the root."""
    found = (path for path in paths.root.rglob("*") if path.is_file() and path != paths.hosts)
    return sorted(str(path.relative_to(paths.root)) for path in found)


def test_a_new_node_allows_the_directories_of_the_cluster_once(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"cluster_name": "cluster.example.com", "file_storage_dir": "/srv/disks"}
    assert run(request(ssconf=facts), monkeypatch) == 0
    assert file_paths.load_allowed(paths) == (Path("/srv/disks"),)
    paths.file_storage_paths.write_text("# nothing\n")
    assert run(request(ssconf=facts), monkeypatch) == 0
    assert file_paths.load_allowed(paths) == ()


def test_a_prepared_node_has_its_certificates_and_facts(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(request(), monkeypatch) == 0
    assert certs.inspect(paths.server_cert)
    modes = {
        path: path.stat().st_mode & 0o777
        for path in (
            paths.server_cert,
            paths.client_cert,
            paths.ca_cert,
            paths.ssconf("cluster_name"),
        )
    }
    assert list(modes.values()) == [0o400, 0o400, 0o444, 0o444]
    assert paths.ssconf("cluster_name").read_text() == "cluster.example.com\n"
    assert paths.ssconf("uid_pool").read_text() == ""
    assert not paths.config_file.exists()
    assert not paths.ca_key.exists()


def test_it_can_be_repeated_by_the_same_cluster(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(request(), monkeypatch) == 0
    first = content(paths)
    assert run(request(), monkeypatch) == 0
    assert content(paths) == first


def test_a_node_of_another_cluster_is_not_taken_without_force(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(request(), monkeypatch) == 0
    before = paths.server_cert.read_bytes()
    other = request(cluster_name="other", ssconf={"cluster_name": "other"})
    assert run(other, monkeypatch) == 1
    assert "belongs to the cluster cluster.example.com (--force-join" in capsys.readouterr().err
    assert paths.server_cert.read_bytes() == before
    assert run({**other, "force_join": True}, monkeypatch) == 0
    assert paths.ssconf("cluster_name").read_text() == "other\n"


def test_a_node_that_is_called_otherwise_is_refused(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(request(node_name="node3.example.com"), monkeypatch) == 1
    assert capsys.readouterr().err == (
        f"ganeti-node-setup: this server is called {NAME}, but the cluster wants to add"
        " node3.example.com\n"
    )
    assert content(paths) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "invalid JSON at line 1"),
        (b"\xff", "not UTF-8"),
        ([], "is not a set-up request"),
        ({}, "is not a set-up request"),
        ({**request(), "surprise": 1}, "surprise"),
        ({**request(), "ssconf": {"x": 1}}, "ssconf"),
    ],
)
def test_rubbish_is_refused_and_no_secret_is_shown(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    value: Any,
    words: str,
) -> None:
    assert run(value, monkeypatch) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("ganeti-node-setup: ")
    assert words in shown
    assert "PRIVATE" not in shown
    assert len(shown.splitlines()) == 1
    assert content(paths) == []


@pytest.mark.parametrize(
    ("apart", "words"),
    [(600, "the clock of the master is 10 minutes ahead"), (-7200, "is 2 hours behind: set the")],
)
def test_a_clock_far_from_that_of_the_master_is_refused(
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    apart: float,
    words: str,
) -> None:
    assert run(request(now=SYSTEM.now() + apart), monkeypatch) == 1
    shown = capsys.readouterr().err
    assert words in shown
    assert len(shown.splitlines()) == 1
    assert content(paths) == []
    assert run(request(now=SYSTEM.now() + 20), monkeypatch) == 0


def test_a_port_that_another_program_holds_is_refused(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.12", 0)) as server:
        port = server.getsockname()[1]
        paths.services.write_text(f"ganeti-noded {port}/tcp\n")
        assert run(request(), monkeypatch) == 1
    assert f"(pid {os.getpid()}): end it" in capsys.readouterr().err
    assert not paths.server_cert.exists()


def test_what_instances_would_miss_does_not_keep_a_node_from_joining(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = {"templates": ["drbd"], "bridges": ["no-such"], "hypervisors": {"fake": {}}}
    assert run(request(needs=needs), monkeypatch) == 0
    drbd, bridge = capsys.readouterr().out.splitlines()
    assert drbd.startswith("the DRBD module is not loaded on this node: ")
    assert bridge.startswith("bridge no-such is missing: ip link add name no-such")
    assert paths.server_cert.exists()


# a first cluster


def test_a_node_of_a_cluster_does_not_begin_another(paths: Paths) -> None:
    init._check_new(paths)
    init.make_directories(paths)
    paths.server_cert.write_text("x")
    with pytest.raises(errors.OpPrereqError, match="was prepared for a cluster"):
        init._check_new(paths)
    paths.config_file.write_text("{}")
    with pytest.raises(errors.OpPrereqError, match="belongs to a cluster already") as caught:
        init._check_new(paths)
    assert caught.value.args[1] == errors.ErrorCode.STATE


def test_removing_the_cluster_leaves_what_is_not_its_own(paths: Paths) -> None:
    init.make_directories(paths)
    for path in (paths.config_file, paths.client_cert, paths.ssconf("node_list")):
        path.write_text("x")
    paths.file_storage.mkdir(parents=True)
    disk = paths.file_storage / "disk"
    disk.write_text("precious")
    init.remove_files(paths)
    init.remove_files(paths)
    assert content(paths) == [str(disk.relative_to(paths.root))]


def test_a_name_without_address_is_refused(paths: Paths) -> None:
    with pytest.raises(errors.OpPrereqError, match=r"called no\.\.such\.\.name, which has no"):
        init.init_cluster(InitSettings(cluster_name="no..such..name"))
    paths.hosts.write_text("")
    with pytest.raises(errors.OpPrereqError, match=f"called {NAME}, which has no address: put"):
        init.init_cluster(InitSettings(cluster_name="no..such..name"))
    assert content(paths) == []


# daemons


@pytest.mark.parametrize("name", [constants.NODED, constants.MASTERD])
def test_the_command_line_of_a_daemon_runs_that_daemon(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        services.ALL[name].argv(Paths(tmp_path), "--help"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {name} ")


def test_a_daemon_that_cannot_start_says_why(paths: Paths) -> None:
    with pytest.raises(errors.OpExecError, match="this node is not part of a cluster"):
        services.start(constants.NODED, paths)


def test_stopping_what_does_not_run_is_no_error(paths: Paths) -> None:
    assert services.stop(constants.NODED, paths) is False
    init.make_directories(paths)
    paths.pid_file(constants.NODED).write_text(f"{os.getpid()}\n")
    assert services.stop(constants.NODED, paths) is False
