"""Lines of the access log."""

from __future__ import annotations

import pytest

from ganeti.rapi import access_log

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "PATH_INFO": "/2/info",
    "QUERY_STRING": "bulk=1",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "REMOTE_ADDR": "192.0.2.1",
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "access.log"
    access_log.setup(file)
    yield file
    logger = access_log._LOG
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True


def test_tickets_of_consoles_are_masked():
    environ = {**ENVIRON, "PATH_INFO": "/2/consoles/s3cret-ticket", "QUERY_STRING": ""}
    assert '"GET /2/consoles/*** HTTP/1.1" 101' in access_log.line(environ, "101", 0, 0.0)


def test_the_common_log_format(path):
    def app(environ, start):
        environ["REMOTE_USER"] = "token:ci"
        start("404 Not Found", [])
        return [b"abc", b"de"]

    served = access_log.logged(app)(dict(ENVIRON), lambda *_args: None)
    assert b"".join(served) == b"abcde"
    line = path.read_text()
    assert line.startswith("192.0.2.1 - token:ci [")
    assert line.endswith('"GET /2/info?bulk=1 HTTP/1.1" 404 5\n')
    assert path.stat().st_mode & 0o777 == 0o600


def test_nobody_can_write_lines_of_their_own(path):
    evil = {**ENVIRON, "PATH_INFO": '/x" 200 1\n1.2.3.4 - root', "REMOTE_USER": "a b"}
    list(access_log.logged(lambda _e, start: start("400 Bad", []) or [])(evil, lambda *_a: None))
    assert len(path.read_text().splitlines()) == 1
    assert r"\"" in path.read_text()
    assert " - a_b [" in path.read_text()


def test_an_answer_that_comes_later_is_logged_once(path):
    later = []

    def app(environ, start):
        later.append(environ[access_log.LATER]())
        start("200 OK", [])
        return [b"null"]

    list(access_log.logged(app)(dict(ENVIRON), lambda *_args: None))
    assert path.read_text() == ""
    later[0](404, 10)
    assert path.read_text().endswith("404 10\n")


def test_a_broken_request_is_logged(path):
    def app(_environ, _start):
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        access_log.logged(app)(dict(ENVIRON), lambda *_args: None)
    assert path.read_text().endswith("500 -\n")
