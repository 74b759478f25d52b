"""Rubbish on every kind of socket: it costs nobody else anything, and it always ends."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from OpenSSL import SSL
from OpenSSL._util import lib as _openssl

from ganeti import errors
from ganeti.net import unix_socket
from ganeti.net.http_client import Client
from ganeti.net.http_link import Call, CallError, Response
from ganeti.net.tls.stream import TLSSocket
from ganeti.net.unix_socket import FramedClient, FrameReader, frame

HOST = "127.0.0.1"
GOOD = b"POST /good HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

fuzz = examples(
    60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def call_to(port: int, path: str) -> Call:
    return Call(HOST, port, path, b"[]", timeout=0.8, connect_timeout=0.8)


class Recorder:
    """An application that remembers which bodies it was given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        self.bodies.append(environ["wsgi.input"].read())
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]


@st.composite
def damage_request(draw: st.DrawFn) -> bytes:
    """A good request with a piece replaced."""
    begin = draw(st.integers(0, len(GOOD)))
    end = draw(st.integers(begin, len(GOOD)))
    return GOOD[:begin] + draw(st.binary(max_size=20)) + GOOD[end:]


def rest_of(sock: Any) -> bytes:
    """Everything that still comes until the other side hangs up."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            data += piece
    return data


# the HTTP server


def test_rubbish_instead_of_http_is_refused_or_hung_up(serve):
    app = Recorder()
    server = serve(app, None, threads=2)

    @fuzz
    @given(st.one_of(st.binary(max_size=200), damage_request()))
    @example(b"\r\n\r\n\r\n\r\n")
    @example(b"GET " + b"/" * 70_000)
    @example(GOOD.replace(b"4\r\n", b"99999999999999999999999\r\n"))
    @example(GOOD.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked"))
    @example(GOOD.replace(b"/good", b"/%00%ff%zz"))
    def send(data: bytes) -> None:
        with socket.create_connection((HOST, server.port), 5) as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            answer = rest_of(sock)
        assert answer == b"" or answer.startswith(b"HTTP/1.")

    send()
    with Client(None) as client:
        assert client.post(HOST, server.port, "/x", b"after", 5).body == b"ok"
    assert app.bodies[-1] == b"after"


@pytest.mark.parametrize("cut", [1, 3, len(GOOD) - 1])
def test_a_cut_request_is_never_executed(serve, cut):
    app = Recorder()
    server = serve(app, None, threads=2)
    with socket.create_connection((HOST, server.port), 5) as sock:
        sock.sendall(GOOD[:-cut])
        sock.shutdown(socket.SHUT_WR)
        assert b" 200 " not in rest_of(sock)
    assert app.bodies == []


def test_rubbish_instead_of_tls_is_hung_up_and_disturbs_nobody(serve, client):
    server = serve(Recorder(), threads=2)
    assert client.post(HOST, server.port, "/x", b"1", 5).status == 200

    @fuzz
    @given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(b"\x16\x03\x01".__add__)))
    @example(b"GET / HTTP/1.1\r\n\r\n")
    @example(b"\x80\x2e\x01\x00\x02")
    def send(data: bytes) -> None:
        with socket.create_connection((HOST, server.port), 5) as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            assert b"HTTP/1.1 200" not in rest_of(sock)

    send()
    assert client.post(HOST, server.port, "/x", b"2", 5).status == 200
    assert client.connects == 1


def test_rubbish_inside_tls_ends_that_connection_only(serve, client, dial):
    server = serve(Recorder(), threads=2)
    assert client.post(HOST, server.port, "/x", b"1", 5).status == 200
    for data in (b"\0" * 100, b"POST\r\n\r\n", b"A" * 70_000, b"\r\n\r\n", b"X / HTTP/9.9\r\n\r\n"):
        sock = dial(server.port)
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        assert b" 200 " not in rest_of(sock)
    assert client.post(HOST, server.port, "/x", b"2", 5).status == 200
    assert client.connects == 1


def test_a_damaged_record_in_the_middle_of_a_body_is_an_error(serve, dial, caplog):
    app = Recorder()
    server = serve(app, threads=2)
    sock = dial(server.port)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
    # Behind the back of TLS: a record that nobody has encrypted.
    sock._sock.sendall(b"\x17\x03\x03\x00\x20" + b"y" * 32)
    assert b" 200 " not in rest_of_damaged(sock)
    assert app.bodies == []
    assert not [r for r in caplog.records if r.levelno >= logging.CRITICAL]


def rest_of_damaged(sock: TLSSocket) -> bytes:
    with contextlib.suppress(OSError):
        return rest_of(sock)
    return b""


def test_many_large_bodies_travel_over_one_connection(serve, client):
    digests: list[str] = []

    def app(environ, start):
        digests.append(hashlib.sha256(environ["wsgi.input"].read()).hexdigest())
        start("200 OK", [("Content-Length", "0")])
        return []

    server = serve(app, threads=2)
    bodies = [bytes([number]) * (300_000 * number + number) for number in (1, 9, 2, 5, 0)]
    for body in bodies:
        assert client.post(HOST, server.port, "/x", body, 20).status == 200
    assert digests == [hashlib.sha256(body).hexdigest() for body in bodies]
    assert (client.connects, server.handshakes) == (1, 1)


def test_large_bodies_sent_behind_each_other_do_not_mix(serve, dial):
    app = Recorder()
    server = serve(app, threads=2)
    bodies = [b"a" * 200_000, b"b" * 70_001, b"c"]
    sock = dial(server.port)
    sender = threading.Thread(
        target=sock.sendall,
        args=(
            b"".join(
                b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
                for body in bodies
            ),
        ),
    )
    sender.start()
    sender.join(10)
    answers = b""
    while answers.count(b"\r\n\r\nok") < len(bodies):
        piece = sock.recv(65536)
        assert piece
        answers += piece
    assert app.bodies == bodies


def padded(total: int) -> bytes:
    """A request of so many bytes in all."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %06d\r\n\r\n"
    size = total - len(head % 0)
    return head % size + b"x" * size


