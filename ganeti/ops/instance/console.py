"""How to reach the console of an instance."""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti import errors
from ganeti.opcodes.instance import OpInstanceConsole
from ganeti.ops import annotate, locks
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.running import power
from ganeti.rpc.calls import NodeCalls


class InstanceConsole(Operation[OpInstanceConsole, dict[str, Any]]):
    """Only for an instance that runs."""

    def locks(self) -> Needs:
        found = yield from locks.instance(
            self.ctx, self.op.instance_name, self.op.instance_uuid, shared=True
        )
        self.uuid = found.uuid

    def check(self) -> None:
        self.instance = self.ctx.config.instances[self.uuid]
        locks.real(self.ctx.config, self.instance)
        self.node = power.primary(self.ctx, self.instance)

    def run(self) -> dict[str, Any]:
        if power.running(self.ctx, self.instance) is None:
            raise errors.OpExecError(
                f"instance {self.instance.name} does not run on node {self.node.name};"
                " start it with gnt-instance startup"
            )
        wire = annotate.instance(self.ctx.config, self.instance)
        answer = self.ctx.rpc.one(
            self.node,
            NodeCalls.instance_console_info,
            {self.instance.name: (wire, self.node.name)},
        )
        result: dict[str, Any] = msgspec.to_builtins(answer[self.instance.name])
        return result
