"""The HTTP server: bodies, silent clients, kept connections, refusals, renewal, stopping."""

from __future__ import annotations

import _pyio
import gc
import hashlib
import logging
import queue
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ganeti import errors
from ganeti.base import retry
from ganeti.net.http_client import Client
from ganeti.net.http_link import Call, CallError
from ganeti.net.http_server.server import HttpServer
from ganeti.net.peers import peer_certificate_digest
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSSocket

StartResponse = Callable[..., Any]


def reply(start: StartResponse, text: str) -> list[bytes]:
    data = text.encode()
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(data)))])
    return [data]


def body_of(environ: dict[str, Any]) -> bytes:
    return environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


def digest_app(environ, start):
    body = body_of(environ)
    return reply(start, f"{len(body)} {hashlib.sha256(body).hexdigest()}")


def peer_app(environ, start):
    return reply(start, f"{environ['ganeti.peer_digest']} {environ['ganeti.peer_cn']}")


def ok_app(_environ, start):
    return reply(start, "ok")


def ask(client: Client, server: HttpServer, body: bytes = b"[]", timeout: float = 10.0) -> str:
    response = client.post("127.0.0.1", server.port, "/test", body, timeout)
    assert response.status == 200
    return response.body.decode()


def read_answer(sock: Any) -> bytes:
    """One answer with a Content-Length, read by hand."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(1)
        if not piece:
            return data
        data += piece
    head = data.decode().lower()
    length = int(head.split("content-length:")[1].split()[0])
    while length:
        piece = sock.recv(length)
        assert piece
        data += piece
        length -= len(piece)
    return data


# bodies


@pytest.mark.parametrize("size", [0, 1, 100_000, 10_000_000])
def test_bodies_of_any_size_arrive_over_tls(serve, client, size):
    server = serve(digest_app)
    body = bytes(i % 251 for i in range(1000)) * (size // 1000) + b"x" * (size % 1000)
    assert ask(client, server, body) == f"{size} {hashlib.sha256(body).hexdigest()}"


def test_large_answers_arrive(serve, client):
    def app(_environ, start):
        start("200 OK", [])
        return [b"a" * 3_000_000, b"b" * 3_000_000]

    response = client.post("127.0.0.1", serve(app).port, "/", b"", 10)
    assert response.body == b"a" * 3_000_000 + b"b" * 3_000_000


@pytest.mark.parametrize("size", [1001, 8_000_000])
def test_a_body_over_the_limit_gets_413(serve, client, size):
    server = serve(digest_app, max_body=1000)
    assert client.post("127.0.0.1", server.port, "/", b"x" * size, 10).status == 413
    assert client.post("127.0.0.1", server.port, "/", b"x" * 1000, 10).status == 200


def test_a_server_that_wants_no_body_reads_none(serve, dial):
    sock = dial(serve(ok_app, max_body=0).port)
    sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
    assert read_answer(sock).startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_over_the_limit_gets_413(serve, dial):
    def app(environ, start):
        return reply(start, str(len(environ["wsgi.input"].read())))

    server = serve(app, max_body=1000)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    good = dial(server.port)
    good.sendall(head + b"3\r\nabc\r\n0\r\n\r\n")
    assert read_answer(good).endswith(b"3")
    bad = dial(server.port)
    bad.sendall(head + b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
    assert read_answer(bad).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("how", ["all", "some", "lines"])
def test_a_request_that_ends_early_is_not_executed(serve, dial, caplog, how):
    executed = []
    seen = threading.Event()

    def app(environ, start):
        try:
            source = environ["wsgi.input"]
            if how == "all":
                executed.append(source.read())
            elif how == "some":
                executed.append(source.read(100))
            else:
                executed.append(list(source))
        finally:
            seen.set()
        return reply(start, "done")

    sock = dial(serve(app).port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n[1, 2")
    sock.close()
    assert seen.wait(5)
    assert executed == []


def test_a_body_can_be_read_by_lines(serve, client):
    def app(environ, start):
        source = environ["wsgi.input"]
        first = source.readline()
        return reply(start, repr([first, source.readlines(), source.read(), source.read(5)]))

    assert ask(client, serve(app), b"one\ntwo\nthree") == repr(
        [b"one\n", [b"two\n", b"three"], b"", b""]
    )


@pytest.mark.parametrize("length", [b"-1", b"1_0", b"+1", b"x"])
def test_a_strange_length_is_refused(serve, dial, length):
    sock = dial(serve(digest_app).port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\nabc")
    assert read_answer(sock).startswith(b"HTTP/1.1 400 ")


def test_an_endless_head_is_refused(serve, dial):
    sock = dial(serve(ok_app).port)
    sock.sendall(b"POST / HTTP/1.1\r\nX: " + b"x" * 70_000)
    assert read_answer(sock).startswith(b"HTTP/1.1 431 ")


def test_two_requests_sent_at_once_get_two_answers(serve, dial):
    sock = dial(serve(digest_app).port)
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    sock.sendall(request + request)
    first, second = read_answer(sock), read_answer(sock)
    assert first == second
    # The second request may also end in the middle of what was read with the first.
    sock.sendall(request + request[:20])
    assert read_answer(sock)
    sock.sendall(request[20:])
    assert read_answer(sock).startswith(b"HTTP/1.1 200 ")


# clients that say nothing


def hang(port: int, count: int, say: bytes = b"") -> list[socket.socket]:
    socks = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(count)]
    for sock in socks:
        sock.sendall(say)
    return socks


@pytest.mark.parametrize("say", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["silent", "half"])
def test_silent_clients_hold_no_worker(serve, client, say):
    server = serve(ok_app, threads=4, handshake_timeout=30.0)
    socks = hang(server.port, 200, say)
    slowest = 0.0
    for _ in range(20):
        client.renew()
        started = time.monotonic()
        assert ask(client, server) == "ok"
        slowest = max(slowest, time.monotonic() - started)
    assert slowest < 2
    for sock in socks:
        sock.close()


def test_clients_with_half_a_request_head_hold_no_worker(serve, client, dial):
    server = serve(ok_app, threads=2)
    socks = [dial(server.port) for _ in range(10)]
    for sock in socks:
        sock.sendall(b"POST /test HTTP/1.1\r\nHost:")
    started = time.monotonic()
    assert ask(client, server) == "ok"
    assert time.monotonic() - started < 2
    for sock in socks:
        sock.sendall(b" x\r\nContent-Length: 0\r\n\r\n")
    assert all(read_answer(sock).endswith(b"ok") for sock in socks)


def test_a_handshake_needs_no_free_worker(serve, client, dial):
    release, running = threading.Event(), threading.Event()

    def app(environ, start):
        running.set()
        release.wait(10)
        return reply(start, "ok")

    server = serve(app, threads=1)
    first = threading.Thread(target=ask, args=(client, server))
    first.start()
    assert running.wait(5)
    sock = dial(server.port)
    assert retry.retry_until(lambda: server.handshakes == 2 or None, timeout=5)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    release.set()
    assert read_answer(sock).endswith(b"ok")
    first.join(5)


@pytest.mark.parametrize("say", [b"", b"\x16"])
def test_silent_clients_are_dropped_after_a_while(serve, say):
    server = serve(ok_app, handshake_timeout=0.1)
    (sock,) = hang(server.port, 1, say)
    sock.settimeout(5)
    assert sock.recv(1) == b""
    sock.close()


def test_half_a_head_is_dropped_after_a_while(serve, dial):
    server = serve(ok_app, request_timeout=0.1)
    sock = dial(server.port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert read_answer(sock).endswith(b"ok")
    sock.sendall(b"POST / HT")
    assert read_answer(sock).startswith(b"HTTP/1.1 408 ")
    assert sock.recv(1) == b""


def test_half_a_body_is_dropped_after_a_while(serve, dial):
    server = serve(digest_app, request_timeout=0.1)
    sock = dial(server.port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
    assert b" 408 " in read_answer(sock)


def test_with_too_many_connections_the_oldest_silent_one_is_dropped(serve, client, caplog):
    server = serve(ok_app, max_connections=5)
    assert ask(client, server) == "ok"
    socks = hang(server.port, 4)
    with caplog.at_level(logging.WARNING):
        socks += hang(server.port, 1)
        socks[0].settimeout(5)
        assert socks[0].recv(1) == b""
    assert "Too many connections" in caplog.text
    assert ask(client, server) == "ok"
    assert client.connects == 1
    for sock in socks:
        sock.close()


# kept connections


def test_many_kept_connections_are_used_again_without_a_handshake(serve, pki):
    count = 30
    together = threading.Barrier(count)

    def app(_environ, start):
        together.wait(10)
        return reply(start, "ok")

    server = serve(app, threads=count)
    with Client(pki.client(), per_host=count, threads=count) as client:
        calls = [Call("127.0.0.1", server.port, "/", b"[]", 10)] * count
        for _ in range(4):
            answers = client.fan_out(calls, max_parallel=count)
            assert [answer.body for answer in answers] == [b"ok"] * count
        assert client.connects == count
    assert server.handshakes == count


def test_an_idle_connection_is_closed_by_the_server_and_not_used_again(serve, client, dial):
    server = serve(ok_app, idle_timeout=0.1)
    assert ask(client, server) == "ok"
    watcher = dial(server.port)
    watcher.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert read_answer(watcher)
    assert watcher.recv(1) == b""
    assert ask(client, server) == "ok"
    assert client.connects == 2


# who may call


def test_the_application_learns_who_is_calling(serve, client, pki):
    assert ask(client, serve(peer_app)) == f"{pki.digest('client.pem')} node2.example.com"


@pytest.mark.parametrize("cert", [None, "foreign-client.pem", "expired-client.pem"])
def test_nobody_gets_in_without_a_client_certificate_of_the_cluster(serve, pki, cert, caplog):
    called = []

    def app(environ, start):
        called.append(environ)
        return reply(start, "ok")

    server = serve(app)
    with caplog.at_level(logging.INFO), Client(pki.client(cert)) as stranger:
        with pytest.raises(CallError, match=r"TLS error: .*alert"):
            ask(stranger, server)
        with pytest.raises(CallError, match=r"TLS error: .*alert"):
            ask(stranger, server, b"x" * 5_000_000)
    assert called == []
    assert "dropped: " in caplog.text


def test_a_client_refused_while_it_sends_hears_why_at_once(serve, pki):
    """The server's window is small and full when the refusal comes; nothing else would wake it."""
    server = serve(peer_app)
    server._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with Client(pki.client(None)) as stranger:
        for _ in range(10):
            with pytest.raises(CallError, match=r"TLS error: .*alert"):
                ask(stranger, server, b"x" * 5_000_000)


