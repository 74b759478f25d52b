"""One factor for all limits of time."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import patience, process
from ganeti.luxi.client import Client


def test_limits_are_as_written_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(patience.VARIABLE, raising=False)
    assert patience.scale(30.0) == 30.0


def test_limits_grow_by_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patience.VARIABLE, "2.5")
    assert patience.scale(30.0) == 75.0


@pytest.mark.parametrize("text", ["0", "-3", "0.5", "many", "nan", "inf", "1001"])
def test_what_is_no_factor_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(patience.VARIABLE, text)
    with pytest.raises(errors.ParameterError, match=f"is '{text}'"):
        patience.scale(1.0)


def test_a_program_gets_the_longer_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patience.VARIABLE, "100")
    result = process.run(["sleep", "0.2"], timeout=0.05)
    assert result.ok


def test_a_client_waits_longer_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(patience.VARIABLE, "100")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(1)
        server = threading.Thread(target=answer_late, args=(listener, 0.5))
        server.start()
        with Client(tmp_path / "socket", connect_timeout=0.05, io_timeout=0.05) as client:
            assert client.query_config_values(["cluster_name"]) == ["cluster.example.com"]
        server.join()


def answer_late(listener: socket.socket, seconds: float) -> None:
    link, _ = listener.accept()
    with link:
        link.recv(65536)
        time.sleep(seconds)  # what is tested: a late answer
        link.sendall(b'{"success": true, "result": ["cluster.example.com"]}\3')
