"""``gnt-instance add --forthcoming``: reserve capacity for one instance."""

from __future__ import annotations

from ganeti.model.instance import Reservation
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.reservations.batch import Batch


class InstanceReserve(
    FindingOperation[OpInstanceCreate, Batch, str],
    PlannedOperation[OpInstanceCreate, list[Drafted], str],
):
    """Returns the UUID. Changes no node; the nodes are only asked what is free."""

    def find(self) -> Finding[Batch]:
        ctx = self.ctx
        reservation = Reservation(reason=ctx.reason or None)
        batch = Batch(
            ctx,
            [self.op],
            reservation,
            iallocator=None,
            opportunistic=self.op.opportunistic_locking,
        )
        yield from batch.locks()
        return batch

    def decide(self) -> list[Drafted]:
        return self.found.check()

    def run(self) -> str:
        return self.found.record(self.plan)[0]
