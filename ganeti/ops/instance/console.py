"""How to reach the console of an instance."""

from __future__ import annotations

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.instance import OpInstanceConsole
from ganeti.ops import annotate
from ganeti.ops.operation import Needs
from ganeti.ops.steps.running import power
from ganeti.ops.targets.instance import InstanceOperation
from ganeti.rpc.calls import NodeCalls


class InstanceConsole(InstanceOperation[OpInstanceConsole, JsonObject]):
    """Only for an instance that runs."""

    def locks(self) -> Needs:
        yield from self.lock_instance(shared=True)

    def check(self) -> None:
        power.primary(self.ctx, self.instance)

    def run(self) -> JsonObject:
        config, instance = self.ctx.config, self.instance
        node = config.nodes[instance.primary_node]
        if power.query_running(self.ctx, instance) is None:
            raise errors.OpExecError(
                f"instance {instance.name} does not run on node {node.name};"
                " start it with gnt-instance startup"
            )
        wire = annotate.instance(config, instance)
        answer = self.ctx.rpc.call_one(
            node, NodeCalls.instance_console_info, {instance.name: (wire, node.name)}
        )
        result: JsonObject = msgspec.to_builtins(answer[instance.name])
        return result
