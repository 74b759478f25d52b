"""Messages by mail: to a mail server with TLS, or by the program sendmail of the master."""

from __future__ import annotations

import re
import smtplib
import time
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

from ganeti import errors
from ganeti.base import process
from ganeti.model.notification import Notification
from ganeti.net import https
from ganeti.notify.notices import Notice

#: Seconds for each step of a conversation, and for sendmail.
TIMEOUT = 15.0
SENDMAIL = "sendmail"
#: Servers to which a connection needs no TLS.
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"smtp": 25, "smtps": 465}
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]*@[A-Za-z0-9.-]+"
)


@dataclass(frozen=True)
class Server:
    """A mail server; with ``tls`` the connection begins with it, else STARTTLS follows."""

    host: str
    port: int
    tls: bool
    user: str = ""

    @property
    def plain(self) -> bool:
        """Whether TLS is not demanded."""
        return not self.tls and self.host in _HERE


def check_address(text: str) -> str:
    """A mail address; ParameterError for anything else."""
    if not _ADDRESS.fullmatch(text) or len(text) > 254:
        raise errors.ParameterError(f"'{text[:80]}' is not a mail address")
    return text


def parse_server(text: str) -> Server:
    """``smtp[s]://[USER@]HOST[:PORT]``.

    Raises:
        ParameterError: something else.
    """
    try:
        parts = urllib.parse.urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as err:
        raise errors.ParameterError(
            f"'{text[:80]}' is not the URL of a mail server: {err}"
        ) from err
    if parts.scheme not in _PORTS or not host or parts.path.strip("/") or parts.query:
        raise errors.ParameterError(
            f"'{text[:80]}' is not the URL of a mail server: smtp://HOST or smtps://USER@HOST:PORT"
        )
    if parts.password is not None:
        raise errors.ParameterError("a password in the URL would be shown; give it as the secret")
    user = urllib.parse.unquote(parts.username or "")
    return Server(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", user)


def compose(notification: Notification, subject: str, body: Mapping[str, Any]) -> EmailMessage:
    """The mail for a body (see :func:`ganeti.notify.sending.make_body`)."""
    mail = EmailMessage()
    mail["Subject"] = f"[{body['cluster']}] {subject}"
    mail["From"] = notification.sender or f"ganeti@{body['cluster']}"
    mail["To"] = ", ".join(notification.recipients)
    mail["Message-ID"] = f"<{body['delivery']}@{body['cluster']}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n".join(_lines(body["notices"], body["dropped"])) + "\n")
    return mail


def _lines(notices: Iterable[Notice], dropped: int) -> Iterable[str]:
    if dropped:
        yield f"{dropped} earlier notices were dropped."
    for notice in notices:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(notice.time))
        yield f"{when} {notice.severity} {notice.event}: {notice.text}"


def send(notification: Notification, mail: EmailMessage) -> None:
    """Hand over a mail; blocks for some times :data:`TIMEOUT` at most.

    Raises:
        RemoteError, CommandError: it was not accepted.
        ParameterError: the server or its authority is wrong.
    """
    if notification.server is None:
        sender = ["-f", notification.sender] if notification.sender else []
        argv = [SENDMAIL, "-i", *sender, "--", *notification.recipients]
        process.run_checked(argv, timeout=TIMEOUT, input=mail.as_bytes())
        return
    server = parse_server(notification.server)
    try:
        _converse(server, notification, mail)
    except smtplib.SMTPResponseException as err:
        text = (
            err.smtp_error.decode("utf-8", "replace") if isinstance(err.smtp_error, bytes) else ""
        )
        raise errors.RemoteError(f"{server.host} answers {err.smtp_code} {text[:200]}") from None
    except (OSError, smtplib.SMTPException) as err:
        raise errors.RemoteError(f"{server.host}: {err}") from None


def _converse(server: Server, notification: Notification, mail: EmailMessage) -> None:
    context = https.make_context(notification.authority)
    link: smtplib.SMTP
    if server.tls:
        link = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT, context=context)
    else:
        link = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)
    with link:
        if not server.tls and not server.plain:
            link.starttls(context=context)
        if server.user:
            link.login(server.user, notification.secret or "")
        refused = link.send_message(mail)
    if refused:
        raise errors.RemoteError(f"{server.host} refuses {', '.join(sorted(refused))}")
