"""Never two: before an instance is started, no other node runs it or may run it.

The node that starts it checks its own record (see ``node/run_rights.py``); here the nodes that
could have a copy are asked. A node that does not answer does not stop the start: it can run the
instance only by a right, and giving it one has changed the record of the primary node.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.model.enums import RunState
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.ops.operation import Context
from ganeti.ops.planning import disk_reach
from ganeti.rpc.calls import NodeCalls

#: Seconds that the other nodes get to answer what they run.
PATIENCE = 10.0


def find_running_nodes(ctx: Context, instance: Instance) -> list[NodeUuid]:
    """Uuids of nodes beside the primary one that say that they run the instance.

    Blocks up to ``PATIENCE`` seconds for nodes that do not answer.
    """
    config = ctx.config
    asked = [node for node in disk_reach.list_other_nodes(config, instance) if not node.offline]
    hypervisor = str(instance.real_hypervisor)
    answers = ctx.rpc.limit_time(PATIENCE).call_many(
        asked,
        NodeCalls.instance_info,
        instance.name,
        hypervisor,
        config.cluster.hvparams.get(hypervisor, {}),
    )
    return [
        uuid
        for uuid, answer in answers.items()
        if answer.value and answer.value.get("state") == RunState.RUNNING
    ]


def refuse_second(ctx: Context, instance: Instance) -> None:
    """Refuse to start a second copy; OpExecError says where the other one is."""
    found = find_running_nodes(ctx, instance)
    if found:
        names = ", ".join(sorted(ctx.config.nodes[uuid].name for uuid in found))
        primary = ctx.config.nodes[instance.primary_node].name
        raise errors.OpExecError(
            f"instance {instance.name} runs on node {names} already, although its primary node is"
            f" {primary}; gnt-instance migrate --cleanup {instance.name} records where it is"
        )
