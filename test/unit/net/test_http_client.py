"""The HTTP client: kept connections, when a request is repeated, fan-out, time limits."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ganeti import errors, paths
from ganeti.base import log as base_log
from ganeti.base.log_lines import JOB
from ganeti.net.http_client import Client
from ganeti.net.http_link import Call, CallError, Response
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSError, TLSSocket

HOST = "127.0.0.1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def echo_app(environ, start):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def read_request(sock: Any) -> bytes:
    """One request with its body, read by hand; what came when it ends early."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    body = bytearray(rest)
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    while len(body) < length:
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + bytes(body)


class Script:
    """A TLS server that treats its n-th connection with the n-th function."""

    def __init__(self, pki: Any, *parts: Callable[[TLSSocket], None], contexts: Any = ()) -> None:
        self._contexts = iter(contexts or [pki.server()] * len(parts))
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._run, args=(parts,))
        self._thread.start()

    def _run(self, parts: tuple[Callable[[TLSSocket], None], ...]) -> None:
        for part in parts:
            raw, _ = self._listener.accept()
            sock = TLSSocket(raw, next(self._contexts), server_side=True)
            sock.settimeout(5)
            try:
                sock.handshake()
                part(sock)
            except OSError:
                pass
            finally:
                sock.close()

    def answer(self, sock: TLSSocket) -> None:
        """Read a request and answer it."""
        self.requests.append(read_request(sock))
        sock.sendall(OK)

    def stop(self) -> None:
        self._listener.close()
        self._thread.join(5)


@pytest.fixture
def script(pki) -> Iterator[Callable[..., Script]]:
    started = []

    def start(*parts: Callable[[TLSSocket], None], contexts: Any = ()) -> Script:
        started.append(Script(pki, *parts, contexts=contexts))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def reset(sock: TLSSocket) -> None:
    """Hang up in the rudest way: the kernel sends a reset."""
    sock._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock._sock.close()


# one call


def test_a_call_returns_status_and_body(serve, client):
    def app(environ, start):
        start("404 Not Found", [("Content-Length", "4")])
        assert environ["REQUEST_METHOD"] == "POST"
        assert environ["CONTENT_TYPE"] == "application/json"
        return [b"nope"]

    server = serve(app)
    assert client.post(HOST, server.port, "/unknown", b"[]", 5) == Response(404, b"nope")


def test_calls_share_a_connection(serve, client):
    server = serve(echo_app)
    for number in range(5):
        body = str(number).encode()
        assert client.post(HOST, server.port, "/x", body, 5).body == body
    assert client.connects == 1
    assert server.handshakes == 1


def test_a_connection_that_was_idle_for_too_long_is_not_used(serve, pki):
    server = serve(echo_app)
    with Client(pki.client(), idle_limit=0.0) as client:
        for _ in range(3):
            client.post(HOST, server.port, "/x", b"", 5)
        assert client.connects == 3


def test_only_some_connections_are_kept(serve, pki):
    together = threading.Barrier(4)

    def app(environ, start):
        together.wait(5)
        return echo_app(environ, start)

    server = serve(app)
    with Client(pki.client(), per_host=2) as client:
        calls = [Call(HOST, server.port, "/x")] * 4
        client.fan_out(calls)
        assert client.connects == 4
        client.fan_out(calls)
        assert client.connects == 6


def test_names_come_from_the_hosts_file_of_the_cluster(serve, client, tmp_path, monkeypatch):
    monkeypatch.setenv(paths.ROOTDIR_VARIABLE, str(tmp_path))
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("127.0.0.1 node1.example.com\n")
    server = serve(echo_app)
    call = Call("node1.example.com", server.port, "/x", b"hi", expected_cn="node1.example.com")
    assert client.perform(call).body == b"hi"
    with pytest.raises(CallError, match="name has no address") as caught:
        client.post("a..b", server.port, "/x", b"", 5)
    assert not caught.value.may_have_run


def test_the_name_in_the_certificate_can_be_demanded(serve, client):
    server = serve(echo_app)
    with pytest.raises(CallError, match=r"node1.example.com answers there, not node7 "):
        client.post(HOST, server.port, "/x", b"", 5, expected_cn="node7")
    client.post(HOST, server.port, "/x", b"", 5, expected_cn="node1.example.com")


