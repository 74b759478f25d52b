"""Downloads from a real HTTP server that breaks off, forgets or refuses."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.images import source, web

DATA = os.urandom(1 << 20)
SHA256 = hashlib.sha256(DATA).hexdigest()
MOST = 8 << 20


class Server(HTTPServer):
    """Serves ``DATA``, and breaks off after ``cuts`` bytes, one for each request, then no more."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/disk.raw"
        self.cuts: list[int] = []
        self.tags = ['"one"']
        self.resumes = True
        #: Header Range of each request.
        self.ranges: list[str | None] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers["Range"]
        server.ranges.append(wanted)
        if self.path != "/disk.raw":
            self.send_error(404)
            return
        tag = server.tags.pop(0) if len(server.tags) > 1 else server.tags[0]
        goes_on = wanted and server.resumes and self.headers["If-Range"] == tag
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if goes_on else 0
        data = DATA[start:]
        self.send_response(206 if goes_on else 200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag)
        self.end_headers()
        self.wfile.write(data[: server.cuts.pop(0)] if server.cuts else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def download(url: str, target: int, most: int = MOST) -> str:
    return web.download(url, target, lambda _done, _size: None, most=most)


def read(target: int) -> bytes:
    return os.pread(target, 2 * len(DATA), 0)


def test_whole_file_and_how_far_it_is(server: Server, target: int) -> None:
    told: list[tuple[int, int]] = []
    found = web.download(server.url, target, lambda *far: told.append(far), most=MOST)
    assert (found, read(target)) == (SHA256, DATA)
    assert told[-1] == (len(DATA), len(DATA))
    assert [done for done, _size in told] == sorted({done for done, _size in told})


def test_download_that_broke_off_goes_on_where_it_was(server: Server, target: int) -> None:
    server.cuts = [300_000, 200_000]
    assert (download(server.url, target), read(target)) == (SHA256, DATA)
    assert server.ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_server_that_cannot_go_on_is_refused(server: Server, target: int) -> None:
    server.cuts, server.resumes = [300_000], False
    with pytest.raises(errors.OpPrereqError, match=r"broke after 300000 bytes.*cannot continue"):
        download(server.url, target)


def test_file_that_changed_meanwhile_is_refused(server: Server, target: int) -> None:
    server.cuts, server.tags = [300_000], ['"one"', '"two"']
    with pytest.raises(errors.OpPrereqError, match=r"broke after 300000 bytes.*cannot continue"):
        download(server.url, target)


def test_server_that_breaks_off_each_time_is_given_up(server: Server, target: int) -> None:
    server.cuts = [1000] * 10
    with pytest.raises(errors.OpPrereqError, match="ended after 5000 of 1048576 bytes"):
        download(server.url, target)


def test_what_is_too_large_is_not_read_to_its_end(server: Server, target: int) -> None:
    with pytest.raises(errors.OpPrereqError, match="larger than 0 MiB"):
        download(server.url, target, most=500_000)
    assert os.fstat(target).st_size <= 500_000


def test_answer_of_the_server_is_named(server: Server, target: int) -> None:
    with pytest.raises(errors.OpPrereqError, match="404 Not Found"):
        download(f"{server.url}.gz", target)


def test_server_that_is_not_there(target: int) -> None:
    with pytest.raises(errors.OpPrereqError, match=r"cannot be downloaded: .*refused"):
        download("http://127.0.0.1:9/disk.raw", target)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://[abc/disk.raw", "is not a URL"),
        ("http://host:port/disk.raw", "is not a URL"),
        ("https:///disk.raw", "not a URL of https or http"),
        ("file:///etc/shadow", "not a URL of https or http"),
        ("http://host/a b.raw", "%20"),
        ("http://host/\u00fc.raw", "%20"),
        ("http://host/a\nHost: x", "%20"),
        ("https://me:secret@host/disk.raw", "would show the password"),
        ("../passwd", "neither a URL nor the name"),
    ],
)
def test_what_is_no_url_is_refused_before_a_job(url: str, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text) as caught:
        source.check(url)
    assert "secret" not in str(caught.value)
