"""Mail goes to a real server over STARTTLS, with a password, or not at all."""

from __future__ import annotations

from pathlib import Path

import mail_server
import pytest
from mail_server import PASSWORD, MailServer

from ganeti import errors
from ganeti.model.notification import Notification
from ganeti.notify import sending
from ganeti.notify.notices import Notice
from ganeti.notify.outbox import Message
from ganeti.paths import Paths

NOTICE = Notice(
    id="r-1",
    key="r-1",
    time=5.0,
    event="job-failed",
    kind="job",
    severity="error",
    object="7",
    text="Job 7 failed: <b>ä</b>",
    data={},
)
RECEIVERS = ("ops@example.com", "night@example.com")


def send(server: MailServer, **changes: object) -> None:
    values = {
        "recipients": RECEIVERS,
        "server": server.url,
        "secret": PASSWORD,
        "authority": server.authority,
        "sender": "ganeti@example.com",
    }
    mail = Notification(**{**values, **changes})
    sending.check("ops", mail)
    sending.send(Paths(Path("/nowhere")), "c.example.com", "ops", mail, MESSAGE, 1000.0)


MESSAGE = Message("abc", (NOTICE,), 0)


def test_mail_comes_over_tls_from_a_known_user(tmp_path: Path) -> None:
    with mail_server.serve(tmp_path) as server:
        send(server)
    assert server.envelopes == [(list(RECEIVERS), True, True)]
    [mail] = server.mails
    assert (mail["From"], mail["To"]) == ("ganeti@example.com", ", ".join(RECEIVERS))
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "error job-failed: Job 7 failed: <b>ä</b>" in mail.get_content()


def test_a_server_that_refuses_for_now_gets_the_same_mail_again(tmp_path: Path) -> None:
    with mail_server.serve(tmp_path) as server:
        server.answers = ["451 try again later"]
        with pytest.raises(errors.RemoteError, match=r"127.0.0.2 answers 451 try again later"):
            send(server)
        assert server.mails == []
        send(server)
    assert [mail["Message-ID"] for mail in server.mails] == ["<abc@c.example.com>"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"secret": "wrong"}, "answers 535"), ({"authority": None}, "certificate verify failed")],
)
def test_who_is_not_to_be_trusted_gets_no_mail(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with mail_server.serve(tmp_path) as server:
        with pytest.raises(errors.RemoteError, match=said) as refused:
            send(server, **changes)
        assert PASSWORD not in errors.text(refused.value)
    assert server.mails == []


def test_a_server_without_tls_gets_neither_mail_nor_password(tmp_path: Path) -> None:
    with (
        mail_server.serve(tmp_path, tls=False) as server,
        pytest.raises(errors.RemoteError, match="STARTTLS"),
    ):
        send(server)
    assert server.mails == []
