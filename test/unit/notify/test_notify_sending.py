"""Messages arrive by HTTPS, mail and program; wrong settings are refused without their secrets."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from https_server import Reply, Request, serve

from ganeti import errors
from ganeti.model.notification import Notification
from ganeti.notify import sending
from ganeti.notify.notices import Notice
from ganeti.notify.outbox import Message
from ganeti.paths import Paths

KEY = "0123456789abcdef"
NOTICE = Notice(
    id="r-1",
    key="r-1",
    time=5.0,
    event="job-failed",
    kind="job",
    severity="error",
    object="7",
    text="Job 7 failed",
    data={"big": "x"},
)
MESSAGE = Message("abc", (NOTICE,), 2)


def send(notification: Notification, root: Path) -> None:
    sending.check("ops", notification)
    sending.send(Paths(root), "cluster.example.com", "ops", notification, MESSAGE, 1000.7)


def test_a_webhook_gets_a_signed_body(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        hook = Notification(
            secret_url=f"{server.url}/in?x=1", secret=KEY, authority=server.authority
        )
        send(hook, tmp_path)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/in?x=1")
    assert request.headers["x-ganeti-timestamp"] == "1000"
    assert request.headers["x-ganeti-delivery"] == "abc"
    wanted = hmac.new(KEY.encode(), b"1000." + request.body, hashlib.sha256).hexdigest()
    assert request.headers["x-ganeti-signature"] == f"sha256={wanted}"
    body = json.loads(request.body)
    assert (body["cluster"], body["dropped"]) == ("cluster.example.com", 2)
    assert body["notices"][0]["text"] == "Job 7 failed"


def test_a_server_without_a_good_certificate_gets_nothing(tmp_path: Path) -> None:
    with serve(tmp_path) as server, pytest.raises(errors.RemoteError, match="not accepted"):
        send(Notification(secret_url=f"{server.url}/s3cr3t", secret=KEY), tmp_path)
    assert server.requests == []


def test_redirects_and_errors_are_no_delivery(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/moved":
            return Reply(302, headers={"Location": "https://localhost:1/elsewhere"})
        return Reply(503, b"x" * 200_000 if request.path == "/long" else b"")

    with serve(tmp_path, answer) as server:
        for path, said in (("/moved", "redirects"), ("/long", "more than"), ("/", "503")):
            hook = Notification(
                secret_url=server.url + path, secret=KEY, authority=server.authority
            )
            with pytest.raises(errors.RemoteError, match=said):
                send(hook, tmp_path)


@pytest.fixture
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """Port of a server that takes one mail, and the lines that it got."""
    lines: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one() -> None:
        connection, _peer = listener.accept()
        with connection, connection.makefile("rwb", buffering=0) as stream:
            stream.write(b"220 ready\r\n")
            inside = False
            while line := stream.readline():
                text = line.decode().rstrip("\r\n")
                lines.append(text)
                inside = (inside and text != ".") or text.upper() == "DATA"
                if text.upper() == "QUIT":
                    stream.write(b"221 bye\r\n")
                    return
                if not inside:
                    stream.write(b"250 ok\r\n")
                elif text.upper() == "DATA":
                    stream.write(b"354 go\r\n")

    thread = threading.Thread(target=serve_one)
    thread.start()
    yield listener.getsockname()[1], lines
    thread.join(10)
    listener.close()


def test_a_mail_has_a_line_for_each_notice(
    tmp_path: Path, mail_server: tuple[int, list[str]]
) -> None:
    port, lines = mail_server
    mail = Notification(recipients=("ops@example.com",), server=f"smtp://127.0.0.1:{port}")
    send(mail, tmp_path)
    assert "Subject: [cluster.example.com] job-failed 7" in lines
    assert "2 earlier notices were dropped." in lines
    assert any(line.endswith("error job-failed: Job 7 failed") for line in lines)


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that other users may read, unlike those of pytest."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_a_program_gets_the_message_on_its_input(public_path: Path) -> None:
    directory = Paths(public_path).notify_commands
    directory.mkdir(parents=True)
    program = directory / "pager"
    program.write_text('#!/bin/sh\nexec >&2; test "$1" = --team && cat; echo; id -u; exit 3\n')
    program.chmod(0o755)
    with pytest.raises(errors.CommandError, match="exit code 3") as caught:
        send(Notification(command=("pager", "--team")), public_path)
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    assert '"delivery":"abc"' in str(caught.value)
    assert str(user) in str(caught.value)


def test_a_program_that_others_can_write_is_not_run(tmp_path: Path) -> None:
    directory = Paths(tmp_path).notify_commands
    directory.mkdir(parents=True)
    (directory / "pager").write_text("#!/bin/sh\n")
    (directory / "pager").chmod(0o777)
    with pytest.raises(errors.CommandError, match="not safe"):
        send(Notification(command=("pager",)), tmp_path)


def test_a_message_that_is_too_long_loses_the_data_of_events() -> None:
    big = Notice(
        **{
            **{f: getattr(NOTICE, f) for f in NOTICE.__struct_fields__},
            "data": {"x": "y" * 300_000},
        }
    )
    text = sending.encode(sending.make_body("c", "ops", Message("abc", (big,), 0)))
    assert len(text) < sending.MOST_BYTES
    assert b"Job 7 failed" in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"secret_url": "http://localhost/s3cr3t", "secret": KEY}, "https"),
        ({"secret_url": "https://u:s3cr3t@localhost/", "secret": KEY}, "password"),
        ({"secret_url": "https://localhost/a\nb", "secret": KEY}, "characters|URL"),
        ({"secret_url": "https://localhost/", "secret": "short"}, "16"),
        ({"secret_url": "https://localhost/", "secret": KEY, "authority": "x"}, "authority"),
        ({"recipients": ("a@example.com\nBcc: x@example.com",)}, "address"),
        ({"recipients": ("-oQ/tmp@example.com",)}, "address"),
        ({"recipients": ("a@example.com",), "server": "ftp://x"}, "mail server"),
        ({"recipients": ("a@example.com",), "server": "smtps://u:s3cr3t@x"}, "secret"),
        ({"recipients": ("a@example.com",), "server": "smtps://u@x"}, "password"),
        ({"command": ("../../bin/sh",)}, "name of a program"),
        ({"command": ("pager",), "interval": float("nan")}, "interval"),
        ({"command": ("pager",), "qfilter": ["==", "nope", 1]}, "nope"),
    ],
)
def test_what_could_never_be_sent_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=said) as caught:
        sending.check("ops", Notification(**values))
    assert "s3cr3t" not in str(caught.value)


def test_secrets_are_not_in_the_target() -> None:
    hook = Notification(secret_url="https://chat.example.com:8443/T1/s3cr3t?k=s3cr3t")
    assert hook.target == "https://chat.example.com:8443/..."
