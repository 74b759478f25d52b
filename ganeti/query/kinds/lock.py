"""Locks that exist now, and who holds or awaits them. Rows are lock views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganeti.base import jsonio
from ganeti.filters.answer import FieldKind
from ganeti.query.field import Context, Kind, Task
from ganeti.query.live import LockView, Need
from ganeti.query.tables import sort_by_name

OTHER = FieldKind.OTHER


class LockKind(Kind[LockView]):
    name = "lock"
    base_needs = frozenset({Need.LOCKS})
    #: Locks come and go, so one that is not there is no error.
    looks_up = False

    def rows(self, ctx: Context) -> Sequence[LockView]:
        return sort_by_name(ctx.live[Need.LOCKS], lambda lock: lock.name)

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[LockView]
    ) -> Mapping[Need, Task]:
        return {Need.LOCKS: ctx.sources.locks}


KIND = LockKind()

KIND.attribute("name", "Name", OTHER, "Level and name of the lock", "name")
KIND.attribute("mode", "Mode", OTHER, "Whether it is held exclusive or shared, if at all", "mode")


@KIND.value("owner", "Owner", OTHER, "Jobs and others that hold the lock")
def _owner(lock: LockView) -> list[str]:
    return [jsonio.dumps(owner) for owner in lock.owners]


@KIND.value("pending", "Pending", OTHER, "Who waits for the lock, and in which mode")
def _list_pending(lock: LockView) -> list[list[object]]:
    return [[mode, [jsonio.dumps(owner) for owner in owners]] for mode, owners in lock.pending]