def test_another_tls_library_refused_while_it_sends_is_not_kept_waiting(serve, pki):
    server = serve(peer_app)
    server._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(pki.path("ca.pem"))
    raw = socket.create_connection(("127.0.0.1", server.port), 5)
    with context.wrap_socket(raw, server_hostname="node1.example.com") as sock:
        sock.settimeout(10)

        def send() -> None:
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n" + bytes(5_000_000))
            sock.recv(1)

        with pytest.raises((ssl.SSLError, ConnectionError)):
            send()


def test_a_client_reads_an_answer_that_comes_before_its_request_ended(serve, pki):
    server = serve(peer_app, max_body=1000)
    server._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with Client(pki.client()) as client:
        answer = client.post("127.0.0.1", server.port, "/", b"x" * 5_000_000, 10)
        assert answer.status == 413
        assert "node2.example.com" in ask(client, server)


def test_a_connection_dropped_for_want_of_room_may_have_input_at_that_moment(
    serve, client, caplog, monkeypatch
):
    """One batch of events: a newcomer for whom room is made, then input of the one dropped."""
    server = serve(ok_app, max_connections=5)
    socks = hang(server.port, 4)
    assert retry.retry_until(lambda: len(server._server._conns) == 4 or None, timeout=10)
    accepted, go_on, count_in = threading.Event(), threading.Event(), server._server.count_in

    def accept(conn):
        count_in(conn)
        accepted.set()
        go_on.wait(10)

    with caplog.at_level(logging.INFO):
        monkeypatch.setattr(server._server, "count_in", accept)
        socks += hang(server.port, 1)
        assert accepted.wait(10)
        socks += hang(server.port, 1)
        socks[0].sendall(b"no TLS")
        go_on.set()
        assert client.post("127.0.0.1", server.port, "/", b"", 10).body == b"ok"
    assert "Too many connections" in caplog.text
    assert [record for record in caplog.records if record.exc_info] == []
    for sock in socks:
        sock.close()


