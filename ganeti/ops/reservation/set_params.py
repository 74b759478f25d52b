"""Change owner, reason and end of a reservation."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.instance import Instance, Reservation
from ganeti.opcodes.reservation import OpReservationSetParams
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.steps.reservations import place


class ReservationSetParams(
    FindingOperation[OpReservationSetParams, Instance, list[tuple[str, Any]]],
    PlannedOperation[OpReservationSetParams, JsonObject, list[tuple[str, Any]]],
):
    """Returns (what, new value) for each change."""

    def find(self) -> Finding[Instance]:
        return place.forthcoming(self.ctx, self.op.instance_name, self.op.instance_uuid)

    def decide(self) -> JsonObject:
        """New values of the fields of the reservation."""
        op = self.op
        if op.expires is not None and op.never_expires:
            raise errors.make_invalid_error("give either a time or that it never expires")
        if op.expires is not None and op.expires <= self.ctx.clock.now():
            raise errors.make_invalid_error(
                "the reservation would have expired already; gnt-instance remove"
                f" {self.found.handle} gives it up"
            )
        rows: JsonObject = {}
        if op.owner is not None:
            rows["owner"] = op.owner or None
        if op.note is not None:
            rows["reason"] = op.note or None
        if op.expires is not None or op.never_expires:
            rows["expires"] = op.expires
        if not rows:
            raise errors.make_invalid_error("nothing to change: give an owner, a reason or a time")
        return rows

    def run(self) -> list[tuple[str, object]]:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            old = draft.config.instances[self.found.uuid]
            reservation = old.reservation or Reservation()
            draft.update(old, reservation=base.replace(reservation, **self.plan))

        ctx.store.change("reservation-modify", ctx.author, edit)
        return list(self.plan.items())
