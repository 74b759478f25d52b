"""TLS sockets: both ends, time limits, ends of streams, refusals, renewed certificates."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.net import certs
from ganeti.net.peers import check_peer_name, peer_certificate_digest, peer_common_name
from ganeti.net.tls.contexts import Identity, ReloadableContext
from ganeti.net.tls.stream import TLSError, TLSSocket

Pair = tuple[TLSSocket, TLSSocket]


@pytest.fixture
def connect() -> Iterator[Callable[[ReloadableContext, ReloadableContext], Pair]]:
    """Two connected ends without a handshake: (server, client)."""
    opened: list[TLSSocket] = []

    def make(server: ReloadableContext, client: ReloadableContext) -> Pair:
        left, right = socket.socketpair()
        ends = (
            TLSSocket(left, server, server_side=True),
            TLSSocket(right, client, server_side=False),
        )
        for end in ends:
            end.settimeout(5)
        opened.extend(ends)
        return ends

    yield make
    for sock in opened:
        sock.close()


def shake(server: TLSSocket, client: TLSSocket) -> list[OSError]:
    """Shake hands on both ends; what went wrong on the server."""
    failed: list[OSError] = []

    def accept() -> None:
        try:
            server.handshake()
        except OSError as err:
            failed.append(err)
            server.close()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        client.handshake()
    finally:
        thread.join(5)
    return failed


@pytest.fixture
def pair(pki, connect) -> Pair:
    ends = connect(pki.server(), pki.client())
    assert shake(*ends) == []
    return ends


def test_data_goes_both_ways(pair):
    server, client = pair
    client.sendall(b"question")
    assert server.recv(100) == b"question"
    server.sendall(memoryview(b"answer"))
    buffer = bytearray(100)
    assert client.recv_into(buffer) == 6
    assert buffer[:6] == b"answer"
    assert client.send(b"") == 0


def test_large_data_survives_full_buffers(pair):
    server, client = pair
    data = bytes(range(256)) * 20_000
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    received = bytearray()
    while len(received) < len(data):
        received += server.recv(1 << 20)
    sender.join(5)
    assert received == data


def test_recv_returns_at_most_what_was_asked_and_pending_tells_the_rest(pair):
    server, client = pair
    client.sendall(b"0123456789")
    assert server.recv(4) == b"0123"
    assert server.pending() == 6
    server.push_back(b"ab")
    assert server.pending() == 8
    assert server.recv(1) == b"a"
    assert server.recv(100) == b"b"
    assert server.recv(100) == b"456789"
    assert server.pending() == 0


def test_files_keep_the_connection_open_until_the_last_is_closed(pair):
    server, client = pair
    reader, writer = server.makefile("rb"), server.makefile("wb")
    server.close()
    client.sendall(b"one\ntwo\n")
    assert reader.readline() == b"one\n"
    writer.write(b"reply\n")
    writer.flush()
    assert client.recv(100) == b"reply\n"
    writer.close()
    assert reader.readline() == b"two\n"
    reader.close()
    assert client.recv(100) == b""
    assert server.fileno() == -1


def test_no_data_in_time_is_a_timeout(pair):
    server, _client = pair
    server.settimeout(0.05)
    assert server.gettimeout() == 0.05
    with pytest.raises(TimeoutError, match="timed out"):
        server.recv(1)


def test_sending_to_someone_who_does_not_read_is_a_timeout(pair):
    _server, client = pair
    client.settimeout(0.05)
    with pytest.raises(TimeoutError):
        client.sendall(bytes(50_000_000))


def test_a_deadline_ends_a_stream_of_single_bytes(pair):
    server, client = pair
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.02):
            client.sendall(b".")

    thread = threading.Thread(target=drip)
    thread.start()
    server.deadline = time.monotonic() + 0.2
    with pytest.raises(TimeoutError):
        list(iter(lambda: server.recv(1), b""))
    stop.set()
    thread.join(5)


def test_time_out_zero_never_waits(pair):
    server, client = pair
    server.settimeout(0)
    with pytest.raises(BlockingIOError):
        server.recv(1)
    assert server.try_recv(1) is None
    client.sendall(b"x")
    select.select([server], [], [], 5)
    assert server.try_recv(10) == b"x"


def test_silent_client_does_not_complete_a_handshake(pki, connect):
    server, _client = connect(pki.server(), pki.client())
    assert not server.try_handshake()
    server.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.handshake()


def test_handshake_in_steps(pki, connect):
    server, client = connect(pki.server(), pki.client())
    for _round in range(10):
        done = [client.try_handshake(), server.try_handshake()]
        if all(done):
            break
    assert all(done)
    assert server.peer() is not None


def test_hang_up_during_the_handshake_is_an_error(pki, connect):
    server, client = connect(pki.server(), pki.client())
    client.shutdown()
    with pytest.raises(TLSError, match="hung up during the TLS handshake"):
        server.handshake()


def test_garbage_instead_of_tls_is_an_error(pki):
    left, right = socket.socketpair()
    server = TLSSocket(left, pki.server(), server_side=True)
    right.sendall(b"GET / HTTP/1.0\r\n\r\n")
    with pytest.raises(TLSError, match="http request"):
        server.handshake()
    server.close()
    right.close()


def test_end_with_close_notify_is_an_end_of_file(pair):
    server, client = pair
    client.close()
    assert server.recv(100) == b""
    assert server.recv(100) == b""
    assert server.try_recv(100) == b""


def test_end_without_close_notify_is_an_end_of_file(pair):
    server, client = pair
    client.sendall(b"rest")
    client.shutdown(socket.SHUT_RDWR)
    assert server.recv(100) == b"rest"
    assert server.recv(100) == b""


def test_sending_to_a_closed_connection_is_a_connection_error(pair):
    server, client = pair
    client.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ConnectionError):
        server.sendall(b"x" * 10_000_000)


def test_a_failed_connection_does_not_disturb_another_one_in_the_same_thread(pki, connect):
    broken, other = (connect(pki.server(), pki.client()) for _ in range(2))
    assert shake(*broken) == shake(*other) == []
    broken[0].shutdown(socket.SHUT_RDWR)
    with pytest.raises(BrokenPipeError):
        broken[1].sendall(b"x" * 100_000)
    for operation in (lambda: broken[1].recv(1), lambda: broken[1].sendall(b"x")):
        with pytest.raises(ConnectionError):
            operation()
    assert other[1].try_recv(1) is None
    other[0].sendall(b"fine")
    assert other[1].recv(10) == b"fine"


def test_shutdown_from_another_thread_ends_a_wait(pair):
    server, _client = pair
    server.settimeout(None)
    result = []
    thread = threading.Thread(target=lambda: result.append(server.recv(1)))
    thread.start()
    server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    assert result == [b""]


def test_use_after_close_is_an_error(pair):
    server, _client = pair
    server.close()
    server.close()
    with pytest.raises(OSError, match="closed"):
        server.recv(1)
    with pytest.raises(OSError, match="closed"):
        server.sendall(b"x")


def test_each_end_knows_the_certificate_of_the_other(pki, pair):
    server, client = pair
    assert peer_certificate_digest(server) == pki.digest("client.pem")
    assert peer_common_name(server) == "node2.example.com"
    assert peer_certificate_digest(client) == pki.digest("server.pem")
    check_peer_name(client, "node1.example.com")
    with pytest.raises(TLSError, match=r"node1.example.com answers there, not node9 "):
        check_peer_name(client, "node9")


def test_rsa_certificates_work(pki, connect):
    server, client = connect(pki.server("rsa-server.pem"), pki.client())
    assert shake(server, client) == []
    assert peer_common_name(client) == "node4"


@pytest.mark.parametrize(
    ("cert", "reason"),
    [
        (None, "peer did not return a certificate"),
        ("foreign-client.pem", "its authority is not in the CA file"),
        ("alone.pem", "self-signed"),
        ("expired-client.pem", "it has expired"),
    ],
)
def test_server_refuses_a_client_without_a_good_certificate(pki, connect, cert, reason):
    server, client = connect(pki.server(), pki.client(cert))
    (failure,) = shake(server, client)
    assert isinstance(failure, TLSError)
    assert reason in str(failure)
    with pytest.raises(TLSError, match="alert"):
        client.recv(1)


def test_server_may_do_without_client_certificates(pki, connect):
    context = Identity(pki.path("alone.pem"), None).server_context(require_client=False)
    server, client = connect(context, pki.client(None, "alone.pem"))
    assert shake(server, client) == []
    assert server.peer() is None
    assert peer_certificate_digest(server) == ""
    assert peer_common_name(server) == ""


@pytest.mark.parametrize(
    ("cert", "reason"),
    [
        ("foreign-server.pem", "its authority is not in the CA file"),
        ("client.pem", "not issued for this purpose"),
    ],
)
def test_client_refuses_a_server_that_is_not_of_the_cluster(pki, connect, cert, reason):
    server, client = connect(pki.server(cert), pki.client())
    with pytest.raises(TLSError, match=reason):
        shake(server, client)


def test_a_ca_file_may_hold_several_authorities(pki, connect):
    for cert in ("client.pem", "foreign-client.pem"):
        ends = connect(pki.server(ca="both-ca.pem"), pki.client(cert))
        assert shake(*ends) == []


def test_a_server_certificate_can_call_as_long_as_a_node_has_no_other(pki, connect):
    assert shake(*connect(pki.server(), pki.client("server.pem"))) == []


# files


def copy(pki, directory: Path, name: str, target: str) -> Path:
    path = directory / target
    path.unlink(missing_ok=True)
    path.write_bytes(pki.path(name).read_bytes())
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        (b"rubbish", "holds no usable certificate"),
        (b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "passphrase"),
    ],
)
def test_a_bad_certificate_file_is_named(pki, tmp_path, content, reason):
    path = tmp_path / "server.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(errors.X509CertError) as caught:
        Identity(path, pki.path("ca.pem")).server_context()
    assert caught.value.args[0] == str(path)
    assert reason in caught.value.args[1]


def test_a_key_of_another_certificate_is_refused(pki, tmp_path):
    path = tmp_path / "server.pem"
    ca = pki.authority
    mixed = certs.Credential(certs.issue_server(ca, "a").key, certs.issue_server(ca, "b").cert)
    certs.write(path, mixed)
    with pytest.raises(errors.X509CertError, match="private key"):
        Identity(path, pki.path("ca.pem")).server_context()


def test_a_bad_ca_file_is_named(pki, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_bytes(b"rubbish")
    with pytest.raises(errors.X509CertError, match="no usable authority"):
        Identity(pki.path("client.pem"), path).client_context()


def test_incomplete_identities_are_bugs(pki):
    with pytest.raises(errors.ProgrammerError, match="CA file"):
        Identity(pki.path("server.pem"), None).server_context()
    with pytest.raises(errors.ProgrammerError, match="CA file"):
        Identity(None, None).client_context()


def test_new_connections_get_a_renewed_certificate_and_old_ones_live_on(pki, connect, tmp_path):
    path = copy(pki, tmp_path, "server.pem", "server.pem")
    context = Identity(path, pki.path("ca.pem")).server_context()
    old = connect(context, pki.client())
    assert shake(*old) == []
    copy(pki, tmp_path, "rsa-server.pem", "server.pem")
    context.reload()
    new = connect(context, pki.client())
    assert shake(*new) == []
    assert peer_certificate_digest(old[1]) == pki.digest("server.pem")
    assert peer_certificate_digest(new[1]) == pki.digest("rsa-server.pem")
    old[0].sendall(b"still here")
    assert old[1].recv(100) == b"still here"


def test_a_broken_renewal_keeps_the_last_good_certificate(pki, connect, tmp_path, caplog):
    path = copy(pki, tmp_path, "server.pem", "server.pem")
    context = Identity(path, pki.path("ca.pem")).server_context()
    path.unlink()
    path.write_bytes(b"rubbish")
    with caplog.at_level(logging.ERROR), pytest.raises(errors.X509CertError):
        context.reload()
    assert "stays the old one" in caplog.text
    assert str(path) in caplog.text
    server, client = connect(context, pki.client())
    assert shake(server, client) == []
    assert peer_certificate_digest(client) == pki.digest("server.pem")


def test_reload_if_changed_looks_at_the_files(pki, tmp_path):
    path = copy(pki, tmp_path, "server.pem", "server.pem")
    context = Identity(path, pki.path("ca.pem")).server_context()
    first = context.current()
    assert not context.reload_if_changed()
    assert context.current() is first
    copy(pki, tmp_path, "rsa-server.pem", "server.pem")
    assert context.reload_if_changed()
    assert context.current() is not first
    path.unlink()
    with pytest.raises(errors.X509CertError):
        context.reload_if_changed()
    assert not context.reload_if_changed()
