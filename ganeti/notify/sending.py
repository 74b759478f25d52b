"""Checks notifications, and sends messages in the way that each one wants."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.model.notification import Notification, Way
from ganeti.net import https
from ganeti.notify import command, mail, webhook
from ganeti.notify.notices import compile_filter, summarize
from ganeti.notify.outbox import Message
from ganeti.paths import Paths

#: Notifications of a cluster, receivers of one mail, and seconds between messages.
MOST, MOST_RECIPIENTS, LONGEST_INTERVAL = 32, 20, 86400.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
#: Bytes of a body; of a larger one the data of events is left out.
MOST_BYTES = 256 * 1024


def check(name: str, notification: Notification) -> None:
    """Refuse what can never be sent.

    Raises:
        OpPrereqError: the text says what is wrong, without secrets.
    """
    try:
        if not _NAME.fullmatch(name):
            raise errors.ParameterError(f"'{name[:80]}' cannot be the name of a notification")
        compile_filter(notification.qfilter)
        https.make_context(notification.authority)
        _check_way(notification)
        if not math.isfinite(notification.pause) or not 0 <= notification.pause <= LONGEST_INTERVAL:
            raise errors.ParameterError("the interval is 0 to 86400 seconds")
    except (errors.ParameterError, errors.ParseError) as err:
        raise errors.make_invalid_error(errors.text(err)) from err


def _check_way(notification: Notification) -> None:
    match notification.way:
        case Way.WEBHOOK:
            https.check_url(notification.secret_url or "")
            if len(notification.secret or "") < 16:
                raise errors.ParameterError("the key of the signatures needs 16 characters or more")
        case Way.MAIL:
            for address in notification.recipients:
                mail.check_address(address)
            if len(notification.recipients) > MOST_RECIPIENTS:
                raise errors.ParameterError(f"a mail goes to {MOST_RECIPIENTS} addresses at most")
            if notification.sender is not None:
                mail.check_address(notification.sender)
            if notification.server is not None:
                _check_server(mail.parse_server(notification.server), notification)
            elif notification.secret is not None:
                raise errors.ParameterError("a password is only for a mail server")
        case Way.COMMAND:
            command.check(notification.command)


def _check_server(server: mail.Server, notification: Notification) -> None:
    if bool(server.user) != (notification.secret is not None):
        raise errors.ParameterError(
            "a user of a mail server needs a password (secret), and a password needs a user"
        )


def make_body(cluster: str, name: str, message: Message) -> JsonObject:
    """The message for receivers, as an object."""
    return {
        "cluster": cluster,
        "notification": name,
        "delivery": message.id,
        "dropped": message.dropped,
        "notices": message.notices,
    }


def encode(body: Mapping[str, Any]) -> bytes:
    """The object as JSON; without the data of events when it would be too long."""
    text = jsonio.dumps(msgspec.to_builtins(body)).encode()
    if len(text) > MOST_BYTES:
        short = [msgspec.structs.replace(notice, data={}) for notice in body["notices"]]
        text = jsonio.dumps(msgspec.to_builtins({**body, "notices": short})).encode()
    return text


def send(
    paths: Paths, cluster: str, name: str, notification: Notification, message: Message, now: float
) -> None:
    """Send a message once; blocks up to a minute. ``now`` is the Unix time.

    Raises:
        GanetiError: it was not delivered; the text has no secrets.
    """
    body = make_body(cluster, name, message)
    match notification.way:
        case Way.WEBHOOK:
            webhook.send(notification, message.id, encode(body), now)
        case Way.MAIL:
            subject = summarize(message.notices)
            mail.send(notification, mail.compose(notification, subject, body))
        case Way.COMMAND:
            command.run(paths, notification.command, encode(body))
