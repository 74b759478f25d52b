"""Remove a reservation."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.instance import Instance
from ganeti.opcodes.instance import OpInstanceRemove
from ganeti.ops.operation import Context, Finding, FindingOperation
from ganeti.ops.steps.reservations import place


class ReservationRemove(FindingOperation[OpInstanceRemove, Instance, None]):
    """Removes its record; nothing of it is on any node."""

    def find(self) -> Finding[Instance]:
        return place.forthcoming(self.ctx, self.op.instance_name, self.op.instance_uuid)

    def run(self) -> None:
        forget(self.ctx, "reservation-remove", self.found)


def forget(ctx: Context, change: str, instance: Instance) -> None:
    """Remove a reservation, its disks and its ports from the configuration."""

    def edit(draft: Draft) -> None:
        draft.remove_instance(instance)

    ctx.store.change(change, ctx.author, edit)
    ctx.locks.remove(ctx.job.job_id, LockLevel.INSTANCE, instance.handle)
