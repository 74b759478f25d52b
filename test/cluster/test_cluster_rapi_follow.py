"""Events, waits and the client of the package, against the daemon of a real cluster."""

from __future__ import annotations

import contextlib
import inspect
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster
from rapi_daemon import RapiDaemon, basic, descriptors, threads
from waiting import wait_for

from ganeti.rapi import client_jobs
from ganeti.rapi.client import (
    CertificateError,
    EventsLost,
    GanetiApiError,
    GanetiRapiClient,
    GenericCurlConfig,
)


@pytest.fixture(scope="module")
def rapi(cluster: Cluster) -> RapiDaemon:
    assert cluster.add("web1.example.com").code == 0
    return RapiDaemon(cluster)


@pytest.fixture
def client(rapi: RapiDaemon) -> Iterator[GanetiRapiClient]:
    with rapi.client() as made:
        yield made


class Reader(threading.Thread):
    """Collects events until it is told to stop."""

    def __init__(self, rapi: RapiDaemon, until: Any, **more: Any) -> None:
        super().__init__(daemon=True)
        self.events: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.ready = threading.Event()
        self._rapi, self._until, self._more = rapi, until, more
        self.start()
        assert self.ready.wait(10)

    def run(self) -> None:
        with self._rapi.client() as client:
            try:
                for event in client.Events(**self._more):
                    self.ready.set()
                    self.events.append(event)
                    if self._until(event):
                        return
            except GanetiApiError as err:
                self.error = err
                self.ready.set()

    def result(self) -> list[dict[str, Any]]:
        self.join(20)
        assert not self.is_alive(), self.events[-3:]
        assert self.error is None
        return self.events


def is_end(event: dict[str, Any]) -> bool:
    return event["kind"] == "job" and event["data"].get("status") in ("success", "error")


# events


def test_a_hundred_readers_see_the_same_in_order(
    rapi: RapiDaemon, client: GanetiRapiClient
) -> None:
    before = threads(rapi.pid())
    readers = [Reader(rapi, is_end, kinds=["job"]) for _ in range(100)]
    assert threads(rapi.pid()) <= before + 2
    began = time.monotonic()
    assert client.GetInfo()["name"]
    assert time.monotonic() - began < 2
    job = client.AddClusterTags(["seen"])
    first = readers[0].result()
    assert [e["kind"] for e in first[:1]] == ["start"]
    statuses = [e["data"]["status"] for e in first if e.get("change") == "status"]
    assert statuses == ["queued", "waiting", "running", "success"]
    assert {e["object"] for e in first[1:]} == {str(job)}
    numbers = [int(e["id"].rpartition("-")[2]) for e in first]
    assert numbers == sorted(numbers)
    for reader in readers[1:]:
        assert reader.result()[1:] == first[1:]
    wait_for(lambda: descriptors(rapi.pid()) < 60, "connections are closed")


def test_a_reader_comes_back_and_has_missed_nothing(
    rapi: RapiDaemon, client: GanetiRapiClient
) -> None:
    reader = Reader(rapi, lambda e: e["kind"] == "job", kinds=["job"])
    client.AddClusterTags(["one"])
    known = reader.result()[-1]["id"]
    jobs = [client.AddClusterTags([f"t{number}"]) for number in range(5)]
    assert client.Wait(jobs[-1])["status"] == "success"
    late = Reader(
        rapi, lambda e: e.get("object") == str(jobs[-1]) and is_end(e), kinds=["job"], after=known
    )
    found = late.result()
    first = int(known.rpartition("-")[2])
    assert [int(e["id"].rpartition("-")[2]) for e in found[1:]] != []
    assert min(int(e["id"].rpartition("-")[2]) for e in found[1:]) > first
    done = [e["object"] for e in found if is_end(e)]
    assert done[-5:] == [str(job) for job in jobs]
    assert len({e["id"] for e in found[1:]}) == len(found) - 1


def test_a_revoked_token_reads_no_further(rapi: RapiDaemon, client: GanetiRapiClient) -> None:
    token = rapi.gnt("gnt-rapi token add --permissions read watcher").out.strip()
    wait_for(lambda: "tokens: 1 tokens" in rapi.log(), "the token is known")
    stays = Reader(rapi, is_end, kinds=["job"])
    with rapi.client(token=token) as revoked:
        events = revoked.Events(kinds=["instance"])
        assert next(events)["kind"] == "start"
        rapi.gnt("gnt-rapi token revoke watcher")
        with pytest.raises(GanetiApiError) as refused:
            for _event in events:
                pass
        assert refused.value.code == 401
    assert is_end(stays.result()[-1])


