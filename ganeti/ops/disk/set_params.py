"""Change settings of a disk."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.enums import DiskMode
from ganeti.opcodes.disk import OpDiskSetParams
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import checks, disk_settings
from ganeti.ops.steps.running import hotplug, power
from ganeti.ops.targets.disk import DiskOperation


class DiskSetParams(
    DiskOperation[OpDiskSetParams, list[tuple[str, Any]]],
    PlannedOperation[OpDiskSetParams, JsonObject, list[tuple[str, Any]]],
):
    """Returns (what, new value) for each change."""

    def decide(self) -> JsonObject:
        """New values of the fields of the disk."""
        values: JsonObject = {}
        if self.op.mode is not None:
            values["mode"] = DiskMode(self.op.mode)
        if self.op.spindles is not None:
            checks.spindles_count(self.ctx.config, f"disk {self.disk.uuid}", self.disk.nodes)
            values["spindles"] = self.op.spindles
        given = {key: getattr(self.op, key) for key in disk_settings.LIMITS}
        values |= {key: value for key, value in given.items() if value is not None}
        if not values:
            raise errors.make_invalid_error(
                "nothing to change: give a mode, a number of spindles or a limit"
            )
        owner = self.ctx.config.owner(self.disk.uuid)
        if owner is not None:
            disk_settings.check_limits(owner.real_hypervisor, base.replace(self.disk, **values))
        return values

    def run(self) -> list[tuple[str, object]]:
        def edit(draft: Draft) -> None:
            draft.update(self.disk, **self.plan)

        before = self.disk
        self.ctx.store.change("disk-modify", self.ctx.author, edit)
        owner = self.ctx.config.owner(before.uuid)
        if owner is not None:
            hotplug.report_limits(self.ctx, owner, before, owner.disks.index(before.uuid))
        if "mode" in self.plan and self.plan["mode"] != self.disk.mode:
            self._report_delay()
        return [(key, str(value)) for key, value in self.plan.items()]

    def _report_delay(self) -> None:
        owner = self.ctx.config.owner(self.disk.uuid)
        if owner is None or self.ctx.config.nodes[owner.primary_node].offline:
            return
        try:
            runs = power.query_running(self.ctx, owner) is not None
        except errors.GanetiError:
            # a node that does not answer keeps nobody from changing what is recorded
            runs = True
        if runs:
            self.ctx.warn(f"the guest of {owner.name} sees the new mode after its next start")
