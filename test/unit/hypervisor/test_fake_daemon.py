"""A real node daemon whose fake hypervisor is scripted from outside while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti.base import jsonio
from ganeti.net import certs, pem
from ganeti.net.http_client import Client
from ganeti.net.tls.contexts import Identity
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

REPOSITORY = Path(__file__).parents[3]
NAME, ADDRESS = "node1.example.com", "127.0.0.1"
_MAIN = "import sys; from ganeti.node.daemon import main; sys.exit(main())"
WEB1 = NodeInstance(
    uuid="99999999-2222-3333-4444-555555555555",
    name="web1.example.com",
    primary_node="node1-uuid",
    hypervisor="fake",
    hvparams={"migration_mode": "live"},
    beparams={"maxmem": 256, "minmem": 128, "vcpus": 2},
)

Call = Callable[..., Any]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node that is part of a cluster, as far as its daemon needs."""
    where = Paths(tmp_path / "root")
    for directory in (where.data, where.run, where.log, where.conf):
        directory.mkdir(parents=True, mode=0o750)
    authority = certs.create_ca("test cluster")
    certs.write_authority(authority, where.ca_key, where.ca_cert)
    certs.write(where.server_cert, certs.issue_server(authority, NAME, [ADDRESS]))
    certs.write(where.client_cert, certs.issue_client(authority, NAME))
    where.hosts.write_text(f"{ADDRESS} {NAME}\n")
    where.ssconf("master_candidates_certs").write_text(
        f"master={pem.digest_of_file(where.client_cert)}\n"
    )
    return where


@pytest.fixture
def call(paths: Paths) -> Iterator[Call]:
    """``call(procedure, argument...)`` -> ``[ok, payload]`` of the daemon."""
    child = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "-f", "-p", "0"],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(REPOSITORY),
            "GANETI_ROOTDIR": str(paths.root),
            "GANETI_HOSTNAME": NAME,
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    client = Client(Identity(paths.client_cert, paths.ca_cert).client_context())
    try:
        assert child.stderr is not None
        seen = ""
        while f" serves {ADDRESS}:" not in seen:
            seen = child.stderr.readline()
            assert seen, "the daemon did not start"
        port = int(seen.partition(f" serves {ADDRESS}:")[2].split()[0].rstrip(".,;"))

        def call(name: str, *arguments: Any) -> Any:
            body = jsonio.dumps_bytes(arguments)
            answer = client.post(ADDRESS, port, f"/{name}", body, 20)
            assert answer.status == 200
            return jsonio.loads(answer.body)

        yield call
    finally:
        client.stop()
        child.terminate()
        child.communicate(timeout=10)


def misbehave(paths: Paths, **rules: Any) -> None:
    """Replace the script in one step, as the driver asks for."""
    fresh = paths.conf / "fresh"
    fresh.write_text(json.dumps(rules))
    fresh.rename(paths.conf / "fake-hypervisor.json")


def test_daemon_follows_the_script(paths: Paths, call: Call) -> None:

    def start(number: int) -> Any:
        ordered = msgspec.structs.replace(WEB1, run_epoch=(1, number))
        return call("instance_start", msgspec.to_builtins(ordered), False, [])

    misbehave(paths, start={WEB1.name: {"fail": "no more memory", "delay": 0.1}})
    begin = time.monotonic()
    ok, error = start(1)
    assert not ok
    assert "no more memory" in str(error)
    assert time.monotonic() - begin >= 0.1
    misbehave(paths)
    assert start(2)[0] is True
    assert call("instance_list", ["fake"], {}) == [True, [WEB1.name]]
    misbehave(paths, info={WEB1.name: {"lie": {"state": 1, "memory": 5}}})
    assert call("instance_info", WEB1.name, "fake", {})[1]["memory"] == 5
    misbehave(paths)
    (paths.fake_hypervisor / WEB1.name).unlink()
    assert call("instance_list", ["fake"], {}) == [True, []]
