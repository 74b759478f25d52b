"""Opcodes for notifications, which tell people and programs of events."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.hidden import Secret
from ganeti.opcodes.scalars import NonEmpty, doc

_Name = Annotated[NonEmpty, doc("Name of the notification")]


class OpNotificationAdd(OpCode, tag="OP_NOTIFICATION_ADD", kw_only=True):
    """Add a notification: where notices of events are sent."""

    summary_field: ClassVar[str | None] = "notification_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/notifications",)
    result_type: ClassVar[str] = "null"

    notification_name: _Name
    webhook: Annotated[Secret | None, doc("URL that gets messages as JSON; https only")] = None
    mail: Annotated[list[NonEmpty] | None, doc("Addresses that get messages as mail")] = None
    command: Annotated[
        list[str] | None,
        doc("Program in the directory for notifications of the master, and its arguments"),
    ] = None
    secret: Annotated[
        Secret | None,
        doc("Key by which messages to a webhook are signed, or password for the mail server"),
    ] = None
    server: Annotated[
        NonEmpty | None, doc("Mail server, as smtp[s]://[USER@]HOST[:PORT]; unset for sendmail")
    ] = None
    sender: Annotated[NonEmpty | None, doc("Address that mail comes from")] = None
    authority: Annotated[
        NonEmpty | None,
        doc("Certificates that verify the server, PEM; unset for those of the system"),
    ] = None
    qfilter: Annotated[
        p.AnyList | None, doc("Filter of notices as nested lists; unset for all that are of note")
    ] = None
    interval: Annotated[float | None, doc("Minimum seconds between two messages")] = None


class OpNotificationModify(OpCode, tag="OP_NOTIFICATION_MODIFY", kw_only=True):
    """Change a notification; other settings keep their values, and waiting messages are kept."""

    summary_field: ClassVar[str | None] = "notification_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/notifications/{notification_name}/modify",)
    result_type: ClassVar[str] = "null"

    notification_name: _Name
    webhook: Annotated[Secret | None, doc("Send to this URL; https only")] = None
    mail: Annotated[list[NonEmpty] | None, doc("Send mail to these addresses")] = None
    command: Annotated[
        list[str] | None,
        doc("Give messages to this program in the directory for notifications, with its arguments"),
    ] = None
    secret: Annotated[
        Secret | None, doc("New key for the signatures, or new password for the mail server")
    ] = None
    server: Annotated[
        str | None, doc("Mail server, as smtp[s]://[USER@]HOST[:PORT]; empty for sendmail")
    ] = None
    sender: Annotated[
        str | None, doc("Address that mail comes from; empty for that of the cluster")
    ] = None
    authority: Annotated[
        str | None, doc("Certificates that verify the server, PEM; empty for those of the system")
    ] = None
    qfilter: Annotated[
        p.AnyList | None, doc("Filter of notices as nested lists; empty for all that are of note")
    ] = None
    interval: Annotated[
        float | None, doc("Minimum seconds between two messages; -1 for the default")
    ] = None


class OpNotificationRemove(OpCode, tag="OP_NOTIFICATION_REMOVE", kw_only=True):
    """Remove a notification; its waiting messages are dropped."""

    summary_field: ClassVar[str | None] = "notification_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/notifications/{notification_name}",)
    result_type: ClassVar[str] = "null"

    notification_name: _Name


class OpNotificationTest(OpCode, tag="OP_NOTIFICATION_TEST", kw_only=True):
    """Send a message to try a notification; fails when it is not delivered."""

    summary_field: ClassVar[str | None] = "notification_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/notifications/{notification_name}/test",)
    result_type: ClassVar[str] = "null"

    notification_name: _Name
