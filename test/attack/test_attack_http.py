"""Malformed HTTP: a clear refusal or a closed connection, and the next request is its own."""

from __future__ import annotations

import contextlib

import pytest
from arena import Arena
from rapi_daemon import basic

POST = b"POST /2/instances HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /2/info HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /2/nodes HTTP/1.1\r\nHost: x\r\n\r\n"

HEADS = {
    "negative_length": POST + b"Content-Length: -1\r\n\r\n",
    "length_is_no_number": POST + b"Content-Length: ten\r\n\r\n",
    "length_with_plus": POST + b"Content-Length: +2\r\n\r\n{}",
    "huge_length": POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "two_lengths": POST + b"Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}" + SMUGGLED,
    "length_and_chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n" + SMUGGLED,
    "chunk_size_is_no_number": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "negative_chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "huge_chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
    "unknown_transfer_encoding": POST + b"Transfer-Encoding: gzip, x\r\n\r\n",
    "obfuscated_transfer_encoding": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "nul_in_the_path": b"GET /2/info\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul_in_a_header": GET + b"X-A: a\x00b\r\n\r\n",
    "bare_carriage_return": GET + b"X-A: a\rX-B: b\r\n\r\n",
    "header_without_colon": GET + b"this is not a header\r\n\r\n",
    "header_without_name": GET + b": value\r\n\r\n",
    "no_version": b"GET /2/info\r\n\r\n",
    "unknown_version": b"GET /2/info HTTP/9.9\r\nHost: x\r\n\r\n",
    "unknown_method": b"BREW /2/info HTTP/1.1\r\nHost: x\r\n\r\n",
    "encoded_line_break_in_the_path": b"GET /2/info%0d%0aX:%20y HTTP/1.1\r\nHost: x\r\n\r\n",
    "head_of_a_megabyte": GET + b"X-A: " + b"x" * 1_000_000 + b"\r\n\r\n",
    "ten_thousand_headers": GET + b"X-A: 1\r\n" * 10_000 + b"\r\n",
    "path_outside_of_the_api": b"GET /2/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
}
#: Those that a server may read in a harmless way.
HARMLESS = {
    "nul_in_a_header",
    "bare_carriage_return",
    "header_without_colon",
    "header_without_name",
    "length_with_plus",
}


@pytest.mark.parametrize("name", HEADS)
def test_http_head(arena: Arena, name: str) -> None:
    with arena.check_served(), arena.rapi.dial(arena.rapi.fresh_address()) as sock:
        sock.settimeout(5)
        answer = b""
        with contextlib.suppress(OSError):
            sock.sendall(HEADS[name])
            while data := sock.recv(65536):
                answer += data
                if b"\r\n\r\n" in answer and name in HARMLESS:
                    break
        statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
        assert all(status[:1] in b"45" or status == b"501" for status in statuses) or (
            name in HARMLESS and len(statuses) == 1
        ), answer[:300]
        assert len(statuses) <= 1, "a smuggled request was answered"
        assert b"Traceback" not in answer


DIGITS = b"9" * 100_000
BODIES = {
    "deep_nesting": b"[" * 200_000,
    "deep_objects": b'{"a":' * 100_000,
    "100000_digits": b'{"instance_name": %s}' % DIGITS,
    "duplicate_keys": b'{"name": "a", "name": "b"}',
    "lone_surrogate": b'{"name": "\\ud800"}',
    "not_utf_8": b'{"name": "\xff\xfe"}',
    "infinity": b'{"memory": Infinity, "x": NaN, "y": 1e999}',
    "no_object": b'"text"',
}


@pytest.mark.parametrize("name", BODIES)
def test_http_json_body(arena: Arena, name: str) -> None:
    head = POST + b"Authorization: " + basic(arena.rapi.user, arena.rapi.password).encode()
    body = BODIES[name]
    with arena.check_served(), arena.rapi.dial(arena.rapi.fresh_address()) as sock:
        sock.settimeout(20)
        sock.sendall(
            head
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        answer = sock.recv(65536)
        assert answer.startswith(b"HTTP/1.1 400 "), answer[:300]
        assert b"Traceback" not in answer
