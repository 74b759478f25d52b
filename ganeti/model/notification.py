"""Notifications: where the master sends notices of what happens, and of which events."""

from __future__ import annotations

import urllib.parse
from enum import StrEnum
from typing import Annotated, Any

from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject

#: Seconds between two messages, unless the notification says otherwise.
_INTERVALS = {"webhook": 5.0, "mail": 60.0, "command": 5.0}


class Way(StrEnum):
    """How a notification is sent."""

    WEBHOOK = "webhook"
    MAIL = "mail"
    COMMAND = "command"


class Notification(ConfigObject, frozen=True, kw_only=True):
    """One receiver. Values of members that begin with ``secret`` are shown nowhere."""

    secret_url: Annotated[str | None, doc("URL of a webhook; it may have a token in it")] = None
    recipients: Annotated[tuple[str, ...], doc("Addresses that get mail")] = ()
    sender: Annotated[str | None, doc("Address that mail comes from")] = None
    server: Annotated[
        str | None, doc("Mail server, as smtp:// or smtps:// URL; unset for sendmail")
    ] = None
    command: Annotated[
        tuple[str, ...], doc("Program in the directory of the administrator, and its arguments")
    ] = ()
    secret: Annotated[
        str | None, doc("Key of the signatures of a webhook, or password for the mail server")
    ] = None
    authority: Annotated[
        str | None, doc("Certificates that a webhook or mail server is verified with, PEM")
    ] = None
    qfilter: Annotated[Any, doc("Filter of notices; unset for all that are of note")] = None
    interval: Annotated[float | None, doc("Minimum seconds between two messages")] = None

    @property
    def way(self) -> Way:
        if self.secret_url is not None:
            return Way.WEBHOOK
        return Way.MAIL if self.recipients else Way.COMMAND

    @property
    def target(self) -> str:
        """Its target, for people: recipients, command, or the part of a URL without secrets."""
        if self.secret_url is not None:
            parts = urllib.parse.urlsplit(self.secret_url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."
        return ", ".join(self.recipients) or " ".join(self.command)

    @property
    def pause(self) -> float:
        """Minimum seconds between two messages."""
        return _INTERVALS[self.way] if self.interval is None else self.interval
