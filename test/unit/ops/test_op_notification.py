"""What a change of a notification keeps, unsets and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.model.notification import Notification, Way
from ganeti.opcodes.hidden import Secret
from ganeti.opcodes.notification import OpNotificationModify
from ganeti.ops.notification.modify import NotificationModify, change

KEY = "0123456789abcdef"
HOOK = Notification(secret_url="https://a.example.com/x", secret=KEY, interval=3.0)
MAIL = Notification(
    recipients=("ops@example.com",),
    server="smtps://u@mail.example.com",
    secret="pw",
    sender="g@example.com",
    qfilter=["=", "severity", "error"],
)


def modify(old: Notification, **changes: Any) -> Notification:
    op = OpNotificationModify(notification_name="ops", **changes)
    NotificationModify.check_submission(op)
    return change(old, op)


def test_what_is_not_given_stays() -> None:
    assert modify(MAIL, interval=5.0).interval == 5.0
    made = modify(MAIL, mail=["night@example.com"])
    assert made.recipients == ("night@example.com",)
    assert (made.server, made.secret, made.qfilter) == (MAIL.server, "pw", MAIL.qfilter)
    moved = modify(HOOK, webhook=Secret("https://b.example.com/y"))
    assert (moved.secret_url, moved.secret, moved.interval) == ("https://b.example.com/y", KEY, 3.0)


def test_what_is_empty_takes_the_default() -> None:
    made = modify(MAIL, qfilter=[], sender="", interval=-1)
    assert (made.qfilter, made.sender, made.interval) == (None, None, None)
    made = modify(MAIL, server="", secret=Secret(""))
    assert (made.server, made.secret) == (None, None)


def test_another_way_begins_without_the_secrets_of_the_old_one() -> None:
    made = modify(MAIL, command=["pager", "--team", "db"])
    assert (made.way, made.server, made.secret, made.sender) == (Way.COMMAND, None, None, None)
    assert made.qfilter == MAIL.qfilter
    with pytest.raises(errors.OpPrereqError, match="key of the signatures"):
        modify(MAIL, webhook=Secret("https://a.example.com/"))


@pytest.mark.parametrize(
    ("old", "changes", "said"),
    [
        (MAIL, {}, "nothing to change"),
        (MAIL, {"server": "smtps://u@evil.example.com"}, "give it again"),
        (MAIL, {"mail": []}, "with a value"),
        (MAIL, {"webhook": Secret(""), "secret": Secret(KEY)}, "with a value"),
        (HOOK, {"mail": ["a@example.com"], "command": ["x"]}, "one of webhook, mail and command"),
        (HOOK, {"sender": "a@example.com"}, "for mail only"),
        (HOOK, {"secret": Secret("short")}, "16 characters"),
        (HOOK, {"interval": -2.0}, "0 to 86400"),
        (HOOK, {"qfilter": ["=", "nosuch", 1]}, "nosuch"),
    ],
)
def test_what_could_not_be_sent_is_refused(
    old: Notification, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.OpPrereqError, match=said) as refused:
        modify(old, **changes)
    assert KEY not in errors.text(refused.value)
    assert "pw" not in errors.text(refused.value)
