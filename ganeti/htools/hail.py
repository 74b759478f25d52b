"""hail: an allocator; reads a request and prints the answer as JSON."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.htools import program, request, sources, tables, text, wire
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say, warn
from ganeti.htools.wire import WireError
from ganeti.placement import relocate
from ganeti.placement.board import Board
from ganeti.placement.choose import Wish, choose, choose_all
from ganeti.placement.facts import Cluster, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.relocate import Leave, Relocations, wire_step
from ganeti.placement.secondary import choose_secondary
from ganeti.placement.use import Use

# fmt: off
KNOWN = (
    "print-nodes", "save", "text-data", "simulate", "verbose", "ignore-dynu",
    "ignore-soft-errors", "no-capacity-checks", "restrict-allocation-to", "mond", "mond-xen",
    "static-kvm-node-memory",
)
# fmt: on


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer: whether it worked, why, and the result of the request's type."""

    success: bool
    info: str
    result: Any

    def text(self) -> str:
        prefix = "Request successful: " if self.success else "Request failed: "
        return jsonio.dumps(
            {"success": self.success, "info": prefix + self.info, "result": self.result}
        )


_KINDS = (
    *("allocate", "multi-allocate", "allocate-secondary", "relocate"),
    *("node-evacuate", "change-group"),
)


def read_request(raw: JsonObject) -> tuple[str, JsonObject]:
    """Read a request: its type, and the rest of it."""
    wanted = wire.take(raw, "request", dict, "request")
    kind = wire.take(wanted, "type", str, "request")
    if kind not in _KINDS:
        raise WireError(f"request: invalid type '{kind}'")
    return kind, wanted


def answer(kind: str, wanted: JsonObject, cluster: Cluster, values: Values) -> Answer:
    """The answer to a request."""
    if kind == "allocate":
        return _allocate(cluster, wanted, values)
    if kind == "multi-allocate":
        return _allocate_many(cluster, wanted, values)
    if kind == "allocate-secondary":
        return _secondary(cluster, wanted, None, values)
    if kind == "relocate":
        leaving = wire.names(wanted.get("relocate_from"), "request")
        return _secondary(cluster, wanted, leaving, values)
    if kind == "node-evacuate":
        return _evacuate(cluster, wanted, values)
    return _change_group(cluster, wanted, values)


def cluster_of(raw: JsonObject, values: Values) -> Cluster:
    """The cluster of a request, or that of ``-t`` or ``--simulate`` instead."""
    if "text_data" in values or "simulate" in values:
        return sources.read(values)
    return sources.apply_options(request.cluster(raw), values)


def _survive(values: Values) -> bool:
    return "no_capacity_checks" not in values


def _wish(wanted: JsonObject, values: Values) -> Wish:
    item = request.instance(wire.take(wanted, "name", str, "request"), wanted)
    names = wanted.get("restrict-to-nodes") or values.names("restrict_allocation_to")
    item = dataclasses.replace(item, primary="", secondary="")
    nics = [nic for nic in wanted.get("nics") or [] if isinstance(nic, dict)]
    return Wish(
        item,
        wanted.get("group_name"),
        frozenset(names) if names else None,
        networks=frozenset(str(nic["network"]) for nic in nics if nic.get("network")),
    )


def _allocate(cluster: Cluster, wanted: JsonObject, values: Values) -> Answer:
    wish = _wish(wanted, values)
    choice = choose(cluster, wish, survive=_survive(values))
    if not choice.nodes:
        return Answer(False, choice.reason, [])
    where = ", ".join(choice.nodes)
    info = f"{wish.item.name} goes to {where} (group {choice.group}, score {choice.score:.8f})"
    return Answer(True, info, list(choice.nodes))


def _allocate_many(cluster: Cluster, wanted: JsonObject, values: Values) -> Answer:
    wishes = []
    for one in wire.take(wanted, "instances", list, "request"):
        if not isinstance(one, dict):
            raise WireError(f"request: {one!r} is not an instance")
        wishes.append(_wish(one, values))
    choices = choose_all(cluster, wishes, survive=_survive(values))
    both = [(wish.item.name, choice) for wish, choice in zip(wishes, choices)]
    placed = [[name, list(choice.nodes)] for name, choice in both if choice.nodes]
    failed = [[name, choice.reason] for name, choice in both if not choice.nodes]
    return Answer(True, f"{len(placed)} placed, {len(failed)} not", [placed, failed])


def _evacuate(cluster: Cluster, wanted: JsonObject, values: Values) -> Answer:
    names = wire.names(wire.take(wanted, "instances", list, "request"), "request")
    mode = wire.take(wanted, "evac_mode", str, "request")
    if mode not in list(Leave):
        raise WireError(f"request: 'evac_mode' is {mode!r}, not one of {', '.join(Leave)}")
    soft = "ignore_soft_errors" in values
    return _moves(relocate.evacuate(cluster, names, Leave(mode), ignore_soft=soft))


