"""Change settings of a disk."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.names import DiskMode
from ganeti.opcodes.disk import OpDiskSetParams
from ganeti.ops import locks
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.planning import checks
from ganeti.ops.steps.running import power


class DiskSetParams(Operation[OpDiskSetParams, list[tuple[str, Any]]]):
    """Gives (what, new value) for each change."""

    def locks(self) -> Needs:
        self.disk = yield from locks.disk(self.ctx, self.op.disk_name)

    def check(self) -> None:
        self.values: dict[str, Any] = {}
        if self.op.mode is not None:
            self.values["mode"] = DiskMode(self.op.mode)
        if self.op.spindles is not None:
            checks.spindles_count(self.ctx.config, f"disk {self.disk.uuid}", self.disk.nodes)
            self.values["spindles"] = self.op.spindles
        if not self.values:
            raise errors.invalid("nothing to change: give a mode or a number of spindles")

    def run(self) -> list[tuple[str, Any]]:
        def edit(draft: Draft) -> None:
            draft.update(self.disk, **self.values)

        self.ctx.store.change("disk-modify", self.ctx.author, edit)
        if "mode" in self.values and self.values["mode"] != self.disk.mode:
            self._tell_when()
        return [(key, str(value)) for key, value in self.values.items()]

    def _tell_when(self) -> None:
        owner = self.ctx.config.owner(self.disk.uuid)
        if owner is None or self.ctx.config.nodes[owner.primary_node].offline:
            return
        try:
            runs = power.running(self.ctx, owner) is not None
        except errors.GanetiError:
            # a node that does not answer keeps nobody from changing what is recorded
            runs = True
        if runs:
            self.ctx.warn(f"the guest of {owner.name} sees the new mode after its next start")