def test_without_required_client_certificates_everybody_gets_in(serve, pki):
    context = Identity(pki.path("alone.pem"), None).server_context(require_client=False)
    server = serve(peer_app, context)
    with Client(pki.client(None, "alone.pem")) as client:
        assert ask(client, server) == "None None"


def test_without_tls_nobody_is_known(serve):
    server = serve(peer_app, None)
    with Client(None) as client:
        assert ask(client, server) == "None None"
        assert ask(client, server) == "None None"
        assert client.connects == 1


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_other_tls_libraries_can_talk_to_it(serve, pki, version):
    server = serve(peer_app)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.load_verify_locations(pki.path("ca.pem"))
    context.load_cert_chain(pki.path("client.pem"))
    raw = socket.create_connection(("127.0.0.1", server.port), 5)
    with context.wrap_socket(raw, server_hostname="node1.example.com") as sock:
        for _ in range(2):
            sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            assert b"node2.example.com" in read_answer(sock)


def test_plain_http_on_a_tls_port_is_hung_up(serve, client):
    server = serve(ok_app)
    (sock,) = hang(server.port, 1, b"GET / HTTP/1.0\r\n\r\n")
    sock.settimeout(5)
    while sock.recv(100):
        pass
    sock.close()
    assert ask(client, server) == "ok"