def test_changes_of_instances_and_nodes_are_told(
    rapi: RapiDaemon, client: GanetiRapiClient
) -> None:
    down = Reader(
        rapi,
        lambda e: e.get("data", {}).get("admin_state") == "down",
        kinds=["instance"],
        objects=["web1.example.com"],
    )
    drained = Reader(rapi, lambda e: e.get("data", {}).get("drained"), kinds=["node"])
    client.WaitForJobCompletion(client.ShutdownInstance("web1.example.com"))
    assert "admin_state" in down.result()[-1]["data"]["keys"]
    client.WaitForJobCompletion(client.SetNodeRole("node3.example.com", "drained", force=True))
    assert drained.result()[-1]["object"] == "node3.example.com"
    client.WaitForJobCompletion(client.SetNodeRole("node3.example.com", "regular"))


def test_a_reader_that_does_not_read_disturbs_nobody(
    rapi: RapiDaemon, client: GanetiRapiClient
) -> None:
    """Its connection is full after a while; what the others get comes in time."""
    lazy = rapi.dial()
    lazy.sendall(
        f"GET /2/events HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {basic(rapi.user, rapi.password)}\r\n\r\n".encode()
    )
    reader = Reader(rapi, is_end, kinds=["job"])
    began = time.monotonic()
    client.AddClusterTags(["quick"])
    reader.result()
    assert time.monotonic() - began < 5
    lazy.close()


def test_events_of_another_run_are_lost(rapi: RapiDaemon, client: GanetiRapiClient) -> None:
    with pytest.raises(EventsLost):
        for _event in client.Events(after="00000000-1"):
            pass
    reader = Reader(rapi, lambda e: False)
    rapi.cluster.kill_master()
    assert rapi.cluster.start_master().code == 0
    reader.join(20)
    assert isinstance(reader.error, EventsLost)
    again = Reader(rapi, is_end, kinds=["job"])
    client.AddClusterTags(["after"])
    again.result()


# waits

#: Seconds; an answer that comes only because the time of the client is over comes later.
ANSWER_LIMIT = 20.0
assert ANSWER_LIMIT < client_jobs._LONGEST_WAIT / 2


def test_many_clients_wait_for_a_job_and_hold_nothing(
    rapi: RapiDaemon, client: GanetiRapiClient
) -> None:
    """More than the daemon has workers; the answer comes when the job ends, not at a time-out."""
    held = rapi.cluster.gnt("debug delay --submit", "4")
    job = int(held.err.split()[-1] if "JobID" in held.err else held.out.split()[-1])
    got: list[str] = []

    def wait() -> None:
        with rapi.client() as mine:
            got.append(mine.Wait(job)["status"])

    before = descriptors(rapi.pid())
    waiters = [threading.Thread(target=wait, daemon=True) for _ in range(60)]
    for waiter in waiters:
        waiter.start()
    wait_for(lambda: descriptors(rapi.pid()) >= before + 60, "all clients are connected")
    # Others are served while they wait.
    assert client.GetVersion() == 2
    assert client.Wait(job, timeout=0)["status"] in ("queued", "waiting", "running")
    end = time.monotonic() + ANSWER_LIMIT
    for waiter in waiters:
        waiter.join(max(0.0, end - time.monotonic()))
    assert got == ["success"] * 60


def test_the_published_form_of_the_wait(client: GanetiRapiClient) -> None:
    job = client.AddClusterTags(["again"])
    info = client.WaitForJobChange(job, ["status"], None, None)
    assert info is not None
    while info["job_info"] != ["success"]:
        info = client.WaitForJobChange(job, ["status"], info["job_info"], None)
        assert info is not None
    with pytest.raises(GanetiApiError) as unknown:
        client.WaitForJobChange(999999, ["status"], None, None)
    assert unknown.value.code == 404


# the client

OWN = {"Events", "Wait", "close"}