@pytest.mark.parametrize("total", [1024, 8192, 16384, 32768, 65536])
def test_a_request_that_came_with_the_one_before_is_not_forgotten(serve, dial, total):
    # The first one ends where a buffer ends, so the second one lies in another buffer, and no
    # event of the kernel will ever announce it.
    server = serve(Recorder(), threads=1)
    sock = dial(server.port)
    sock.sendall(padded(total) + padded(100) + padded(total) + padded(100))
    answers = b""
    while answers.count(b"\r\n\r\nok") < 4:
        piece = sock.recv(65536)
        assert piece
        answers += piece


def test_an_error_that_somebody_left_in_the_thread_is_not_taken_for_ours(serve, dial):
    # OpenSSL keeps a queue of errors per thread; a failed call of any user of the library
    # fills it.
    server = serve(Recorder(), threads=1)
    sock = dial(server.port)
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    assert _openssl.SSL_CTX_use_certificate_chain_file(context._context, b"/no/such/file") != 1
    assert sock.try_recv(1) is None
    sock.sendall(GOOD)
    assert _openssl.SSL_CTX_use_certificate_chain_file(context._context, b"/no/such/file") != 1
    assert sock.recv(4096).startswith(b"HTTP/1.1 200")


# the HTTP client


class Parrot:
    """A plain server that reads a head and answers every connection with the same bytes."""

    def __init__(self) -> None:
        self.answer = b""
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):
                conn.settimeout(5)
                seen = b""
                while b"\r\n\r\n" not in seen:
                    seen += conn.recv(65536) or b"\r\n\r\n"
                conn.sendall(self.answer)
                conn.shutdown(socket.SHUT_WR)
                conn.recv(1)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    one = Parrot()
    yield one
    one.stop()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@st.composite
