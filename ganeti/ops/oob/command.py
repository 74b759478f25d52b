"""Run the out-of-band helper for nodes: power and health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes import enums
from ganeti.opcodes.node import OpOobCommand
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.steps.nodes.helper_answers import read
from ganeti.ops.targets.node import lock_several
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer

#: Helpers that run at the same time.
PARALLEL = 10
#: Status of a value in an answer, as in queries.
NORMAL, NODATA, UNAVAILABLE = 0, 2, 3
_SWITCHING = (enums.OobCommand.POWER_OFF, enums.OobCommand.POWER_CYCLE)

Cell = tuple[int, Any]


class OobCommand(FindingOperation[OpOobCommand, list[NodeUuid], list[list[Cell]]]):
    """A row for each node: ``[[0, name], [status, value]]``.

    A node whose helper fails is logged and has status 2; one without helper has status 3. Values:
    the power state as bool object, a list of (part, health), or null.
    """

    @property
    def nodes(self) -> list[Node]:
        return [self.ctx.config.nodes[uuid] for uuid in self.found]

    def find(self) -> Finding[list[NodeUuid]]:
        """The nodes, in the order of their names."""
        config, op = self.ctx.config, self.op
        named = op.node_uuids or op.node_names or list(config.nodes)
        found = sorted(map(config.node, named), key=lambda node: node.name)
        shared = op.command not in (*_SWITCHING, enums.OobCommand.POWER_ON)
        uuids = [node.uuid for node in found]
        return (yield from lock_several(self.ctx, uuids, shared=shared))

    def check(self) -> None:
        op = self.op
        named = bool(op.node_names or op.node_uuids)
        if op.command in _SWITCHING and not named:
            raise errors.make_invalid_error(
                f"name the nodes for {op.command}; it is never done to all"
            )
        for node in self.nodes:
            self._check(node, named=named)

    def _check(self, node: Node, *, named: bool) -> None:
        op, config = self.op, self.ctx.config
        if named and not self._program(node):
            raise errors.make_state_error(
                f"node {node.name} has no out-of-band helper; set one with gnt-node modify"
                f" --node-parameters oob_program=PATH {node.name}"
            )
        if op.command in _SWITCHING and node.uuid == config.cluster.master_node:
            program = self._program(node)
            raise errors.make_invalid_error(
                f"{node.name} is the master node and cannot switch itself off; if you mean it:"
                f" {program} {op.command} {node.name}"
            )
        if op.command is not enums.OobCommand.POWER_OFF or op.ignore_status or node.offline:
            return
        raise errors.make_state_error(
            f"node {node.name} is not marked offline; gnt-node modify --offline yes does that,"
            " --ignore-status switches it off all the same"
        )

    def _program(self, node: Node) -> str:
        return str(self.ctx.config.ndparams(node).get("oob_program") or "")

    def run(self) -> list[list[Cell]]:
        if self.op.command is enums.OobCommand.POWER_ON:
            cells = self._ask_in_turn()
        else:
            nodes = self.nodes
            cells = [
                cell
                for start in range(0, len(nodes), PARALLEL)
                for cell in self._ask(nodes[start : start + PARALLEL])
            ]
        return [[(NORMAL, node.name), cell] for node, cell in zip(self.nodes, cells, strict=True)]

    def _ask_in_turn(self) -> list[Cell]:
        """Ask one node after another; wait ``power_delay`` seconds after each success.

        So not all draw current at once.
        """
        cells: list[Cell] = []
        for node in self.nodes:
            if cells and cells[-1][0] == NORMAL:
                self.ctx.job.cancel_asked.wait(self.op.power_delay)
            cells += self._ask([node])
        return cells

    def _ask(self, nodes: Sequence[Node]) -> list[Cell]:
        """Run the helpers of some nodes at the same time, on the master node."""
        ctx, op = self.ctx, self.op
        asked = {
            node.uuid: (
                ctx.config.master,
                (self._program(node), str(op.command), node.name, op.timeout),
            )
            for node in nodes
            if self._program(node)
        }
        answers = ctx.rpc.call_each(NodeCalls.run_oob, asked)
        return [
            self._cell(node, answers[node.uuid]) if node.uuid in answers else (UNAVAILABLE, None)
            for node in nodes
        ]

    def _cell(self, node: Node, answer: Answer[str]) -> Cell:
        try:
            value = read(self.op.command, answer.get())
        except errors.GanetiError as err:
            self.ctx.warn(f"out-of-band helper for node {node.name}: {errors.text(err)}")
            return NODATA, None
        self._note(node, value)
        return NORMAL, value

    def _note(self, node: Node, value: Any) -> None:
        """Record whether the node is on."""
        match self.op.command:
            case enums.OobCommand.POWER_ON:
                powered = True
            case enums.OobCommand.POWER_OFF:
                powered = False
            case enums.OobCommand.POWER_STATUS:
                if value["powered"] != node.powered:
                    self.ctx.warn(
                        f"node {node.name} is {'on' if value['powered'] else 'off'}, but is"
                        f" recorded as {'on' if node.powered else 'off'}; gnt-node modify"
                        " --node-powered records it"
                    )
                return
            case enums.OobCommand.HEALTH:
                for part, state in value:
                    if state in ("WARNING", "CRITICAL"):
                        self.ctx.warn(f"node {node.name}: {part} is {state}")
                return
            case _:
                return
        if powered != node.powered:

            def edit(draft: Draft) -> None:
                draft.update(node, powered=powered)

            self.ctx.store.change("node-power", self.ctx.author, edit)