def test_certificates_are_renewed_while_serving(serve, pki, tmp_path, dial, client):
    path = tmp_path / "server.pem"
    path.write_bytes(pki.path("server.pem").read_bytes())
    context = Identity(path, pki.path("ca.pem")).server_context()
    server = serve(ok_app, context)
    assert ask(client, server) == "ok"
    path.write_bytes(pki.path("rsa-server.pem").read_bytes())
    context.reload()
    assert peer_certificate_digest(dial(server.port)) == pki.digest("rsa-server.pem")
    assert ask(client, server) == "ok"
    assert client.connects == 1
    path.write_bytes(b"rubbish")
    with pytest.raises(errors.X509CertError):
        context.reload()
    assert peer_certificate_digest(dial(server.port)) == pki.digest("rsa-server.pem")


# starting, failing, stopping


def test_a_failing_application_gives_500_and_a_log_entry(serve, client, caplog):
    def app(_environ, _start):
        raise ValueError("a bug in the application")

    server = serve(app)
    assert client.post("127.0.0.1", server.port, "/", b"", 10).status == 500
    assert "a bug in the application" in caplog.text


def test_an_address_in_use_is_an_error_and_leaves_nothing(serve):
    server = serve(ok_app, None)
    second = HttpServer(("127.0.0.1", server.port), ok_app)
    with pytest.raises(errors.GenericError, match=f"Cannot listen on 127.0.0.1:{server.port}"):
        second.start()
    assert second.stop()


def test_stop_is_quick_ends_all_threads_and_frees_the_port(pki, client):
    before = set(threading.enumerate())
    server = HttpServer(("127.0.0.1", 0), ok_app, pki.server(), name="rpc")
    port = server.start()
    assert ask(client, server) == "ok"
    (silent,) = hang(port, 1)
    assert {thread.name.split("-")[0] for thread in set(threading.enumerate()) - before} == {"rpc"}
    started = time.monotonic()
    assert server.stop()
    assert server.stop()
    assert time.monotonic() - started < 2
    assert set(threading.enumerate()) == before
    silent.settimeout(5)
    assert silent.recv(1) == b""
    silent.close()
    again = HttpServer(("127.0.0.1", port), ok_app, pki.server())
    with again:
        assert ask(client, again) == "ok"


def test_stop_lets_a_running_request_finish(serve, client):
    running = threading.Event()
    release = threading.Event()

    def app(_environ, start):
        running.set()
        release.wait(5)
        return reply(start, "finished")

    server = serve(app)
    answers = []
    caller = threading.Thread(target=lambda: answers.append(ask(client, server)))
    caller.start()
    assert running.wait(5)
    timer = threading.Timer(0.1, release.set)
    timer.start()
    assert server.stop(5)
    caller.join(5)
    timer.join()
    assert answers == ["finished"]


