"""Who gets in, and how far: certificates, tokens, passwords, and what must not be read."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arena import WEB1, WEB2, Arena
from local_cluster import REPOSITORY, tool
from waiting import wait_for

from ganeti.net import certs, pem

EVIL = "evil.example.com"


def candidate(arena: Arena, node: str = "node1") -> Path:
    """The certificate with which a node calls others."""
    return arena.cluster.paths(node).client_cert


# node daemons


def test_noded_call_without_a_certificate(arena: Arena) -> None:
    with arena.check_served():
        assert arena.call("version", [], None)[0] in (0, 403)


@pytest.mark.parametrize("name", ["node1.example.com", EVIL])
def test_noded_call_with_a_foreign_certificate(arena: Arena, tmp_path: Path, name: str) -> None:
    """Of another authority, whatever name it has."""
    file = tmp_path / "own.pem"
    certs.write(file, certs.issue_client(certs.create_ca("cluster.example.com"), name))
    with arena.check_served():
        assert arena.call("version", [], file)[0] in (0, 403)


def own_authority(arena: Arena) -> certs.Credential:
    paths = arena.cluster.paths()
    return certs.read_authority(paths.ca_key, paths.ca_cert)


def test_noded_call_with_an_expired_certificate(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when it is on record as that of a master candidate."""
    monkeypatch.setattr(certs, "BACKDATED_SECONDS", 10 * 86400)
    record = arena.cluster.paths("node2").ssconf("master_candidates_certs")
    kept = record.read_text()
    own = pem.digest_of_file(candidate(arena))
    assert own in kept
    statuses = []
    try:
        for days in (1, -1):
            file = tmp_path / f"{days}.pem"
            made = certs.issue_client(own_authority(arena), "node1.example.com", days=days)
            certs.write(file, made)
            record.write_text(kept.replace(own, pem.digest_of_file(file)))
            statuses.append(arena.call("version", [], file, "node2")[0])
    finally:
        record.write_text(kept)
    assert statuses[0] == 200
    assert statuses[1] in (0, 403)


def test_noded_call_with_a_certificate_that_nobody_has_on_record(
    arena: Arena, tmp_path: Path
) -> None:
    """Of the right authority, with the name of the master, and not the one of the master."""
    file = tmp_path / "second.pem"
    certs.write(file, certs.issue_client(own_authority(arena), "node1.example.com"))
    with arena.check_served():
        assert arena.call("version", [], file)[0] in (0, 403)


def test_noded_call_with_a_server_certificate(arena: Arena) -> None:
    with arena.check_served():
        assert arena.call("version", [], arena.cluster.paths("node3").server_cert)[0] in (0, 403)


@contextmanager
def ordinary(arena: Arena, node: str) -> Iterator[None]:
    """A node that is not a master candidate."""
    arena.cluster.ok("cluster modify --candidate-pool-size=2")
    arena.cluster.ok("node modify --master-candidate=no", f"{node}.example.com")
    try:
        yield
    finally:
        arena.cluster.ok("cluster modify --candidate-pool-size=10")
        arena.cluster.ok("node modify --master-candidate=yes", f"{node}.example.com")


def test_noded_call_from_a_node_that_is_no_candidate(arena: Arena) -> None:
    with ordinary(arena, "node3"):
        assert arena.call("version", [], candidate(arena, "node3"), "node2")[0] in (0, 403)
        assert arena.call("version", [], candidate(arena), "node2")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/var/lib/ganeti/../../../etc/evil",
        "/root/.ssh/authorized_keys",
        "etc/evil",
        "/etc/cron.d/evil",
        "/var/lib/ganeti/server.pem\x00.txt",
    ],
)
def test_upload_to(arena: Arena, path: str) -> None:
    """Even a master candidate replaces none but the files of the cluster."""
    local = arena.cluster.paths("node2").local
    asked = local(path) if path.startswith("/") else path
    with arena.check_served():
        status, body = arena.call(
            "upload_file_single",
            [asked, [0, "evil"], 0o644, "root", "root", 1.0, 1.0],
            candidate(arena),
            "node2",
        )
        assert status != 200 or body.startswith(b"[false"), body
    assert not Path(local("/etc/evil")).exists()


@pytest.mark.parametrize("name", ["__class__", "stop", "_call", "version/../x", "%2e%2e/version"])
def test_procedure(arena: Arena, name: str) -> None:
    with arena.check_served():
        assert arena.call(name, [], candidate(arena))[0] in (400, 404)


