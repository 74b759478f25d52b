"""The remote API as real clients use it: their bodies, connections, retries and conditions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest
from local_cluster import Cluster
from rapi_server import JSON, Api, basic
from waiting import wait_for

from ganeti import constants

WEB = "/2/instances/web.example.com"
CREATE = {
    "__version__": 1,
    "mode": "create",
    "disk_template": "file",
    "disks": [{"size": "8M"}],
    "nics": [],
    "pnode": "node1.example.com",
    "os": "noop",
    "ip_check": False,
    "name_check": False,
    "start": True,
}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    return Api(cluster)


# bodies -----------------------------------------------------------------------------------------


def test_the_life_of_an_instance(api):
    api.run_job(
        "POST /2/instances",
        {
            **CREATE,
            "name": "web.example.com",
            "beparams": {"memory": "128M", "vcpus": 1},
        },
    )
    assert api.get(WEB)["beparams"]["memory"] == 128
    assert api.get(f"{WEB}/console")["instance"] == "web.example.com"
    uuid = api.get(WEB)["uuid"]
    assert api.get(f"/2/instances/{uuid}")["name"] == "web.example.com"
    # no body, an empty object, an empty text, an empty body of a form
    api.run_job(f"POST {WEB}/reboot")
    api.run_job(f"POST {WEB}/reboot?type=soft", {})
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"", b"  \r\n"):
        answer = api.send("PUT", f"{WEB}/shutdown", body, form)
        assert answer.status == 200
        api.wait(answer.value)
    answer = api.ask(f"GET {WEB}/console")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert "web.example.com" in answer.error
    api.run_job(f"PUT {WEB}/startup?force=1")
    assert api.get(WEB)["status"] == "running"
    api.run_job(f"PUT {WEB}/tags?tag=one&tag=two")
    assert api.get(f"{WEB}/tags") == ["one", "two"]
    api.run_job(f"DELETE {WEB}/tags?tag=one&reason=tidy")
    assert api.get(f"{WEB}/tags") == ["two"]
    job = api.run_job(f"POST {WEB}/reinstall", {"os": "noop", "start": False})
    assert [op["OP_ID"] for op in job["ops"]] == ["OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REINSTALL"]
    api.run_job(f"PUT /2/instances/{uuid}/rename", {"new_name": "app.example.com"})
    info = api.wait(api.get("/2/instances/app.example.com/info?static=1"))
    assert info["opresult"][0]["app.example.com"]["name"] == "app.example.com"
    api.run_job("DELETE /2/instances/app.example.com", {"shutdown_timeout": 0})
    assert api.get("/2/instances") == []


def test_times_are_seconds_and_microseconds(api):
    (job, *_) = api.get("/2/jobs?bulk=1")
    for name in ("received_ts", "start_ts", "end_ts"):
        seconds, micros = job[name]
        assert isinstance(seconds, int)
        assert 0 <= micros < 1_000_000


def test_charset_of_json_is_accepted(api):
    body = json.dumps({"tags": []}).encode()
    kind = {"Content-Type": "application/json; charset=utf-8"}
    assert api.send("PUT", "/2/tags?tag=a&dry-run=1", body, kind).status == 200


def test_the_role_of_a_node(api):
    path = "/2/nodes/node3.example.com/role"
    for role in ("drained", "regular", "master-candidate"):
        api.run_job(f"PUT {path}", role)
        assert api.get(path) == role


def test_queries_with_a_filter(api):
    body = {"fields": ["name", "role"], "qfilter": ["=", "role", "M"]}
    assert api.ask("PUT /2/query/node", body).value["data"] == [
        [[0, "node1.example.com"], [0, "M"]]
    ]
    assert api.get("/2/query/node?fields=name")["fields"][0]["name"] == "name"
    fields = api.get("/2/query/instance/fields?fields=name,nosuch")["fields"]
    assert [field["kind"] for field in fields] == ["text", "unknown"]
    wrong = api.ask("PUT /2/query/node", {"fields": ["name"], "qfilter": ["=", "nosuch", 1]})
    assert (wrong.status, "nosuch" in wrong.error) == (400, True)


def test_a_place_is_reserved_first_named_later_and_filled_in_the_end(api):
    job = api.run_job("POST /2/instances", {"__version__": 1, "forthcoming": True})
    [uuid] = job["opresult"]
    assert api.get(f"/2/instances/{uuid}")["name"] == uuid
    create = f"POST /2/instances/{uuid}/create"
    lacking = api.wait(api.ask(create, {"os_type": "noop"}).value)
    assert lacking["status"] == "error"
    assert "yet; missing: a name (gnt-instance rename " in str(lacking["opresult"])
    api.run_job(f"PUT /2/instances/{uuid}/rename", {"new_name": "later.example.com"})
    job = api.run_job(
        "POST /2/instances/later.example.com/create",
        {
            "os_type": "noop",
            "disk_template": "file",
            "disks": [{"size": 4}],
            "beparams": {"memory": 64},
        },
    )
    assert job["opresult"] == [[api.get(f"/2/instances/{uuid}")["pnode"]]]
    assert api.get(f"/2/instances/{uuid}")["status"] == "running"
    api.run_job("DELETE /2/instances/later.example.com")


def test_jobs_are_canceled(api):
    api.cluster.ok("job list")
    job = api.ask(
        "PUT /2/redistribute-config", {"depends": [[api.get("/2/jobs")[0]["id"], ["error"]]]}
    ).value
    done, text = api.ask(f"DELETE /2/jobs/{job}").value
    assert isinstance(done, bool)
    assert text


# who and why ------------------------------------------------------------------------------------


def test_jobs_and_history_name_the_user(api):
    job = api.run_job("PUT /2/tags?tag=audited&reason=for+the+test")
    trail = job["ops"][0]["reason"]
    assert trail[0][:2] == ["gnt:user", "for the test"]
    assert trail[1][:2] == ["gnt:library:rlib2:tags", "alice"]
    path = api.cluster.paths().queue / f"job-{job['id']}"
    wait_for(path.exists, "the file of the job")
    stored = json.loads(path.read_text())
    assert stored["submitter"]["user"] == "rapi:alice"
    assert stored["submitter"]["uid"] == os.getuid()
    shown = api.cluster.ok("cluster history --limit 1").out
    assert "rapi:alice" in shown
    assert "for the test" in shown


# once only --------------------------------------------------------------------------------------


def test_the_same_key_makes_one_job(api):
    first = api.ask("PUT /2/tags?tag=once", Idempotency_Key="k1").value
    assert api.ask("PUT /2/tags?tag=once", Idempotency_Key="k1").value == first
    assert api.ask("PUT /2/tags?tag=once", Idempotency_Key="k2").value != first
    api.wait(first)
    api.cluster.ok("job archive", str(first))
    assert api.ask("PUT /2/tags?tag=once", Idempotency_Key="k1").value == first
    for key in ("a b", "x" * 129):
        assert "Idempotency-Key" in api.ask("PUT /2/tags?tag=once", Idempotency_Key=key).error


def test_an_answer_that_did_not_change_is_not_sent_again(api):
    for path in (
        "/2/nodes/node2.example.com/role",
        "/2/groups/default",
        "/2/groups?bulk=1",
        "/2/tags",
        "/2/jobs",
        "/2/info",
    ):
        first = api.ask(f"GET {path}")
        tag = first.headers["etag"]
        again = api.ask(f"GET {path}", If_None_Match=f'"other", W/{tag}')
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert api.ask(f"GET {path}", If_None_Match='"other"').status == 200


def test_a_stale_change_is_refused(api):
    path = "/2/groups/default"
    tag = api.ask(f"GET {path}").headers["etag"]
    api.run_job(f"PUT {path}/modify", {"alloc_policy": "last_resort"}, If_Match=tag)
    stale = api.ask(f"PUT {path}/modify", {"alloc_policy": "preferred"}, If_Match=tag)
    assert (stale.status, "read it again" in stale.error) == (412, True)
    assert api.get(path)["alloc_policy"] == "last_resort"
    fresh = api.ask(f"GET {path}").headers["etag"]
    api.run_job(f"PUT {path}/modify", {"alloc_policy": "preferred"}, If_Match=f'"x", {fresh}')
    api.run_job(f"PUT {path}/modify", {"alloc_policy": "preferred"}, If_Match="*")
    gone = api.ask("PUT /2/instances/nosuch.example.com/startup", If_Match="*")
    assert gone.status == 412
    tags = api.ask("GET /2/tags").headers["etag"]
    api.run_job("PUT /2/tags?tag=conditional", If_Match=tags)
    assert api.ask("PUT /2/tags?tag=more", If_Match=tags).status == 412
    info = api.ask("GET /2/info").headers["etag"]
    assert api.ask("PUT /2/modify?dry-run=1", {}, If_Match=info).status == 200


# connections ------------------------------------------------------------------------------------


def _head(request: str, more: str, length: int | None = None) -> bytes:
    """The head of a request with a JSON body, on a connection that is closed afterwards."""
    lines = [
        f"{request} HTTP/1.1",
        "Host: x",
        "Connection: close",
        "Content-Type: application/json",
        f"Authorization: {basic('alice')}",
        more,
    ]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def test_http_1_0_and_one_request_on_a_connection(api):
    found = api.send_raw(b"GET /version HTTP/1.0\r\n\r\n")
    assert found.startswith((b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n"))
    assert found.endswith(b"\r\n\r\n2\n")


def test_many_requests_on_one_connection(api):
    link = api.connection()
    headers = {**JSON, "Authorization": basic("alice")}
    try:
        link.connect()
        local = link.sock.getsockname()
        for method, path in (
            ("GET", "/version"),
            ("GET", "/nosuch"),
            ("DELETE", "/2/nodes"),
            ("PUT", "/2/tags?bogus=1"),
            ("GET", "/2/info"),
        ):
            link.request(method, path, b"{}" if method == "PUT" else None, headers)
            assert link.getresponse().read()
            assert link.sock.getsockname() == local
    finally:
        link.close()


def test_a_client_that_waits_for_continue_before_its_body(api):
    body = b'"nosuch"'
    head = _head("PUT /2/nodes/node2.example.com/role", "Expect: 100-continue", len(body))
    with api.dial() as sock:
        sock.sendall(head)
        assert sock.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n")
        sock.sendall(body)
        assert b"400 Bad Request" in sock.recv(65536)


def test_a_body_in_chunks(api):
    found = api.send_raw(
        _head("PUT /2/nodes/node2.example.com/role", "Transfer-Encoding: chunked")
        + b'4\r\n"nos\r\n4\r\nuch"\r\n0\r\n\r\n'
    )
    assert b"400 Bad Request" in found
    assert b"nosuch" in found


def test_a_body_that_is_cut_off_does_nothing(api):
    before = api.get("/2/jobs")
    with api.dial() as sock:
        sock.sendall(_head("PUT /2/redistribute-config", "X-Cut: off", 100) + b"{}")
        socket.socket.shutdown(sock, socket.SHUT_WR)
        with contextlib.suppress(ssl.SSLError):  # how the server ends it is its own affair
            while sock.recv(65536):
                pass
    assert api.get("/2/jobs") == before


# without a master -------------------------------------------------------------------------------


def test_requests_around_a_restart_of_the_master(api):
    assert api.get("/2/info")
    api.cluster.kill_master()
    began = time.monotonic()
    for request in ("GET /2/info", "GET /2/instances?bulk=1", "PUT /2/tags?tag=down"):
        answer = api.ask(request)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "master daemon" in answer.error
    assert time.monotonic() - began < 15
    assert api.get("/version") == 2
    assert api.cluster.start_master().code == 0
    assert api.get("/2/info")["master"] == "node1.example.com"
    for _ in range(10):  # every worker has a connection to the old daemon
        api.run_job("PUT /2/tags?tag=up")


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def _has_unread(master: int) -> bool:
    """Whether something lies in a LUXI connection, or before the door, of this master."""
    listed = subprocess.run(
        ["ss", "--unix", "--all", "--no-header"], capture_output=True, text=True, check=True
    ).stdout
    # The socket gets its name from the process that makes it; columns: type, state, received.
    ours = [line.split() for line in listed.splitlines() if f"/.ganeti-query.{master} " in line]
    assert ours, listed
    return any(int(columns[2]) for columns in ours)


def test_the_master_dies_in_the_middle_of_a_request(api):
    pid = api.cluster.pid(constants.MASTERD)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    wait_for(lambda: all(_is_stopped(thread) for thread in threads.iterdir()), "the master stops")
    answers = []
    asked = threading.Thread(target=lambda: answers.append(api.ask("PUT /2/tags?tag=middle")))
    asked.start()
    wait_for(lambda: _has_unread(pid), "the request reaches the master")
    os.kill(pid, signal.SIGKILL)
    asked.join(20)
    (answer,) = answers
    assert answer.status == 503
    assert "Nobody knows" in answer.error or "not running" in answer.error
    assert api.cluster.start_master().code == 0
    assert api.get("/2/info")