def damaged_answer(draw: st.DrawFn) -> bytes:
    begin = draw(st.integers(0, len(OK)))
    end = draw(st.integers(begin, len(OK)))
    return OK[:begin] + draw(st.binary(max_size=20)) + OK[end:]


def test_any_answer_is_a_response_or_a_named_error(parrot):
    with Client(None, max_response=1000) as client:

        @fuzz
        @given(st.one_of(st.binary(max_size=200), damaged_answer()))
        @example(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n" + b"x" * 2000)
        @example(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok")
        @example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        @example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n")
        @example(b"HTTP/1.1 100 Continue\r\n\r\n" * 200)
        @example(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n")
        @example(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000)
        @example(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000)
        def ask(answer: bytes) -> None:
            parrot.answer = answer
            (result,) = client.fan_out([call_to(parrot.port, "/x")])
            if isinstance(result, Response):
                assert len(result.body) <= 1000
            else:
                assert isinstance(result, CallError)
                assert result.args[0].startswith(f"{HOST}:{parrot.port}: ")
                assert result.may_have_run

        ask()
        parrot.answer = OK
        client.renew()  # the other side may be closing the connection that was kept
        assert client.post(HOST, parrot.port, "/x", b"[]", 5).body == b"ok"


# fan-out


def test_forty_servers_with_dead_and_slow_ones_take_one_time_out(serve, client):
    release = threading.Event()

    def app(environ, start):
        if environ["PATH_INFO"] == "/slow":
            release.wait(20)
        start("200 OK", [("Content-Length", "0")])
        return []

    good = [serve(app, threads=1) for _ in range(30)]
    slow = [serve(app, threads=1) for _ in range(4)]
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(3)]
        dead = [socket.create_server((HOST, 0)) for _ in range(3)]
        calls = [call_to(server.port, "/quick") for server in good]
        calls += [call_to(server.port, "/slow") for server in slow]
        calls += [call_to(sock.getsockname()[1], "/quick") for sock in silent + dead]
        for sock in dead:
            sock.close()
        started = time.monotonic()
        results = client.fan_out(calls)
        taken = time.monotonic() - started
        release.set()
    assert [type(result) for result in results[:30]] == [Response] * 30
    errs = results[30:]
    assert all(isinstance(err, CallError) for err in errs)
    assert [err.may_have_run for err in errs] == [True] * 4 + [False] * 6
    # One after the other they would take seven time-outs.
    assert taken < 4 * 0.8


# Unix sockets


@given(
    st.lists(st.binary(max_size=30).map(lambda raw: raw.replace(b"\x03", b"")), max_size=8),
    st.data(),
)
def test_messages_survive_any_cut_of_the_stream(messages: list[bytes], data: st.DataObject):
    stream = b"".join(map(frame, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader, seen = FrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)]):
        seen += reader.feed(stream[begin:end])
    assert seen == messages
    assert not reader.partial


def test_any_answer_of_a_daemon_is_a_message_or_a_named_error(tmp_path):
    path = tmp_path / "sock"
    answers: list[bytes] = []
    listener = unix_socket.listen(path, 0o600)

    def serve() -> None:
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):
                conn.recv(65536)
                conn.sendall(answers[-1])

    thread = threading.Thread(target=serve)
    thread.start()

    @fuzz
    @given(st.binary(max_size=100))
    @example(b"")
    @example(b"\x03")
    @example(b"\x03\x03")
    @example(b"x" * 200_000)
    def ask(answer: bytes) -> None:
        answers.append(answer)
        with FramedClient(path, io_timeout=5, max_size=100_000) as client:
            try:
                assert client.call(b"hello") + b"\x03" == answer
            except errors.LuxiError:
                assert answer.count(b"\x03") != 1 or not answer.endswith(b"\x03")

    ask()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)
