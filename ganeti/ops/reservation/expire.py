"""Remove a reservation that has expired.

The watcher submits this for what it sees as expired. Everything is checked again once the lock
is held: meanwhile it may have become an instance, or may be kept for longer.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.model.instance import Instance
from ganeti.opcodes.reservation import OpReservationExpire
from ganeti.ops.on_reservations import remove
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.targets import instance as instance_target


class ReservationExpire(FindingOperation[OpReservationExpire, Instance | None, bool]):
    """Returns whether it was removed."""

    def find(self) -> Finding[Instance | None]:
        """The reservation, None when it is not there any more."""
        wanted = self.op.instance_uuid or self.op.instance_name
        if self.ctx.config.find_instance(wanted) is None:
            return None
        try:
            return (yield from instance_target.lock(self.ctx, wanted))
        except errors.OpPrereqError as err:
            self.ctx.log(errors.text(err))
            return None

    def run(self) -> bool:
        ctx, instance = self.ctx, self.found
        if instance is None:
            ctx.log("There is no such reservation any more")
            return False
        text = self._explain_refusal(instance)
        if text is not None:
            ctx.log(f"{instance.handle} is kept: {text}")
            return False
        owner = None if instance.reservation is None else instance.reservation.owner
        remove.forget(ctx, "reservation-expire", instance)
        ctx.log(f"Reservation {instance.handle} of {owner or 'nobody'} has expired")
        return True

    def _explain_refusal(self, instance: Instance) -> str | None:
        if not instance.forthcoming:
            return "it is an instance by now"
        if instance.interrupted:
            return f"job {instance.creating} was interrupted while it created the instance"
        expires = None if instance.reservation is None else instance.reservation.expires
        if expires is None or expires > self.ctx.clock.now():
            return "it has time left"
        return None