def test_every_method_of_the_client(rapi: RapiDaemon, client: GanetiRapiClient) -> None:
    """Each is called once with what it needs, on objects that are there or on none."""
    web, node, name = "web1.example.com", "node3.example.com", "nosuch.example.com"
    rule = client.AddFilter(5, [["jobid", [">", "id", 10**9]]], "CONTINUE")
    disk = client.GetDisks()[0]
    arguments: dict[str, tuple[Any, ...]] = {
        "CreateDisk": ("file", 8, [node]),
        "GetDisk": (disk,),
        "GetDiskTags": (disk,),
        "GrowDisk": (name, 4),
        "Query": ("node", ["name"]),
        "QueryFields": ("node",),
        "EvacuateNode": (name,),
        "SetNodeRole": (node, "regular"),
        "GetNodeStorageUnits": (node, "file", ["name"]),
        "ModifyNodeStorageUnits": (name, "lvm-pv", "x", True),
        "RepairNodeStorageUnits": (name, "lvm-vg", "x"),
        "CreateNetwork": ("net1", "192.0.2.0/24"),
        "GetNetwork": ("net1",),
        "ConnectNetwork": ("net1", "default", "bridged", "br0"),
        "DisconnectNetwork": ("net1", "default"),
        "RenameNetwork": ("net1", "net2"),
        "CreateGroup": ("g1",),
        "GetGroup": ("default",),
        "RenameGroup": ("nosuch", "g2"),
        "AssignGroupNodes": ("default", [node]),
        "GetFilter": (rule,),
        "AddFilter": (1, [], "CONTINUE"),
        "ReplaceFilter": (rule, 1, [], "CONTINUE"),
        "DeleteFilter": (rule,),
        "InstanceAllocation": ("create", name, "file", [], []),
        "InstancesMultiAlloc": ([],),
        "CreateInstance": ("create", "a.example.com", "diskless", [], []),
        "GrowInstanceDisk": (name, 0, 1),
        "PrepareExport": (name, "local"),
        "ExportInstance": (name, "local", node),
        "RenameInstance": (name, "b.example.com"),
        "GetInstance": (web,),
        "GetInstanceInfo": (web, True),
        "GetInstanceTags": (web,),
        "GetNode": (node,),
        "GetNodeRole": (node,),
        "GetNodeTags": (node,),
        "GetGroupTags": ("default",),
        "GetJobStatus": (1,),
        "WaitForJobCompletion": (1,),
        "WaitForJobChange": (1, ["status"], None, None),
        "CancelJob": (1,),
        "GetInstanceConsole": (web,),
        "GetNetworkTags": ("net1",),
    }
    order = ("CreateNetwork", *sorted(public() - {"CreateNetwork", "DeleteFilter"}), "DeleteFilter")
    failed = {}
    for method in order:
        function = getattr(client, method)
        given = arguments.get(method)
        if given is None:
            given = _guess(function, name)
        try:
            result = function(*given)
        except GanetiApiError as err:
            failed[method] = (err.code, str(err))
            continue
        if method == "CreateNetwork":
            assert client.Wait(result)["status"] == "success"
    # An instance that is stopped has no console; opcodes without operation are refused.
    missing = {"GetNetwork", "GetNetworkTags"} if "CreateNetwork" in failed else set()
    unexpected = {
        method: problem
        for method, problem in failed.items()
        if problem[0] not in (501, 503) and method not in missing | {"InstancesMultiAlloc"}
    }
    assert unexpected == {}
    assert len(order) >= 80


def public() -> set[str]:
    return {
        method
        for method, _function in inspect.getmembers(GanetiRapiClient, callable)
        if not method.startswith("_")
    } - OWN


def _guess(function: Any, name: str) -> tuple[Any, ...]:
    """Arguments without a default: names, and lists of tags."""
    needed = [
        param.name
        for param in inspect.signature(function).parameters.values()
        if param.default is param.empty and param.kind is param.POSITIONAL_OR_KEYWORD
    ]
    return tuple(["tag"] if word == "tags" else name for word in needed)


def test_errors_of_the_client(rapi: RapiDaemon) -> None:
    with rapi.client(username="nobody", password="x") as client:
        with pytest.raises(GanetiApiError) as wrong:
            client.GetInfo()
        assert wrong.value.code == 401
    with rapi.client() as client, pytest.raises(GanetiApiError) as missing:
        client.GetInstance("nosuch")
    assert missing.value.code == 404
    other = rapi.paths.ca_cert
    with (
        GanetiRapiClient(rapi.host, rapi.port, ca_file=other) as client,
        pytest.raises(CertificateError),
    ):
        client.GetVersion()
    trusting = GenericCurlConfig(cafile=rapi.env["RAPI_CA"], verify_hostname=True, timeout=5)
    with GanetiRapiClient(rapi.host, rapi.port, curl_config_fn=trusting) as client:
        assert client.GetVersion() == 2


# the wire