def test_a_kept_connection_counts_only_for_what_was_checked(serve, client):
    server = serve(echo_app)
    client.post(HOST, server.port, "/x", b"", 5)
    with pytest.raises(CallError, match=r"node1.example.com answers there, not node7 "):
        client.post(HOST, server.port, "/x", b"", 5, expected_cn="node7")
    client.perform(Call("localhost", server.port, "/x"))
    with pytest.raises(CallError, match="not for localhost"):
        client.perform(Call("localhost", server.port, "/x", check_host=True))


def test_calls_can_come_from_a_given_address(serve, pki):
    def app(environ, start):
        data = environ["REMOTE_ADDR"].encode()
        start("200 OK", [("Content-Length", str(len(data)))])
        return [data]

    server = serve(app)
    with Client(pki.client(), local_address="127.0.0.9") as client:
        assert client.post(HOST, server.port, "/x", b"", 5).body == b"127.0.0.9"


@pytest.mark.parametrize(
    ("host", "path"), [(HOST, "no-slash"), (HOST, "/a b"), (HOST, "/a\r\nX: y"), ("h\r\n", "/")]
)
def test_requests_cannot_be_forged_through_names(client, host, path):
    with pytest.raises(errors.ProgrammerError):
        client.post(host, 1, path, b"", 5)


# errors


def test_nobody_listening_is_an_error_with_host_port_and_reason(client):
    with socket.create_server((HOST, 0)) as sock:
        port = sock.getsockname()[1]
    with pytest.raises(errors.RpcError) as caught:
        client.post(HOST, port, "/x", b"", 5)
    err = caught.value
    assert (err.host, err.port) == (HOST, port)
    assert "connection refused" in err.reason
    assert not err.may_have_run
    assert errors.encode(err) == ["RpcError", [f"{HOST}:{port}: {err.reason}"]]


def test_a_host_that_is_silent_from_the_start_costs_the_connect_time_out(client):
    with socket.create_server((HOST, 0)) as sock:
        port = sock.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(CallError, match=r"no connection within 0\.2 seconds") as caught:
            client.post(HOST, port, "/x", b"", 60, connect_timeout=0.2)
        assert time.monotonic() - started < 2
        assert not caught.value.may_have_run


def test_no_answer_in_time_is_an_error(serve, client):
    release = threading.Event()

    def app(environ, start):
        release.wait(10)
        return echo_app(environ, start)

    server = serve(app)
    with pytest.raises(CallError, match=r"no answer within 0\.1 seconds") as caught:
        client.post(HOST, server.port, "/x", b"", 0.1)
    assert caught.value.may_have_run
    release.set()
    assert client.post(HOST, server.port, "/x", b"hi", 5).body == b"hi"
    assert client.connects == 2


def test_an_answer_that_drips_in_is_limited_in_all(script, client):
    def drip(sock: TLSSocket) -> None:
        read_request(sock)
        for byte in OK:
            sock.sendall(bytes([byte]))
            time.sleep(0.02)  # what is tested: bytes that drip in

    server = script(drip)
    started = time.monotonic()
    with pytest.raises(CallError, match="no answer within"):
        client.post(HOST, server.port, "/x", b"", 0.2)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "closed before the answer came"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "no proper HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha", "no proper HTTP answer"),
        (b"SSH-2.0-OpenSSH\r\n", "no proper HTTP answer"),
    ],
)
def test_a_wrong_or_half_answer_is_an_error(script, client, answer, reason):
    def part(sock: TLSSocket) -> None:
        read_request(sock)
        sock.sendall(answer)
        # The stream ends without a close_notify.
        sock.shutdown(socket.SHUT_RDWR)

    with pytest.raises(CallError, match=reason) as caught:
        client.post(HOST, script(part).port, "/x", b"", 5)
    assert caught.value.may_have_run


def test_an_answer_over_the_limit_is_an_error(serve, pki):
    server = serve(echo_app)
    with Client(pki.client(), max_response=10) as client:
        assert client.post(HOST, server.port, "/x", b"x" * 10, 5).body == b"x" * 10
        with pytest.raises(CallError, match="larger than 10 bytes"):
            client.post(HOST, server.port, "/x", b"x" * 11, 5)
        assert client.post(HOST, server.port, "/x", b"x", 5).body == b"x"


def test_a_server_that_is_not_of_the_cluster_is_refused(serve, pki, client):
    server = serve(echo_app, pki.server("foreign-server.pem"))
    with pytest.raises(CallError, match="authority is not in the CA file") as caught:
        client.post(HOST, server.port, "/x", b"", 5)
    assert not caught.value.may_have_run


