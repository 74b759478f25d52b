"""Reserve places for several instances at once."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.instance import Reservation
from ganeti.opcodes.reservation import OpReservationAdd
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.reservations.batch import Batch


class ReservationAdd(Operation[OpReservationAdd, list[str]]):
    """Returns the UUIDs, in the order of the request; all are reserved, or none."""

    batch: Batch

    def locks(self) -> Needs:
        op, ctx = self.op, self.ctx
        if op.expires is not None and op.expires <= ctx.clock.now():
            raise errors.invalid("the reservation would have expired already")
        reservation = Reservation(owner=op.owner, reason=ctx.reason or None, expires=op.expires)
        self.batch = Batch(
            ctx,
            op.instances,
            reservation,
            iallocator=op.iallocator,
            opportunistic=op.opportunistic_locking,
        )
        yield from self.batch.locks()

    def check(self) -> None:
        self.batch.check()

    def run(self) -> list[str]:
        return self.batch.record()
