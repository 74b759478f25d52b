"""Reserve capacity for several instances at once."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.instance import Reservation
from ganeti.opcodes.reservation import OpReservationAdd
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.reservations.batch import Batch


class ReservationAdd(
    FindingOperation[OpReservationAdd, Batch, list[str]],
    PlannedOperation[OpReservationAdd, list[Drafted], list[str]],
):
    """Returns the UUIDs, in the order of the request; all are reserved, or none."""

    def find(self) -> Finding[Batch]:
        op, ctx = self.op, self.ctx
        if op.expires is not None and op.expires <= ctx.clock.now():
            raise errors.make_invalid_error("the reservation would have expired already")
        reservation = Reservation(owner=op.owner, reason=ctx.reason or None, expires=op.expires)
        batch = Batch(
            ctx,
            op.instances,
            reservation,
            iallocator=op.iallocator,
            opportunistic=op.opportunistic_locking,
        )
        yield from batch.locks()
        return batch

    def decide(self) -> list[Drafted]:
        return self.found.check()

    def run(self) -> list[str]:
        return self.found.record(self.plan)
