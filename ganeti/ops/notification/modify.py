"""Change a notification."""

from __future__ import annotations

from msgspec.structs import replace

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model.notification import Notification, Way
from ganeti.notify import sending
from ganeti.opcodes.notification import OpNotificationModify
from ganeti.ops.notification.add import reveal
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.targets.notification import find


class NotificationModify(PlannedOperation[OpNotificationModify, Notification, None]):
    @classmethod
    def check_submission(cls, op: OpNotificationModify) -> None:
        if not _read_changes(op):
            raise errors.make_invalid_error("nothing to change: give at least one parameter")

    def decide(self) -> Notification:
        """The notification as it will be."""
        return change(find(self.ctx.config, self.op.notification_name), self.op)

    def run(self) -> None:
        name = self.op.notification_name

        def edit(draft: Draft) -> None:
            known = draft.cluster.notifications
            changed = change(find(draft.config, name), self.op)
            draft.update_cluster(notifications={**known, name: changed})

        self.ctx.store.change("notification-modify", self.ctx.author, edit)


def change(old: Notification, op: OpNotificationModify) -> Notification:
    """The notification with the changes of an opcode; another way begins without what the old one
    had for itself.

    Raises:
        OpPrereqError: it could never be sent.
    """
    given = _read_changes(op)
    ways = {"secret_url": Way.WEBHOOK, "recipients": Way.MAIL, "command": Way.COMMAND}
    new = [way for name, way in ways.items() if name in given]
    if len(new) > 1 or not all(given[name] for name in ways if name in given):
        raise errors.make_invalid_error("name one of webhook, mail and command, with a value")
    kept = old
    if new and new != [old.way]:
        kept = Notification(qfilter=old.qfilter, interval=old.interval)
    made = replace(kept, **given)
    if made.way is not Way.MAIL and (made.server or made.sender):
        raise errors.make_invalid_error("server and sender are for mail only")
    if made.secret and made.server != kept.server and "secret" not in given:
        raise errors.make_invalid_error(
            "another mail server gets the password only when you give it again, as the secret"
        )
    sending.check(op.notification_name, made)
    return made


def _read_changes(op: OpNotificationModify) -> JsonObject:
    """Members that change, with their new values; what is empty is unset."""
    given = {
        "secret_url": reveal(op.webhook),
        "recipients": None if op.mail is None else tuple(op.mail),
        "command": None if op.command is None else tuple(op.command),
        "secret": reveal(op.secret),
        "server": op.server,
        "sender": op.sender,
        "authority": op.authority,
        "qfilter": op.qfilter,
        "interval": op.interval,
    }
    unset: tuple[object, ...] = ("", [], -1.0)
    return {
        name: None if value in unset and name != "secret_url" else value
        for name, value in given.items()
        if value is not None
    }