def test_foreign_server_certificate_at_the_address_of_a_node(arena: Arena) -> None:
    """A node that is not a candidate answers at the address of another: it is not believed."""
    cluster = arena.cluster
    with ordinary(arena, "node3"):
        own, stolen = (cluster.paths(node).server_cert for node in ("node2", "node3"))
        kept = own.read_bytes()
        own.chmod(0o600)
        try:
            own.write_bytes(stolen.read_bytes())
            restart_noded(arena, "node2", may_refuse=True)
            assert cluster.gnt("cluster verify").code != 0, "it went unnoticed"
            assert cluster.cells("node list -o mfree", "node2.example.com") == [["?"]]
            assert cluster.gnt("instance reboot", WEB1).code != 0
        finally:
            own.write_bytes(kept)
            own.chmod(0o400)
            restart_noded(arena, "node2")
    arena.check()


def restart_noded(arena: Arena, node: str, *, may_refuse: bool = False) -> None:
    name = f"{node}.example.com"
    assert tool("kill-node", arena.cluster.directory, name).code == 0
    assert tool("start-node", arena.cluster.directory, name).code == 0 or may_refuse


# the remote API


def test_writes_without_a_password(arena: Arena) -> None:
    with arena.check_served():
        for method, path in (
            ("PUT", f"/2/instances/{WEB1}/shutdown"),
            ("DELETE", f"/2/instances/{WEB1}"),
            ("POST", "/2/nodes/node2.example.com/powercycle"),
            ("PUT", "/2/modify"),
        ):
            assert arena.ask(method, path).status == 401


@pytest.fixture(scope="module")
def tenant(arena: Arena) -> str:
    """A token that may write, for instances with a tag: web1."""
    arena.cluster.ok("instance add-tags", WEB1, "mine")
    return arena.token("--permissions write --tag mine tenant")


def test_limited_token_and_objects_of_others(arena: Arena, tenant: str) -> None:
    for method, path, body in (
        ("GET", f"/2/instances/{WEB2}", None),
        ("GET", f"/2/instances/{WEB2}/info", None),
        ("PUT", f"/2/instances/{WEB2}/startup", None),
        ("PUT", f"/2/instances/{WEB2}/rename", {"new_name": "mine.example.com"}),
        ("PUT", f"/2/instances/{WEB2}/tags?tag=mine", None),
        ("GET", "/2/instances/..%2f..%2fetc", None),
        ("GET", "/2/nodes/node2.example.com", None),
        ("PUT", "/2/tags?tag=x", None),
        ("POST", "/2/instances-multi-alloc", {"instances": []}),
    ):
        got = arena.ask(method, path, tenant, body=body)
        assert got.status in (403, 404), (method, path, got.status, got.body[:200])
    assert arena.ask("GET", f"/2/instances/{WEB1}", tenant).status == 200


def test_limited_token_and_jobs_of_others(arena: Arena, tenant: str) -> None:
    job = arena.rapi.admin("PUT", f"/2/instances/{WEB2}/startup").value
    for method, path in (
        ("GET", f"/2/jobs/{job}"),
        ("GET", f"/2/jobs/{job}/wait"),
        ("DELETE", f"/2/jobs/{job}"),
    ):
        assert arena.ask(method, path, tenant).status in (403, 404)
    assert job not in [item["id"] for item in arena.ask("GET", "/2/jobs", tenant).value]


def test_limited_token_and_events(arena: Arena, tenant: str) -> None:
    assert arena.ask("GET", "/2/events", tenant).status == 403


#: Parameters that reach a path, a device, a program or an argument of a process that is root.
DANGEROUS: dict[str, str] = {
    "kvm_extra": "-netdev tap,script=/tmp/evil",
    "kvm_path": "/tmp/evil",
    "cdrom_image_path": "/etc/shadow",
    "floppy_image_path": "/etc/shadow",
    "kernel_path": "/etc/shadow",
    "initrd_path": "/etc/shadow",
    "mem_path": "/tmp",
    "security_model": "user",
    "usb_devices": "host:1d6b:0002",
}


