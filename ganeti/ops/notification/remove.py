"""Remove a notification."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.opcodes.notification import OpNotificationRemove
from ganeti.ops.operation import Operation
from ganeti.ops.targets.notification import find


class NotificationRemove(Operation[OpNotificationRemove, None]):
    def check(self) -> None:
        find(self.ctx.config, self.op.notification_name)

    def run(self) -> None:
        name = self.op.notification_name

        def edit(draft: Draft) -> None:
            find(draft.config, name)
            known = draft.cluster.notifications
            draft.update_cluster(notifications={k: v for k, v in known.items() if k != name})

        self.ctx.store.change("notification-remove", self.ctx.author, edit)
