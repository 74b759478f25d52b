"""Talking to QEMU when it says more than answers: a server says what QEMU was seen to say."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm.qmp import Qmp

EVENT = {
    "event": "JOB_STATUS_CHANGE",
    "data": {"id": "j", "status": "ready"},
    "timestamp": {"seconds": 1, "microseconds": 0},
}
GREETING = {
    "QMP": {
        "version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""},
        "capabilities": [],
    }
}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(tmp_path / "qmp"))
        made.listen()
        yield made


def talk(listener: socket.socket) -> None:
    """An event of an earlier connection first, one while events are switched on, and answers."""
    link, _ = listener.accept()
    with link:

        def say(*messages: object) -> None:
            link.sendall(b"".join(json.dumps(each).encode() + b"\r\n" for each in messages))

        say(EVENT, GREETING)
        for extra in ([EVENT], []):
            request = json.loads(link.recv(4096))
            answer = {"return": {}, **{key: request[key] for key in request if key == "id"}}
            say(*extra, answer)


def test_events_before_the_greeting_and_before_the_first_answer(listener: socket.socket) -> None:
    thread = threading.Thread(target=talk, args=(listener,))
    thread.start()
    with Qmp.connect(Path(listener.getsockname())) as qmp:
        assert qmp.command("query-status") == {}
    thread.join()


def test_a_connection_that_is_closed_before_the_greeting_is_tried_again(
    listener: socket.socket,
) -> None:
    def serve() -> None:
        listener.accept()[0].close()
        talk(listener)

    thread = threading.Thread(target=serve)
    thread.start()
    with Qmp.connect(Path(listener.getsockname())) as qmp:
        assert qmp.command("query-status") == {}
    thread.join()


def test_a_qemu_that_closes_each_connection_cannot_be_asked(listener: socket.socket) -> None:
    def serve() -> None:
        for _ in range(2):
            listener.accept()[0].close()

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(errors.HypervisorError, match="cannot be asked"):
        Qmp.connect(Path(listener.getsockname()))
    thread.join()