@pytest.mark.parametrize("name", DANGEROUS)
def test_limited_token_sets(arena: Arena, tenant: str, name: str) -> None:
    values = {"hvparams": {name: DANGEROUS[name]}}
    got = arena.ask("PUT", f"/2/instances/{WEB1}/modify", tenant, body=values)
    assert got.status in (400, 403), (got.status, got.body[:200])
    # A start takes no body; it is refused, or starts with the parameters on record.
    got = arena.ask("PUT", f"/2/instances/{WEB1}/startup", tenant, body=values)
    if got.status == 200:
        [opcode] = arena.ask("GET", f"/2/jobs/{got.value}").value["ops"]
        assert not opcode.get("hvparams"), opcode
    else:
        assert got.status in (400, 403), (got.status, got.body[:200])


def test_revoked_token(arena: Arena) -> None:
    token = arena.token("--permissions read short")
    arena.rapi.gnt("gnt-rapi token revoke short")
    wait_for(lambda: arena.ask("GET", "/2/nodes", token).status == 401, "the token is refused")
    assert arena.ask("GET", "/2/nodes", token[:-1]).status == 401


def test_guessed_passwords(arena: Arena) -> None:
    """One address gets no more than some guesses; others notice nothing."""
    guesser, rapi = arena.rapi.fresh_address(), arena.rapi
    seen = [
        rapi.ask("GET", "/2/info", (rapi.user, f"guess{n}"), source=guesser).status
        for n in range(30)
    ]
    assert seen.count(401) <= 10
    assert seen[-1] == 429
    assert arena.ask("GET", "/2/info", (rapi.user, rapi.password)).status == 200


def test_guesses_of_one_do_not_shut_out_the_token_of_another(arena: Arena) -> None:
    """Both come from the same address, as behind a router."""
    token = arena.token("--permissions read neighbour")
    address, rapi = arena.rapi.fresh_address(), arena.rapi
    for number in range(20):
        rapi.ask("GET", "/2/info", ("nobody", f"guess{number}"), source=address)
    assert rapi.ask("GET", "/2/info", token, source=address).status == 200


def watch_command_lines(secret: bytes, stop: threading.Event, seen: set[bytes]) -> None:
    """Look for a text in the command lines of all processes but the one that was given it."""
    while not stop.is_set():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                if secret in line and b"--os-parameters-secret" not in line:
                    seen.add(line)


def files_with(text: str, *where: Path) -> list[str]:
    found = subprocess.run(
        ["grep", "-rlF", text, *map(str, where)], capture_output=True, text=True, check=False
    )
    return found.stdout.splitlines()


def test_secret_parameters_are_nowhere(arena: Arena) -> None:
    """Not in files, logs, lists of processes or answers; only the script of the system has them."""
    cluster, secret, private = arena.cluster, "Xq7secretXq7", "Xq7privateXq7"
    for node in ("node1", "node2", "node3"):
        system = cluster.root(node) / "usr/share/ganeti/os/sly"
        shutil.copytree(REPOSITORY / "os/noop", system)
        (system / "parameters.list").write_text("token a secret one\nkey a private one\n")
        (system / "create").write_text('#!/bin/sh\ntest -n "$OSP_TOKEN" && test -n "$OSP_KEY"\n')
    seen: set[bytes] = set()
    stop = threading.Event()
    watcher = threading.Thread(target=watch_command_lines, args=(secret.encode(), stop, seen))
    watcher.start()
    try:
        ran = cluster.ok(
            "instance add -n node2 -o sly -t diskless --no-nics"
            f" --os-parameters-secret token={secret} --os-parameters-private key={private}",
            "secret.example.com",
        )
    finally:
        stop.set()
        watcher.join()
    assert secret not in ran.out + ran.err
    assert seen == set()
    assert files_with(secret, cluster.directory) == []
    assert files_with(private, *(cluster.paths(f"node{n}").log for n in (1, 2, 3))) == []
    for path in ("/2/instances?bulk=1", "/2/jobs?bulk=1"):
        assert private.encode() not in arena.rapi.admin("GET", path).body


def test_keys_are_for_their_owner_only(arena: Arena) -> None:
    wrong = []
    for node in ("node1", "node2", "node3"):
        paths = arena.cluster.paths(node)
        for path in (
            paths.ca_key,
            paths.server_cert,
            paths.client_cert,
            paths.config_file,
            paths.rapi_tokens,
            paths.rapi_login,
            paths.rapi_users,
        ):
            if path.exists() and path.stat().st_mode & 0o007:
                wrong.append(str(path))
    assert wrong == []
