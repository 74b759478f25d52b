"""Choose nodes for several new instances at once, and submit a job for each."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_create import OpInstanceCreate, OpInstanceMultiAlloc
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator.answers import Refused
from ganeti.ops.allocator.new_place import describe_instance
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import checks


@dataclass(frozen=True)
class _Plan:
    #: by name
    wanted: dict[str, OpInstanceCreate]
    #: nodes of each instance; empty when an allocator chooses them
    named: dict[str, list[Node]]
    allocator: str


class InstanceMultiAlloc(PlannedOperation[OpInstanceMultiAlloc, _Plan, JsonObject]):
    """Returns ``{"jobs": [[true, id]], "allocatable": [name], "failed": [name], "refusals": {}}``.

    ``refusals`` tells as data why the built-in allocator has no place for those that failed.
    Instances for which there are no nodes do not hinder the others.
    """

    def locks(self) -> Needs:
        yield Need(
            LockLevel.NODE,
            list(self.ctx.config.nodes),
            shared=True,
            opportunistic=self.op.opportunistic_locking,
        )

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        seen: set[str] = set()
        for item in op.instances:
            name = checks.host_name(item.instance_name, "an instance")
            if name in seen or ctx.config.has_instance_name(name):
                text = "is in the list twice" if name in seen else "exists already"
                raise errors.make_exists_error(f"instance '{name}' {text}")
            seen.add(name)
            if item.iallocator:
                raise errors.make_invalid_error(
                    f"instance {name}: nodes are chosen for all instances together; name the"
                    " allocator once for all, not for single ones"
                )
        if not op.instances:
            raise errors.make_invalid_error("there are no instances to create")
        wanted = {
            checks.host_name(item.instance_name, "an instance"): item for item in op.instances
        }
        named = self._find_named_nodes(wanted)
        name = (
            ""
            if named
            else allocator.choose_allocator(ctx, op.iallocator, "give each instance a node")
        )
        return _Plan(wanted, named, name)

    def _find_named_nodes(self, wanted: dict[str, OpInstanceCreate]) -> dict[str, list[Node]]:
        """Nodes that the request names itself: of all instances or of none."""
        config = self.ctx.config
        given = {
            name: [
                node
                for node in (item.pnode_uuid or item.pnode, item.snode_uuid or item.snode)
                if node
            ]
            for name, item in wanted.items()
        }
        found = {
            name: [config.node(node) for node in nodes] for name, nodes in given.items() if nodes
        }
        without = sorted(
            name for name, item in wanted.items() if not (item.pnode_uuid or item.pnode)
        )
        if found and without:
            raise errors.make_invalid_error(
                f"{join_names(without)}: no node is named, but other instances have one; give a"
                " primary node to all instances, or let an allocator choose all nodes"
            )
        if found and self.op.iallocator:
            raise errors.make_invalid_error(
                f"give either nodes or an allocator ({self.op.iallocator}), not both"
            )
        return found

    def run(self) -> JsonObject:
        ctx = self.ctx
        found = self.plan.named
        missing: dict[str, Refused] = {}
        if not found:
            new = [describe_instance(ctx, item, name) for name, item in self.plan.wanted.items()]
            found, missing = allocator.place_many(ctx, self.plan.allocator, new)
        jobs: list[list[OpCode]] = [
            [_place(self.plan.wanted[name], nodes, self.op)] for name, nodes in found.items()
        ]
        ids = ctx.job.submit(jobs) if jobs else []
        ctx.boards.hand_over(ctx.job.job_id, dict(zip(found, ids)))
        for name, reason in missing.items():
            ctx.log(f"No place for {name}: {reason.text or 'the allocator gives no reason'}")
        return {
            "jobs": [[True, job_id] for job_id in ids],
            "allocatable": list(found),
            "failed": list(missing),
            "refusals": {
                name: reason.data for name, reason in missing.items() if reason.data is not None
            },
        }


def _place(item: OpInstanceCreate, nodes: list[Node], op: OpInstanceMultiAlloc) -> OpInstanceCreate:
    """The creation on its nodes; its job has the priority and reason of the whole request."""
    return msgspec.structs.replace(
        item,
        pnode=nodes[0].name,
        pnode_uuid=nodes[0].uuid,
        snode=nodes[1].name if len(nodes) > 1 else None,
        snode_uuid=nodes[1].uuid if len(nodes) > 1 else None,
        priority=op.priority,
        reason=op.reason,
    )
