"""Framed messages over Unix sockets: halves, limits, long paths, who is calling, errors."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.net import unix_socket
from ganeti.net.unix_socket import FramedClient, FrameReader, frame


def test_a_frame_ends_with_the_terminator():
    assert frame(b'{"a":1}') == b'{"a":1}\x03'
    assert frame(b"") == b"\x03"


def test_what_cannot_be_framed_is_refused():
    with pytest.raises(errors.ProtocolError, match="0x03"):
        frame(b"a\x03b")
    with pytest.raises(errors.ProtocolError, match="11 bytes"):
        frame(b"x" * 11, max_size=10)
    assert frame(b"x" * 10, max_size=10)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_messages_come_out_whole_however_the_stream_is_cut(size):
    stream = b"one\x03two\x03\x03four\x03fi"
    reader, found = FrameReader(), []
    for start in range(0, len(stream), size):
        found += reader.feed(stream[start : start + size])
    assert found == [b"one", b"two", b"", b"four"]
    assert reader.partial
    assert reader.feed(b"ve\x03") == [b"five"]
    assert not reader.partial


def test_a_message_over_the_limit_is_refused_before_its_end():
    reader = FrameReader(max_size=10)
    assert reader.feed(b"0123456789\x03") == [b"0123456789"]
    assert reader.feed(b"01234") == []
    with pytest.raises(errors.ProtocolError, match="larger than 10 bytes"):
        reader.feed(b"567890")
    with pytest.raises(errors.ProtocolError):
        FrameReader(max_size=3).feed(b"abcd\x03")


def test_a_large_message_in_many_pieces_takes_linear_time():
    reader = FrameReader()
    piece = b"x" * 4096
    started = time.monotonic()
    for _ in range(5000):
        assert reader.feed(piece) == []
    (message,) = reader.feed(b"\x03")
    assert len(message) == 5000 * 4096
    assert time.monotonic() - started < 5


# a server by hand


@pytest.fixture
def listen(tmp_path) -> Iterator[Callable[..., Path]]:
    """Listen with a handler for each connection; gives the path of the socket."""
    socks, threads = [], []

    def start(handler: Callable[[socket.socket], None], path: Path | None = None) -> Path:
        where = path or tmp_path / "sock"
        sock = unix_socket.listen(where, 0o600)
        socks.append(sock)

        def serve() -> None:
            while True:
                try:
                    conn, _ = sock.accept()
                except OSError:
                    return
                with conn:
                    handler(conn)

        thread = threading.Thread(target=serve)
        thread.start()
        threads.append(thread)
        return where

    yield start
    for sock in socks:
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
    for thread in threads:
        thread.join(5)


def echo(conn: socket.socket) -> None:
    reader = FrameReader()
    while data := conn.recv(4096):
        for message in reader.feed(data):
            conn.sendall(frame(b"you said: " + message))


def test_requests_and_answers_alternate_on_one_connection(listen):
    with FramedClient(listen(echo)) as client:
        assert client.call(b"hello") == b"you said: hello"
        assert client.call(b"") == b"you said: "
        large = b"x" * 3_000_000
        assert client.call(large) == b"you said: " + large


def test_paths_longer_than_a_socket_address_work(listen, tmp_path):
    directory = tmp_path / ("d" * 100) / ("e" * 100)
    directory.mkdir(parents=True)
    path = listen(echo, directory / "ganeti-query")
    assert len(str(path)) > 200
    assert os.listdir(directory) == ["ganeti-query"]
    with FramedClient(path) as client:
        assert client.call(b"hello") == b"you said: hello"


def test_nobody_listening_means_no_master(tmp_path):
    with pytest.raises(errors.NoMasterError, match="not the master or its daemon does not run"):
        FramedClient(tmp_path / "sock")
    with pytest.raises(errors.NoMasterError):
        FramedClient(tmp_path / ("x" * 120) / "sock")
    dead = unix_socket.listen(tmp_path / "dead", 0o600)
    dead.close()
    with pytest.raises(errors.NoMasterError):
        FramedClient(tmp_path / "dead")


def test_waiting_for_a_daemon_that_starts(listen, tmp_path):
    path = tmp_path / "sock"
    timer = threading.Timer(0.15, lambda: listen(echo, path))
    timer.start()
    with FramedClient(path, retry_connect=True, connect_timeout=5) as client:
        assert client.call(b"hello") == b"you said: hello"
    timer.join()


def test_waiting_for_a_daemon_that_does_not_start_is_limited(tmp_path):
    started = time.monotonic()
    with pytest.raises(errors.NoMasterError):
        FramedClient(tmp_path / "sock", retry_connect=True, connect_timeout=0.2)
    assert 0.15 < time.monotonic() - started < 3


@pytest.fixture
def busy(tmp_path) -> Iterator[tuple[Path, socket.socket]]:
    """A listener whose queue of connections is full."""
    path = tmp_path / "busy"
    sock = unix_socket.listen(path, 0o600, backlog=0)
    filler = socket.socket(socket.AF_UNIX)
    filler.connect(str(path))
    yield path, sock
    filler.close()
    sock.close()


def test_a_busy_daemon_is_waited_for(busy):
    path, sock = busy
    accepted = []
    timer = threading.Timer(0.1, lambda: accepted.append(sock.accept()[0]))
    timer.start()
    with FramedClient(path, connect_timeout=5) as client:
        timer.join()
        assert client.is_idle()
    accepted[0].close()


def test_a_daemon_that_is_busy_for_too_long_is_a_timeout(busy):
    path, _sock = busy
    with pytest.raises(errors.TimeoutError, match=r"took no connection within 0\.1 seconds"):
        FramedClient(path, connect_timeout=0.1)


def test_no_answer_in_time_is_a_timeout_and_ends_the_connection(listen):
    release = threading.Event()
    path = listen(lambda _conn: release.wait(5))
    client = FramedClient(path, io_timeout=0.05)
    with pytest.raises(errors.TimeoutError, match=r"no progress for 0\.05 seconds"):
        client.call(b"hello")
    release.set()
    with pytest.raises(errors.ConnectionClosedError, match="is closed"):
        client.call(b"again")
    client.close()


def test_an_answer_that_drips_in_is_limited_in_all(listen):
    stop = threading.Event()

    def drip(conn: socket.socket) -> None:
        while not stop.wait(0.02):
            try:
                conn.send(b".")
            except OSError:
                return

    client = FramedClient(listen(drip), io_timeout=0.1)
    started = time.monotonic()
    with pytest.raises(errors.TimeoutError):
        client.call(b"hello")
    assert time.monotonic() - started < 2
    stop.set()


def test_a_daemon_that_does_not_read_is_a_timeout(listen):
    release = threading.Event()
    path = listen(lambda _conn: release.wait(5))
    client = FramedClient(path, io_timeout=0.05)
    with pytest.raises(errors.TimeoutError, match="sending"):
        client.call(b"x" * 5_000_000)
    release.set()


@pytest.mark.parametrize(
    ("answer", "words"), [(b"", "without an answer"), (b"half", "in the middle of an answer")]
)
def test_a_hang_up_is_told_from_a_half_answer(listen, answer, words):
    def half(conn: socket.socket) -> None:
        conn.recv(100)
        conn.sendall(answer)

    client = FramedClient(listen(half))
    with pytest.raises(errors.ConnectionClosedError, match=words):
        client.call(b"hello")
    with pytest.raises(errors.ConnectionClosedError):
        client.recv()


def test_an_answer_over_the_limit_is_refused(listen):
    client = FramedClient(listen(echo), max_size=15)
    assert client.call(b"hello") == b"you said: hello"
    with pytest.raises(errors.ProtocolError, match="larger than 15 bytes"):
        client.call(b"hello!")
    with pytest.raises(errors.ConnectionClosedError):
        client.call(b"hello")


def test_two_answers_to_one_request_are_refused(listen):
    def double(conn: socket.socket) -> None:
        conn.recv(100)
        conn.sendall(b"one\x03two\x03")

    with pytest.raises(errors.ProtocolError, match="more than one answer"):
        FramedClient(listen(double)).call(b"hello")


# listening


def test_a_socket_has_its_mode_and_group(tmp_path):
    path = tmp_path / "sock"
    with unix_socket.listen(path, 0o660, os.getgid()):
        info = path.stat()
    assert stat.S_ISSOCK(info.st_mode)
    assert stat.S_IMODE(info.st_mode) == 0o660
    assert info.st_gid == os.getgid()


def test_the_socket_of_a_dead_process_is_replaced(tmp_path):
    path = tmp_path / "sock"
    unix_socket.listen(path, 0o600).close()
    with unix_socket.listen(path, 0o600):
        FramedClient(path).close()
    assert os.listdir(tmp_path) == ["sock"]


def test_the_socket_of_a_living_process_is_not_taken(tmp_path):
    path = tmp_path / "sock"
    with unix_socket.listen(path, 0o600):
        with pytest.raises(errors.LuxiError, match="another process does"):
            unix_socket.listen(path, 0o600)
        FramedClient(path).close()


def test_listening_where_it_is_impossible_names_the_path(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(errors.LuxiError, match="not a socket"):
        unix_socket.listen(tmp_path / "file", 0o600)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(errors.LuxiError, match="No such file"):
        unix_socket.listen(tmp_path / "missing" / "sock", 0o600)


def test_the_kernel_tells_who_is_calling(tmp_path):
    path = tmp_path / "sock"
    with unix_socket.listen(path, 0o600) as sock, FramedClient(path):
        conn, _ = sock.accept()
        with conn:
            who = unix_socket.peer_credentials(conn)
    assert who == unix_socket.Credentials(os.getpid(), os.getuid(), os.getgid())
