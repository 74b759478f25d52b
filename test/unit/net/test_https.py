"""Requests to servers outside of the cluster: what is refused, and servers that take their time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from https_server import Reply, serve

from ganeti import errors
from ganeti.net import certs, https


def test_an_answer_is_read_with_its_headers(tmp_path: Path) -> None:
    with serve(tmp_path, lambda request: Reply(200, request.body, {"X-Mark": "m"})) as server:
        context = https.make_context(server.authority)
        answer = https.request(
            "POST", f"{server.url}/a?b=c", context=context, timeout=10, body=b"hello"
        )
    assert (answer.status, answer.body, answer.headers["x-mark"]) == (200, b"hello", "m")
    assert server.requests[0].path == "/a?b=c"


def test_the_name_in_the_certificate_counts(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        context = https.make_context(server.authority)
        url = server.url.replace("localhost", "127.0.0.2")
        with pytest.raises(errors.RemoteError, match=r"refused|not accepted"):
            https.request("GET", url, context=context, timeout=10)
    assert server.requests == []


def test_a_server_that_answers_in_crumbs_is_cut_off(tmp_path: Path) -> None:
    credential = certs.self_signed("localhost", ["127.0.0.1"])
    certs.write(tmp_path / "server.pem", credential)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def trickle() -> None:
        raw, _peer = listener.accept()
        try:
            with tls.wrap_socket(raw, server_side=True) as stream:
                stream.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not done.wait(0.05):
                    stream.sendall(b"x")
        except OSError:
            return

    thread = threading.Thread(target=trickle)
    thread.start()
    begin = time.monotonic()
    url = f"https://localhost:{listener.getsockname()[1]}/"
    with pytest.raises(errors.RemoteError):
        https.request("GET", url, context=https.make_context(credential.cert.decode()), timeout=1.0)
    assert time.monotonic() - begin < 30
    done.set()
    thread.join()
    listener.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "https://",
        "ftp://x/",
        "https://u:p@x/",
        "https://x/a b",
        "https://x:y/",
    ],
)
def test_what_is_not_an_https_url_is_refused(url: str) -> None:
    with pytest.raises(errors.ParameterError):
        https.check_url(url)


def test_certificates_that_cannot_be_read_are_refused() -> None:
    for text in ("", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(errors.ParameterError):
            https.make_context(text)


@pytest.mark.parametrize("surplus", [0, 1])
def test_a_longer_answer_than_allowed_is_none(tmp_path: Path, surplus: int) -> None:
    assert https.MOST == 65536
    size = https.MOST + surplus
    with serve(tmp_path, lambda request: Reply(200, b"x" * size)) as server:
        context = https.make_context(server.authority)
        if not surplus:
            assert len(https.request("GET", server.url, context=context, timeout=10).body) == size
            return
        with pytest.raises(errors.RemoteError, match="answers with more than 65536 bytes"):
            https.request("GET", server.url, context=context, timeout=10)


def test_why_a_server_is_not_used_is_in_the_message(tmp_path: Path) -> None:
    other = certs.self_signed("other", ["127.0.0.1"])
    with serve(tmp_path) as server:
        context = https.make_context(other.cert.decode())
        with pytest.raises(errors.RemoteError, match=r"its certificate is not accepted: .*self"):
            https.request("GET", server.url, context=context, timeout=10)
        url = server.url
    with pytest.raises(errors.RemoteError, match="Connection refused"):
        https.request("GET", url, context=context, timeout=10)


def test_the_whole_answer_may_take_twice_the_time_of_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Noting(threading.Timer):
        def start(self) -> None:
            made.append((self.interval, self.daemon))
            super().start()

    monkeypatch.setattr(threading, "Timer", Noting)
    with serve(tmp_path) as server:
        context = https.make_context(server.authority)
        assert https.request("GET", server.url, context=context, timeout=7).status == 204
    assert made == [(14, True)]