def test_tls_is_at_least_1_2_with_forward_secrecy(rapi: RapiDaemon) -> None:
    with rapi.dial() as modern:
        assert modern.version() == "TLSv1.3"
    with rapi.dial(maximum_version=ssl.TLSVersion.TLSv1_2) as older:
        assert older.version() == "TLSv1.2"
        assert older.cipher()[0].startswith("ECDHE")
    context = rapi.tls()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA:AES256-GCM-SHA384:AES128-GCM-SHA256:@SECLEVEL=0")
    for refused in (context, _old_tls(rapi)):
        with (
            socket.create_connection((rapi.host, rapi.port), 5) as raw,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            refused.wrap_socket(raw, server_hostname=rapi.host)
    # Clients without SNI, and by the other name of the certificate.
    plain = rapi.tls(check_hostname=False)
    with socket.create_connection((rapi.host, rapi.port), 5) as raw:
        plain.wrap_socket(raw).close()
    with socket.create_connection((rapi.host, rapi.port), 5) as raw:
        rapi.tls().wrap_socket(raw, server_hostname="cluster.example.com").close()


def _old_tls(rapi: RapiDaemon) -> ssl.SSLContext:
    context = rapi.tls()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


def test_another_certificate_is_used_without_a_restart(rapi: RapiDaemon) -> None:
    from ganeti.net import certs

    path = rapi.paths.rapi_cert
    old = path.read_bytes()
    with rapi.client() as kept:
        assert kept.GetVersion() == 2
        path.chmod(0o600)
        path.write_bytes(b"-----BEGIN nonsense")
        wait_for(lambda: "certificate stays the old one" in rapi.log(), "the error is told")
        rapi.dial().close()
        over = certs.self_signed("cluster.example.com", [rapi.host], days=0)
        certs.write(path, over)
        wait_for(lambda: "expired on" in rapi.log(), "the log tells of the end")
        new = ssl.create_default_context(cadata=over.cert.decode())
        with (
            socket.create_connection((rapi.host, rapi.port), 5) as raw,
            pytest.raises(ssl.SSLCertVerificationError, match="expired"),
        ):
            new.wrap_socket(raw, server_hostname=rapi.host)
        # What is connected continues.
        assert kept.GetVersion() == 2
    path.unlink()
    path.write_bytes(old)
    path.chmod(0o440)
    wait_for(lambda: rapi.log().count("certificate read again") >= 2, "the old one is back")
    rapi.dial().close()


def test_bombs_get_the_right_status(rapi: RapiDaemon) -> None:
    def status(request: bytes) -> bytes:
        with rapi.dial() as sock:
            sock.settimeout(10)
            with contextlib.suppress(ConnectionError):
                sock.sendall(request)
            return sock.recv(12)[9:]

    head = b"POST /2/instances HTTP/1.1\r\nHost: x\r\n"
    assert status(head + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100_000) == b"413"
    assert status(head + b"Content-Length: 10485761\r\n\r\n") == b"413"
    assert status(head + b"A: " + b"x" * 100_000 + b"\r\n\r\n") == b"431"
    assert status(head + b"".join(b"X-%d: 1\r\n" % n for n in range(500)) + b"\r\n") == b"431"
    assert status(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n") in (b"414", b"431")
    assert status(head + b"Content-Length: -1\r\n\r\n") == b"400"
    assert status(b"\x00\xff\r\n\r\n") == b"400"
    deep = b"[" * 100_000
    assert (
        status(
            head
            + b"Authorization: "
            + basic(rapi.user, rapi.password).encode()
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(deep)
            + deep
        )
        == b"400"
    )


def test_slow_clients_hold_nothing(rapi: RapiDaemon, client: GanetiRapiClient) -> None:
    """Ten times as many as there are workers; heads, bodies and nothing at all."""
    begun = b"POST /2/instances HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{"
    slow = []
    for number in range(200):
        sock = rapi.dial(rapi.fresh_address())
        sock.sendall((b"GET /2/info HTT", begun, b"")[number % 3])
        slow.append(sock)
    worst = 0.0
    for number in range(20):
        for sock in slow[number::20]:
            if sock.version():
                sock.sendall(b"x")
        began = time.monotonic()
        assert client.GetVersion() == 2
        with rapi.client() as fresh:
            assert fresh.GetInfo()["name"]
        worst = max(worst, time.monotonic() - began)
    assert worst < 2
    for sock in slow:
        sock.close()
    wait_for(lambda: descriptors(rapi.pid()) < 80, "connections are closed")
