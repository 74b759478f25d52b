"""Consoles in a browser: tickets, what is typed and shown, who controls, what ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest
from local_cluster import Cluster
from rapi_daemon import RapiDaemon, threads
from waiting import wait_for
from web_socket import ClosedError, WebSocketClient

from ganeti import constants
from ganeti.rapi.consoles import MOST_OF_USER

WEB1, WEB2 = "web1.example.com", "web2.example.com"
USERS = "typist pw @operator\nreader pw read\ndenied pw @operator,-instance.console\n"


@pytest.fixture(scope="module")
def rapi(cluster: Cluster) -> RapiDaemon:
    made = RapiDaemon(cluster)
    path = made.paths.rapi_users
    path.write_text(path.read_text() + USERS)
    for name, node in ((WEB1, "node2"), (WEB2, "node3")):
        assert cluster.add(name, node=node).code == 0
    wait_for(
        lambda: made.ask("GET", "/2/info", ("typist", "pw")).status == 200, "users file is followed"
    )
    return made


def ticket(rapi: RapiDaemon, instance: str = WEB1, mode: str = "control", **more: str) -> str:
    body = {"kind": "serial", "mode": mode}
    got = rapi.ask(
        "POST", f"/2/instances/{instance}/console-ticket", ("typist", "pw"), body=body, **more
    )
    assert got.status == 200, got.value
    return str(got.value["url"])


def dial(rapi: RapiDaemon, path: str, **headers: str) -> WebSocketClient:
    sock = rapi.dial()
    sock.settimeout(20)
    return WebSocketClient(sock, path, headers, f"{rapi.host}:{rapi.port}")


@pytest.fixture
def console(rapi: RapiDaemon) -> Iterator[WebSocketClient]:
    with dial(rapi, ticket(rapi)) as made:
        yield made


def list_open(rapi: RapiDaemon, instance: str = WEB1) -> list[tuple[str, str]]:
    found = rapi.ask("GET", f"/2/instances/{instance}/consoles", ("reader", "pw")).value
    return sorted((item["user"], item["mode"]) for item in found["open"])


def test_what_is_typed_comes_back_and_is_noted(rapi: RapiDaemon, console: WebSocketClient) -> None:
    assert console.status == 101
    assert b"sec-websocket-protocol: binary" in console.head.lower()
    console.send(b"hello\n")
    console.read_until(b"hello\r\nhello\r\n")
    console.send(b"\xff\x1b]0;title\x07<script>\n")
    assert b"\x1b]0;title\x07<script>" in console.read_until(
        b"<script>\r\n\xff\x1b]0;title\x07<script>"
    )
    assert list_open(rapi) == [("typist", "control")]
    log = (rapi.paths.log / "master-daemon.log").read_text()
    assert f"console of instance {WEB1}" in log
    assert '"user":"typist"' in log.replace(" ", "")


def test_each_opening_is_in_the_history(rapi: RapiDaemon) -> None:
    before = rapi.ask("GET", f"/2/instances/{WEB2}", ("reader", "pw")).value["serial_no"]

    def openings() -> list[tuple[str, str]]:
        found = rapi.ask("GET", f"/2/history?object={WEB2}", ("reader", "pw")).value["changes"]
        return [(one["user"], one["reason"]) for one in found if one["name"] == "console-open"]

    known = openings()
    for mode in ("control", "view"):
        with dial(rapi, ticket(rapi, WEB2, mode)):
            pass
    new = [
        ("rapi:typist", f"serial console, {mode}, from 127.0.0.1") for mode in ("control", "view")
    ]
    wait_for(lambda: openings() == [*known, *new], lambda: str(openings()))
    after = rapi.ask("GET", f"/2/instances/{WEB2}", ("reader", "pw")).value["serial_no"]
    assert after == before


def test_those_who_look_see_the_same_and_type_nothing(
    rapi: RapiDaemon, console: WebSocketClient
) -> None:
    console.send(b"first\n")
    console.read_until(b"first\r\nfirst\r\n")
    with dial(rapi, ticket(rapi, mode="view")) as viewer:
        assert b"first\r\nfirst\r\n" in viewer.read_until(b"first\r\nfirst\r\n")
        viewer.send(b"sneaky\n")
        console.send(b"second\n")
        assert b"sneaky" not in viewer.read_until(b"second\r\nsecond\r\n")
        assert list_open(rapi) == [("typist", "control"), ("typist", "view")]


def test_another_takes_over(rapi: RapiDaemon, console: WebSocketClient) -> None:
    console.send(b"mine\n")
    console.read_until(b"mine\r\nmine\r\n")
    with dial(rapi, ticket(rapi)) as other:
        with pytest.raises(ClosedError) as ended:
            console.read_until(b"never")
        assert (ended.value.code, ended.value.reason) == (4005, "typist has taken over")
        other.send(b"now mine\n")
        found = other.read_until(b"now mine\r\nnow mine\r\n")
        assert b"mine\r\nmine" in found


def test_tickets_are_for_one_use_of_one_session(rapi: RapiDaemon) -> None:
    used = ticket(rapi)
    with dial(rapi, used) as first:
        first.send(b"x\n")
        first.read_until(b"x")
    login = rapi.ask("POST", "/2/sessions", body={"user": "typist", "password": "pw"})
    page = {
        "Cookie": login.headers["set-cookie"].partition(";")[0],
        "X-Ganeti-CSRF": login.value["csrf"],
    }
    got = rapi.ask(
        "POST", f"/2/instances/{WEB1}/console-ticket", body={"kind": "serial"}, **page
    ).value
    for path in (used, "/2/consoles/guess", got["url"]):
        with dial(rapi, path) as console, pytest.raises(ClosedError) as ended:
            console.receive()
        assert ended.value.code == 4001
    got = rapi.ask(
        "POST", f"/2/instances/{WEB1}/console-ticket", body={"kind": "serial"}, **page
    ).value
    with dial(rapi, got["url"], Cookie=page["Cookie"]) as console:
        console.send(b"in\n")
        console.read_until(b"in\r\nin\r\n")
        # The console ends with its session.
        assert rapi.ask("DELETE", "/2/sessions/current", **page).status == 200
        with pytest.raises(ClosedError) as ended:
            console.receive()
        assert ended.value.code == 4001


def test_who_may_not_open_a_console_gets_no_ticket(rapi: RapiDaemon) -> None:
    path, body = f"/2/instances/{WEB1}/console-ticket", {"kind": "serial"}
    for user in ("reader", "denied"):
        assert rapi.ask("POST", path, (user, "pw"), body=body).status == 403
    assert rapi.ask("POST", path, body=body).status == 401
    ask = lambda where, what: rapi.ask("POST", where, ("typist", "pw"), body=what)  # noqa: E731
    got = ask(path, {"kind": "vnc"})
    assert got.status == 409
    assert got.value["explain"] == f"Instance {WEB1} has no vnc console; it has: serial"
    assert ask(path, {"kind": "screen"}).status == 400
    assert ask("/2/instances/nosuch/console-ticket", body).status == 404
    with dial(rapi, ticket(rapi), Origin="https://evil.example.com") as console:
        assert console.status == 403
    assert rapi.ask("GET", ticket(rapi)).status == 400


def test_a_guest_that_does_not_run_has_no_console(rapi: RapiDaemon) -> None:
    console = dial(rapi, ticket(rapi, WEB2))
    console.send(b"x\n")
    console.read_until(b"x")
    console.close()
    wait_for(lambda: list_open(rapi, WEB2) == [], "the console is closed")
    rapi.cluster.ok("instance shutdown", WEB2)
    got = rapi.ask(
        "POST", f"/2/instances/{WEB2}/console-ticket", ("typist", "pw"), body={"kind": "serial"}
    )
    assert got.status == 409
    assert "does not run" in got.value["explain"]
    rapi.cluster.ok("instance startup", WEB2)


def test_fifty_readers_that_do_not_read_hold_up_nobody(rapi: RapiDaemon) -> None:
    before = threads(rapi.pid())
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_OF_USER - 1):
            stack.enter_context(dial(rapi, ticket(rapi, mode="view")))
        console = stack.enter_context(dial(rapi, ticket(rapi)))
        for number in range(20):
            line = b"y" * 3000 + b"%d" % number
            console.send(line + b"\n")
            console.read_until(line + b"\r\n" + line + b"\r\n")
        began = time.monotonic()
        assert rapi.ask("GET", "/2/info", ("reader", "pw")).status == 200
        assert time.monotonic() - began < 2
        with dial(rapi, ticket(rapi)) as more, pytest.raises(ClosedError) as ended:
            more.receive()
        assert ended.value.code == 4003
        assert threads(rapi.pid()) <= before + 1
    wait_for(lambda: list_open(rapi) == [], "all are closed")


def test_a_dead_node_ends_the_console_and_nothing_else(rapi: RapiDaemon) -> None:
    with dial(rapi, ticket(rapi, WEB2)) as console:
        console.send(b"x\n")
        console.read_until(b"x\r\nx\r\n")
        pid = rapi.cluster.pid(constants.NODED, "node3")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ClosedError) as ended:
            console.receive()
        assert ended.value.code in (4004, 4006)
    got = rapi.ask(
        "POST", f"/2/instances/{WEB2}/console-ticket", ("typist", "pw"), body={"kind": "serial"}
    )
    assert got.status == 503
    assert "node3" in got.body.decode()
    assert rapi.ask("GET", "/2/info", ("reader", "pw")).status == 200
    rapi.cluster.start_daemon(constants.NODED, "node3")
