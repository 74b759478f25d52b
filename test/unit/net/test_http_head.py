"""When a request is complete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti.net.http_head import MAX_HEAD, RequestHead

LIMIT = 1000
PLAIN = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n!\r\n0\r\n\r\n"
)
TRAILER = CHUNKED[:-2] + b"X-Sum: 7\r\n\r\n"


@given(st.sampled_from([PLAIN, CHUNKED, TRAILER]), st.lists(st.integers(1, 40)))
def test_a_request_is_complete_with_its_last_byte_however_it_comes(request_, sizes):
    head = RequestHead(LIMIT)
    at = 0
    for size in sizes:
        piece = request_[at : at + size]
        at += len(piece)
        if piece:
            assert head.feed(piece) == (at == len(request_))
    if at < len(request_):
        assert head.feed(request_[at:])
    assert head.content() == request_


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"x" * (MAX_HEAD + 1),
    ],
)
def test_what_need_not_be_waited_for_goes_to_a_worker(request_):
    assert RequestHead(LIMIT).feed(request_)


def test_endless_chunks_are_not_collected_without_limit():
    head = RequestHead(LIMIT)
    assert not head.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    assert any(head.feed(chunk) for _ in range(100))
    assert len(head) < LIMIT + MAX_HEAD + 2000


def test_a_client_that_waits_for_a_word_gets_it_once():
    request_ = PLAIN.replace(b"Host: x\r\n", b"Expect: 100-continue\r\n")
    head = RequestHead(LIMIT)
    assert not head.feed(request_[:-5])
    assert head.wants_continue
    assert head.feed(b"hello")
    assert b"xpect" not in head.content()
    assert head.content().endswith(b"\r\n\r\nhello")
    # Who sends the body at once waits for nothing.
    head = RequestHead(LIMIT)
    assert head.feed(request_)
    assert not head.wants_continue


def test_nothing_is_collected_where_it_is_not_wanted():
    assert RequestHead(0).feed(PLAIN[:-5])
    assert RequestHead(0).feed(CHUNKED[:60])


@pytest.mark.parametrize(
    ("size", "malformed"), [(b"zz", True), (b"-2", True), (b"+2", True), (b"2", False)]
)
def test_a_chunk_without_a_proper_size_is_malformed(size: bytes, malformed: bool):
    head = RequestHead(1000)
    assert head.feed(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}\r\n0\r\n\r\n"
    )
    assert head.is_malformed is malformed
