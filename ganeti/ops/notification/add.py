"""Add a notification."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.model.notification import Notification
from ganeti.notify import sending
from ganeti.opcodes.hidden import Secret
from ganeti.opcodes.notification import OpNotificationAdd
from ganeti.ops.operation import PlannedOperation


class NotificationAdd(PlannedOperation[OpNotificationAdd, Notification, None]):
    @classmethod
    def check_submission(cls, op: OpNotificationAdd) -> None:
        make(op)

    def decide(self) -> Notification:
        made = make(self.op)
        _check_room(self.ctx.config, self.op.notification_name)
        return made

    def run(self) -> None:
        name = self.op.notification_name

        def edit(draft: Draft) -> None:
            _check_room(draft.config, name)
            cluster = draft.cluster
            draft.update_cluster(
                notifications={**cluster.notifications, name: self.plan},
                notifying_node=cluster.notifying_node or cluster.master_node,
            )

        self.ctx.store.change("notification-add", self.ctx.author, edit)


def make(op: OpNotificationAdd) -> Notification:
    """The notification that is asked for.

    Raises:
        OpPrereqError: it could never be sent, or its secrets were lost with a restart.
    """
    ways = [op.webhook is not None, bool(op.mail), bool(op.command)]
    if sum(ways) != 1:
        raise errors.make_invalid_error("name one of webhook, mail and command")
    if not op.mail and (op.server or op.sender):
        raise errors.make_invalid_error("server and sender are for mail only")
    made = Notification(
        secret_url=reveal(op.webhook),
        recipients=tuple(op.mail or ()),
        command=tuple(op.command or ()),
        secret=reveal(op.secret),
        server=op.server,
        sender=op.sender,
        authority=op.authority,
        qfilter=op.qfilter,
        interval=op.interval,
    )
    sending.check(op.notification_name, made)
    return made


def reveal(value: Secret | None) -> str | None:
    """A URL, key or password of an opcode.

    Raises:
        OpPrereqError: it is not a text, or was lost with a restart.
    """
    if value is None:
        return None
    if value.lost:
        raise errors.make_invalid_error(
            "the secrets of this job were lost when the master restarted; submit it again"
        )
    text = value.reveal()
    if not isinstance(text, str):
        raise errors.make_invalid_error("URLs, keys and passwords are texts")
    return text


def _check_room(config: Config, name: str) -> None:
    known = config.cluster.notifications
    if name in known:
        raise errors.make_exists_error(f"notification '{name}' exists already")
    if len(known) >= sending.MOST:
        raise errors.make_invalid_error(f"a cluster has {sending.MOST} notifications at most")
