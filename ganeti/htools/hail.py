"""hail: an allocator; reads a request and prints the answer as JSON."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from ganeti.base import jsonio
from ganeti.htools import program, request, sources, wire
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say
from ganeti.htools.wire import Json, WireError
from ganeti.placement.choose import Choice, choose
from ganeti.placement.facts import LOCAL, Cluster, Instance
from ganeti.placement.secondary import new_secondary

# fmt: off
KNOWN = (
    "print-nodes", "save", "text-data", "simulate", "verbose", "ignore-dynu",
    "ignore-soft-errors", "no-capacity-checks", "restrict-allocation-to", "mond", "mond-xen",
    "static-kvm-node-memory",
)
# fmt: on


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: whether it worked, why, and the result of the request's type."""

    success: bool
    info: str
    result: Any

    def text(self) -> str:
        prefix = "Request successful: " if self.success else "Request failed: "
        return jsonio.dumps(
            {"success": self.success, "info": prefix + self.info, "result": self.result}
        )


def answer(raw: Json, values: Values) -> Answer:
    """The answer to a request."""
    wanted = wire.take(raw, "request", dict, "request")
    kind = wire.take(wanted, "type", str, "request")
    cluster = sources.changed(request.cluster(raw), values)
    if kind == "allocate":
        return _allocate(cluster, wanted, values)
    if kind == "multi-allocate":
        return _allocate_many(cluster, wanted, values)
    if kind == "allocate-secondary":
        return _secondary(cluster, wanted, None, values)
    if kind == "relocate":
        leaving = wire.names(wanted.get("relocate_from"), "request")
        return _secondary(cluster, wanted, leaving, values)
    if kind in ("node-evacuate", "change-group"):
        return Answer(False, f"{kind} is not supported", [])
    raise WireError(f"request: invalid type '{kind}'")


def _only(wanted: Json, values: Values) -> frozenset[str] | None:
    names = wanted.get("restrict-to-nodes") or values.names("restrict_allocation_to")
    return frozenset(names) if names else None


def _choose(cluster: Cluster, wanted: Json, values: Values) -> tuple[Choice, Instance]:
    item = request.instance(wire.take(wanted, "name", str, "request"), wanted)
    item = dataclasses.replace(item, primary="", secondary="")
    choice = choose(
        cluster,
        item,
        group=wanted.get("group_name"),
        only=_only(wanted, values),
        survive="no_capacity_checks" not in values,
    )
    return choice, item


def _allocate(cluster: Cluster, wanted: Json, values: Values) -> Answer:
    choice, item = _choose(cluster, wanted, values)
    if not choice.nodes:
        return Answer(False, "; ".join(choice.reasons), [])
    where = ", ".join(choice.nodes)
    info = f"{item.name} goes to {where} (group {choice.group}, score {choice.score:.8f})"
    return Answer(True, info, list(choice.nodes))


def _allocate_many(cluster: Cluster, wanted: Json, values: Values) -> Answer:
    placed: list[Any] = []
    failed: list[Any] = []
    for one in wire.take(wanted, "instances", list, "request"):
        if not isinstance(one, dict):
            raise WireError(f"request: {one!r} is not an instance")
        choice, item = _choose(cluster, one, values)
        if not choice.nodes:
            failed.append([item.name, "; ".join(choice.reasons)])
            continue
        placed.append([item.name, list(choice.nodes)])
        second = choice.nodes[1] if len(choice.nodes) > 1 else ""
        done = dataclasses.replace(item, primary=choice.nodes[0], secondary=second)
        cluster = _with(cluster, done)
    info = f"{len(placed)} placed, {len(failed)} not"
    return Answer(True, info, [placed, failed])


def _with(cluster: Cluster, item: Instance) -> Cluster:
    """The cluster with one more instance that runs."""
    nodes = []
    for node in cluster.nodes:
        if node.name == item.primary:
            node = dataclasses.replace(node, free_memory=node.free_memory - item.memory)
        if node.name in (item.primary, item.secondary) and item.template in LOCAL:
            node = dataclasses.replace(node, free_disk=node.free_disk - item.disk)
        nodes.append(node)
    return dataclasses.replace(cluster, nodes=tuple(nodes), instances=(*cluster.instances, item))


def _secondary(
    cluster: Cluster, wanted: Json, leaving: tuple[str, ...] | None, values: Values
) -> Answer:
    name = wire.take(wanted, "name", str, "request")
    item = next((one for one in cluster.instances if one.name == name), None)
    if item is None:
        return Answer(False, f"there is no instance '{name}'", [])
    node, why = new_secondary(cluster, item, frozenset(leaving or ()))
    if not node:
        return Answer(False, why, [])
    return Answer(True, f"{name} gets {node}", node if leaving is None else [node])


def run(values: Values) -> int:
    name = values.arguments[0]
    say(answer(request.parse(sources.read_file(name)), values).text())
    return 0


PROGRAM = Program("hail", "Answer an allocator request.", KNOWN, run, " FILE", "1 1 file", (1, 1))


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