# requests are never executed twice


def test_a_restarted_server_is_called_over_a_new_connection(pki, client):
    first = HttpServer((HOST, 0), echo_app, pki.server())
    port = first.start()
    assert client.post(HOST, port, "/x", b"one", 5).body == b"one"
    first.stop()
    with HttpServer((HOST, port), echo_app, pki.server()):
        assert client.post(HOST, port, "/x", b"two", 5).body == b"two"
    assert client.connects == 2


def test_a_request_without_an_answer_is_not_repeated(script, client):
    def answer_once_then_hang_up(sock: TLSSocket) -> None:
        server.answer(sock)
        server.requests.append(read_request(sock))

    server = script(answer_once_then_hang_up)
    assert client.post(HOST, server.port, "/first", b"", 5).body == b"ok"
    with pytest.raises(CallError, match="closed before the answer came") as caught:
        client.post(HOST, server.port, "/second", b"", 5)
    assert caught.value.may_have_run
    assert [request.split()[1] for request in server.requests] == [b"/first", b"/second"]
    assert client.connects == 1


def test_a_request_that_did_not_get_out_is_sent_over_a_new_connection(script, client):
    def answer_once_then_refuse(sock: TLSSocket) -> None:
        server.answer(sock)
        sock.recv(100)
        reset(sock)

    server = script(answer_once_then_refuse, lambda sock: server.answer(sock))
    body = b"x" * 20_000_000
    assert client.post(HOST, server.port, "/first", b"", 5).body == b"ok"
    assert client.post(HOST, server.port, "/second", body, 5).body == b"ok"
    assert client.connects == 2
    assert [request.split()[1] for request in server.requests] == [b"/first", b"/second"]
    assert server.requests[1].endswith(body)


def test_it_is_repeated_only_once(script, client):
    def refuse(sock: TLSSocket) -> None:
        sock.recv(100)
        reset(sock)

    def answer_once_then_refuse(sock: TLSSocket) -> None:
        server.answer(sock)
        refuse(sock)

    server = script(answer_once_then_refuse, refuse)
    client.post(HOST, server.port, "/first", b"", 5)
    with pytest.raises(CallError, match="closed while the request was sent") as caught:
        client.post(HOST, server.port, "/second", b"x" * 20_000_000, 5)
    assert not caught.value.may_have_run
    assert client.connects == 2


def test_words_nobody_asked_for_end_a_kept_connection(script, client):
    spoken = threading.Event()

    def talk(sock: TLSSocket) -> None:
        server.answer(sock)
        sock.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        spoken.set()
        sock.recv(1)

    server = script(talk, lambda sock: server.answer(sock))
    client.post(HOST, server.port, "/first", b"", 5)
    assert spoken.wait(5)
    assert client.post(HOST, server.port, "/second", b"", 5).body == b"ok"
    assert client.connects == 2


def test_kept_connections_are_closed_on_demand(serve, client):
    server = serve(echo_app)
    client.post(HOST, server.port, "/x", b"", 5)
    client.renew()
    client.post(HOST, server.port, "/x", b"", 5)
    assert client.connects == 2


# many calls at a time


def test_fan_out_keeps_the_order_and_reports_each_error(serve, client):
    server = serve(echo_app)
    with socket.create_server((HOST, 0)) as sock:
        closed_port = sock.getsockname()[1]
    calls = [Call(HOST, server.port, "/x", str(number).encode()) for number in range(20)]
    calls[7] = Call(HOST, closed_port, "/x")
    results = client.fan_out(calls, max_parallel=5)
    assert isinstance(results[7], CallError)
    del results[7]
    assert [result.body for result in results] == [b"%d" % n for n in range(20) if n != 7]
    assert client.fan_out([]) == []


def test_one_dead_host_costs_one_time_out(serve, client):
    server = serve(echo_app)
    with socket.create_server((HOST, 0)) as dead:
        calls = [Call(HOST, server.port, "/x", b"hi", 5) for _ in range(40)]
        calls[0] = Call(HOST, dead.getsockname()[1], "/x", connect_timeout=0.5)
        started = time.monotonic()
        results = client.fan_out(calls, max_parallel=8)
        assert 0.4 < time.monotonic() - started < 2.5
    assert isinstance(results[0], CallError)
    assert {result.body for result in results[1:]} == {b"hi"}


