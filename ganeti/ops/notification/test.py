"""Try a notification."""

from __future__ import annotations

import secrets

from ganeti.notify import sending
from ganeti.notify.notices import EVENTS, Notice
from ganeti.notify.outbox import Message
from ganeti.opcodes.notification import OpNotificationTest
from ganeti.ops.operation import Operation
from ganeti.ops.targets.notification import find


class NotificationTest(Operation[OpNotificationTest, None]):
    """Sends at once, from this job, whatever filter and interval say."""

    def check(self) -> None:
        find(self.ctx.config, self.op.notification_name)

    def run(self) -> None:
        ctx, name = self.ctx, self.op.notification_name
        notification, cluster = find(ctx.config, name), ctx.config.cluster.cluster_name
        number = secrets.token_hex(8)
        notice = Notice(
            id=number,
            key=number,
            time=ctx.clock.now(),
            event="test",
            kind="cluster",
            severity=EVENTS["test"].severity,
            object=cluster,
            objects=(cluster,),
            text=f"Test of the notification {name}, by job {ctx.job.job_id}",
        )
        message = Message(number, (notice,), 0)
        sending.send(ctx.paths, cluster, name, notification, message, ctx.clock.now())
        ctx.log(f"Delivered by {notification.way} to {notification.target}")
