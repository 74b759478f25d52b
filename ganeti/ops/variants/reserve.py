"""``gnt-instance add --forthcoming``: reserve capacity for one instance."""

from __future__ import annotations

from ganeti.model.instance import Reservation
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.reservations.batch import Batch


class InstanceReserve(Operation[OpInstanceCreate, str]):
    """Returns the UUID. Changes no node; the nodes are only asked what is free."""

    batch: Batch

    def locks(self) -> Needs:
        ctx = self.ctx
        reservation = Reservation(reason=ctx.reason or None)
        self.batch = Batch(
            ctx,
            [self.op],
            reservation,
            iallocator=None,
            opportunistic=self.op.opportunistic_locking,
        )
        yield from self.batch.locks()

    def check(self) -> None:
        self.batch.check()

    def run(self) -> str:
        return self.batch.record()[0]