def _change_group(cluster: Cluster, wanted: JsonObject, values: Values) -> Answer:
    names = wire.names(wire.take(wanted, "instances", list, "request"), "request")
    targets = wire.names(wanted.get("target_groups"), "request")
    return _moves(relocate.change_group(cluster, names, targets, survive=_survive(values)))


def _moves(found: Relocations) -> Answer:
    moved = [[item.name, item.group, list(item.nodes)] for item in found.moved]
    failed = [list(entry) for entry in found.failed]
    jobs = [[wire_step(item.name, step) for step in item.steps] for item in found.moved]
    info = f"{len(failed)} instances failed to move and {len(moved)} were moved successfully"
    return Answer(True, info, [moved, failed, jobs])


def _secondary(
    cluster: Cluster, wanted: JsonObject, leaving: tuple[str, ...] | None, values: Values
) -> Answer:
    name = wire.take(wanted, "name", str, "request")
    item = next((one for one in cluster.instances if one.name == name), None)
    if item is None:
        return Answer(False, f"there is no instance '{name}'", [])
    node, reason = choose_secondary(cluster, item, frozenset(leaving or ()))
    if reason is not None:
        return Answer(False, reason.text, [])
    return Answer(True, f"{name} gets {node}", node if leaving is None else [node])


def run(values: Values) -> int:
    raw = request.parse(sources.read_file(values.arguments[0]))
    kind, wanted = read_request(raw)
    cluster = cluster_of(raw, values)
    _show("Initial", cluster, "pre-ialloc", "before", values)
    found = answer(kind, wanted, cluster, values)
    _show("Final", _apply_answer(cluster, wanted, found), "post-ialloc", "after", values)
    say(found.text())
    return 0


def _show(title: str, cluster: Cluster, suffix: str, when: str, values: Values) -> None:
    """The nodes on standard error, and the text file of a state, when they are requested."""
    if "print_nodes" in values:
        shown = tables.nodes(Layout.from_board(Board(cluster)), values.get("print_nodes"))
        warn(f"\n{title} cluster status:\n{shown}\n")
    if "save" in values:
        path = f"{values.get('save')}.{suffix}"
        Path(path).write_text(text.dump(cluster), encoding="utf-8")
        warn(f"The cluster state {when} the request has been written to file '{path}'")


def _apply_answer(cluster: Cluster, wanted: JsonObject, found: Answer) -> Cluster:
    """The cluster with the instances where the answer puts them."""
    places: dict[str, list[str]] = {}
    if found.success and wanted["type"] == "allocate":
        places[wanted["name"]] = found.result
    elif found.success and wanted["type"] == "multi-allocate":
        places = dict(found.result[0])
    elif found.success and wanted["type"] in ("node-evacuate", "change-group"):
        places = {name: nodes for name, _, nodes in found.result[0]}
    items = {item.name: item for item in cluster.instances}
    if found.success and wanted["type"] in ("relocate", "allocate-secondary"):
        node = found.result if isinstance(found.result, str) else found.result[0]
        item = items[wanted["name"]]
        places[item.name] = [node] if item.mirror is Mirror.EVERY_NODE else [item.primary, node]
    new = {one.get("name"): one for one in (wanted, *wanted.get("instances", ())) if _is_new(one)}
    for name, nodes in places.items():
        item = items.get(name) or request.instance(name, new[name])
        first, second = (*nodes, "")[:2]
        items[name] = dataclasses.replace(item, primary=first, secondary=second)
    return replace_instances(cluster, tuple(items.values()))


def replace_instances(cluster: Cluster, items: tuple[Instance, ...]) -> Cluster:
    """Return the cluster with these instances; adjust the free memory and disk of its nodes."""
    after = dataclasses.replace(cluster, instances=items)
    old, new = Board(cluster), Board(after)
    nodes = []
    for node in cluster.nodes:
        i, j = old.node_index[node.name], new.node_index[node.name]
        more = new.first_sums.used[:, j] - old.first_sums.used[:, i]
        nodes.append(
            dataclasses.replace(
                node,
                free_memory=int(node.free_memory - more[Use.MEMORY]),
                free_disk=int(node.free_disk - more[Use.DISK]),
            )
        )
    return dataclasses.replace(after, nodes=tuple(nodes))


def _is_new(one: object) -> bool:
    return isinstance(one, dict) and "memory" in one


PROGRAM = Program("hail", "Answer an allocator request.", KNOWN, run, " FILE", "1 1 file", (1, 1))


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
