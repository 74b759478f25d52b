"""The common part of daemons that serve on TCP: options and how they end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import constants, errors
from ganeti.net import tcp_daemon
from ganeti.net.tcp_daemon import Serving


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The daemon's own directory; the test's own handlers of the log come back after it."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", "localhost")
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    for handler in handlers:
        logger.removeHandler(handler)
    yield tmp_path
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    for handler in handlers:
        logger.addHandler(handler)
    logger.setLevel(level)


def options(*words: str) -> Serving:
    parser = tcp_daemon.parser(constants.NODED, "A daemon.")
    return tcp_daemon.read_options(constants.NODED, parser.parse_args(["-f", *words]))


def test_what_is_left_out_is_filled_in() -> None:
    found = options("-b", "127.0.0.5")
    assert (found.address, found.port) == ("127.0.0.5", constants.DEFAULT_PORTS[constants.NODED])
    assert (found.foreground, found.debug, found.syslog) == (True, False, "no")
    assert options("-b", "127.0.0.5", "-p", "7").port == 7


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_of_clients_that_makes_no_sense(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        options("--max-clients", number)
    assert "--max-clients" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.GenericError("the port is taken"), "ganeti-noded: the port is taken\n"),
        (errors.X509CertError("a.pem", "is over"), "ganeti-noded: a.pem: is over\n"),
        (OSError("no room"), "ganeti-noded: no room\n"),
        (PermissionError(13, "No", "/a/b.log"), "ganeti-noded: /a/b.log: No\n"),
        (KeyError("x"), "ganeti-noded: internal error, see its log\n"),
    ],
    ids=["ours", "certificate", "system", "file", "bug"],
)
def test_what_ends_a_daemon_is_told(
    root: Path, error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(_background: object) -> None:
        assert (root / "var/run/ganeti/ganeti-noded.pid").exists()
        raise error

    given = options("-b", "127.0.0.5")
    log = root / "noded.log"
    assert tcp_daemon.run(given, lambda: tcp_daemon.setup_log(given, log), serve) == 1
    assert capsys.readouterr().err.endswith(said)
    assert ("Traceback" in log.read_text()) == isinstance(error, KeyError)


def test_a_daemon_that_was_told_to_stop_ends_well() -> None:
    begun: list[object] = []
    assert tcp_daemon.run(options("-b", "127.0.0.5"), lambda: None, begun.append) == 0
    assert len(begun) == 1