def test_calls_run_at_the_same_time(serve, client):
    together = threading.Barrier(10)

    def app(environ, start):
        together.wait(5)
        return echo_app(environ, start)

    calls = [Call(HOST, serve(app).port, "/x", b"hi")] * 10
    assert all(result.body == b"hi" for result in client.fan_out(calls))


def test_threads_are_used_again_and_end_with_the_client(serve, pki):
    before = set(threading.enumerate())
    server = serve(echo_app, name="srv")

    def own_threads() -> set[threading.Thread]:
        threads = set(threading.enumerate()) - before
        return {thread for thread in threads if not thread.name.startswith("srv")}

    client = Client(pki.client(), threads=4)
    calls = [Call(HOST, server.port, "/x")] * 12
    for _ in range(5):
        client.fan_out(calls)
        assert 0 < len(own_threads()) <= 4
    client.stop()
    client.stop()
    assert own_threads() == set()


def test_helpers_work_in_the_log_context_of_the_caller(serve, client, monkeypatch):
    seen = []
    perform = client.perform

    def spy(call: Call) -> Response:
        seen.append(JOB.get())
        return perform(call)

    monkeypatch.setattr(client, "perform", spy)
    with base_log.set_context(job="12"):
        client.fan_out([Call(HOST, serve(echo_app).port, "/x")] * 6)
    assert seen == ["12"] * 6


def test_stop_fails_running_calls_at_once(serve, pki):
    running, release = threading.Semaphore(0), threading.Event()

    def app(environ, start):
        running.release()
        release.wait(10)
        return echo_app(environ, start)

    server = serve(app)
    client = Client(pki.client())
    results = []
    calls = [Call(HOST, server.port, "/x")] * 3
    caller = threading.Thread(target=lambda: results.extend(client.fan_out(calls)))
    caller.start()
    assert all(running.acquire(timeout=5) for _call in calls)
    started = time.monotonic()
    client.stop()
    caller.join(5)
    assert time.monotonic() - started < 2
    release.set()
    assert len(results) == 3
    assert all("was stopped" in str(result) for result in results)
    with pytest.raises(CallError, match="was stopped"):
        client.post(HOST, server.port, "/x", b"", 5)
    assert all(isinstance(one, CallError) for one in client.fan_out(calls))


def test_a_renewed_certificate_is_used_for_new_connections(serve, pki, tmp_path):
    def app(environ, start):
        data = environ["ganeti.peer_cn"].encode()
        start("200 OK", [("Content-Length", str(len(data)))])
        return [data]

    path = tmp_path / "client.pem"
    path.write_bytes(pki.path("client.pem").read_bytes())
    context = Identity(path, pki.path("ca.pem")).client_context()
    server = serve(app)
    with Client(context) as client:
        assert client.post(HOST, server.port, "/x", b"", 5).body == b"node2.example.com"
        path.write_bytes(pki.path("server.pem").read_bytes())
        context.reload()
        assert client.post(HOST, server.port, "/x", b"", 5).body == b"node2.example.com"
        client.renew()
        assert client.post(HOST, server.port, "/x", b"", 5).body == b"node1.example.com"


@pytest.mark.parametrize(
    "before",
    [{"cert": "foreign-server.pem"}, {"ca": "foreign-ca.pem"}],
    ids=["certificate of the server", "authorities that the server accepts"],
)
def test_files_that_are_replaced_during_a_connection_fail_no_call(script, pki, client, before):
    def talk(sock: TLSSocket) -> None:
        server.answer(sock)

    server = script(talk, talk, contexts=[pki.server(**before), pki.server()])
    assert client.post(HOST, server.port, "/x", b"body", 5).body == b"ok"
    assert len(server.requests) == 1


def test_a_certificate_that_stays_wrong_is_refused_after_two_connections(serve, pki, client):
    server = serve(echo_app, pki.server(ca="foreign-ca.pem"))
    with pytest.raises(CallError, match="alert"):
        client.post(HOST, server.port, "/x", b"", 5)
    assert client.connects == 2


def test_plain_http_works_the_same(serve):
    server = serve(echo_app, None)
    with Client(None) as client:
        for body in (b"", b"x", b"y" * 1_000_000):
            assert client.post(HOST, server.port, "/x", body, 5).body == body
        assert client.connects == 1


def test_tls_errors_are_connection_errors():
    assert issubclass(TLSError, ConnectionError)
