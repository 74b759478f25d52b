"""The conversation with a guest agent, whatever the guest says."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import hold

Answer = Callable[[dict[str, Any]], bytes]


@contextmanager
def guest(path: Path, answer: Answer) -> Iterator[list[str]]:
    """An agent that answers each line; gives the commands that it got."""
    seen: list[str] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)

        def serve() -> None:
            link, _ = server.accept()
            with link, link.makefile("rb") as lines, contextlib.suppress(OSError):
                for line in lines:
                    request = json.loads(line.lstrip(b"\xff"))
                    seen.append(request["execute"])
                    link.sendall(answer(request))

        thread = threading.Thread(target=serve)
        thread.start()
        yield seen
        thread.join(10)


def polite(request: dict[str, Any]) -> bytes:
    if request["execute"] == "guest-sync":
        return json.dumps({"return": request["arguments"]["id"]}).encode() + b"\n"
    return b'{"return": 3}\n'


def test_a_freeze(tmp_path: Path) -> None:
    path = tmp_path / "qga"
    with guest(path, polite) as seen, hold.Agent.connect(path) as agent:
        assert agent.ask("guest-fsfreeze-freeze", 5.0) == 3
    assert seen == ["guest-sync", "guest-fsfreeze-freeze"]


def test_answers_to_somebody_else_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "qga"

    def answer(request: dict[str, Any]) -> bytes:
        before = b'{"return": 1}\n' if request["execute"] == "guest-sync" else b""
        return before + polite(request)

    with guest(path, answer), hold.Agent.connect(path) as agent:
        assert agent.ask("guest-fsfreeze-thaw", 5.0) == 3


@pytest.mark.parametrize(
    "said",
    [
        b"no JSON\n",
        b"[1]\n",
        b'{"error": {"class": "CommandNotFound"}}\n',
        b"[" * 5000 + b"\n",
        b"\x00\xfe\n",
    ],
)
def test_what_a_guest_says_is_never_trusted(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "qga"

    def answer(request: dict[str, Any]) -> bytes:
        return polite(request) if request["execute"] == "guest-sync" else said

    refused = pytest.raises(errors.HypervisorError, match="guest agent")
    with guest(path, answer), hold.Agent.connect(path) as agent, refused:
        agent.ask("guest-fsfreeze-freeze", 5.0)


def test_a_guest_that_talks_without_end_is_left(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(hold, "_MOST_ANSWER", 1000)
    path = tmp_path / "qga"
    refused = pytest.raises(errors.HypervisorError, match="does not answer")
    with guest(path, lambda _request: b"x" * 100_000), refused, hold.Agent.connect(path):
        pass


def test_nobody_answers(tmp_path: Path) -> None:
    refused = pytest.raises(errors.HypervisorError, match="does not answer")
    with refused, hold.Agent.connect(tmp_path / "qga"):
        pass