def test_stop_cuts_clients_that_do_not_finish_their_request(serve, dial):
    server = serve(digest_app)
    sock = dial(server.port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
    started = time.monotonic()
    assert server.stop(0.1)
    assert time.monotonic() - started < 3


def test_stop_tells_when_the_application_does_not_end(serve, dial, caplog):
    release, running = threading.Event(), threading.Event()

    def app(_environ, start):
        running.set()
        release.wait(20)
        return reply(start, "late")

    server = serve(app)
    dial(server.port).sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert running.wait(5)
    started = time.monotonic()
    assert not server.stop(0.1)
    assert time.monotonic() - started < 5
    assert "left behind" in caplog.text
    release.set()


# requests that are collected, and answers that come later


def test_a_slow_body_holds_no_worker(serve, dial):
    server = serve(digest_app, threads=1, collect_body=100_000)
    slow = [dial(server.port) for _ in range(5)]
    for sock in slow:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
    quick = dial(server.port)
    quick.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
    assert read_answer(quick).endswith(hashlib.sha256(b"abc").hexdigest().encode())
    for sock in slow:
        sock.sendall(b"cde")
        assert read_answer(sock).endswith(hashlib.sha256(b"abcde").hexdigest().encode())


def test_a_client_that_waits_for_a_word_before_its_body_gets_it(serve, dial):
    sock = dial(serve(digest_app, collect_body=100_000).port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert sock.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    sock.sendall(b"abc")
    assert read_answer(sock).endswith(hashlib.sha256(b"abc").hexdigest().encode())


def test_a_request_that_takes_too_long_is_cut(serve, dial):
    server = serve(digest_app, request_limit=0.2)
    sock = dial(server.port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
    began = time.monotonic()
    while sock.recv(1000):
        pass
    assert time.monotonic() - began < 3


def test_too_many_header_lines_are_refused(serve, dial):
    sock = dial(serve(ok_app).port)
    lines = b"".join(b"X-%d: y\r\n" % number for number in range(300))
    sock.sendall(b"GET / HTTP/1.1\r\n" + lines + b"\r\n")
    assert read_answer(sock).startswith(b"HTTP/1.1 431 ")


def test_an_application_answers_later_and_the_connection_goes_on(serve, dial):
    """One worker, and yet three clients wait at the same time while another is served."""
    taken = queue.SimpleQueue()

    def app(environ, start):
        if environ["PATH_INFO"] == "/later":
            environ["ganeti.take_over"](taken.put)
            start("500 Dropped", [])
            return [b"dropped"]
        return ok_app(environ, start)

    server = serve(app, threads=1)
    waiting = [dial(server.port) for _ in range(3)]
    for sock in waiting:
        sock.sendall(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n")
    quick = dial(server.port)
    quick.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert read_answer(quick).endswith(b"ok")
    held = [taken.get(timeout=5) for _ in waiting]
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlater"
    for connection in held[:2]:
        assert connection.is_alive()
        assert connection.send(answer) == len(answer)
        connection.give_back()
    held[2].close()
    ends = [read_answer(sock) for sock in waiting]
    assert sorted(ends) == [b"", answer, answer]
    for sock, got in zip(waiting, ends, strict=True):
        if got:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(sock).endswith(b"ok")


def test_a_client_that_leaves_while_it_waits_is_noticed(serve, dial):
    taken = queue.SimpleQueue()

    def app(environ, start):
        environ["ganeti.take_over"](taken.put)
        start("200 OK", [])
        return []

    sock = dial(serve(app).port)
    sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    held = taken.get(timeout=5)
    assert held.is_alive()
    sock.close()
    assert select.select([held], [], [], 5)[0], "nothing tells that the client left"
    assert not held.is_alive()
    held.give_back()  # closes, as the client wanted
    assert held.fileno() == -1


def test_nothing_is_sent_once_more_when_a_broken_connection_is_forgotten(serve, pki, monkeypatch):
    # As Python 3.13 always does: the error of a finalizer is reported.
    monkeypatch.setattr(_pyio, "_IOBASE_EMITS_UNRAISABLE", True, raising=False)
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: reported.append(what.exc_value))
    server = serve(lambda _environ, start: reply(start, "x" * 50_000_000))
    with socket.create_connection(("127.0.0.1", server.port), 5) as raw:
        sock = TLSSocket(raw, pki.client(), server_side=False)
        sock.settimeout(5)
        sock.handshake()
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert sock.recv(10)
        # A reset in the middle of the answer.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.stop()
    gc.collect()
    assert reported == []


def test_slow_chunks_hold_no_worker(serve, dial):
    def app(environ, start):
        body = environ["wsgi.input"].read()
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    server = serve(app, threads=1, collect_body=100_000)
    slow = dial(server.port)
    slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab")
    quick = dial(server.port)
    quick.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxyz")
    assert read_answer(quick).endswith(b"\r\n\r\nxyz")
    slow.sendall(b"c\r\n0\r\n\r\n")
    assert read_answer(slow).endswith(b"\r\n\r\nabc")
