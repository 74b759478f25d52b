"""hsqueeze: find nodes that can be switched off, or that have to come back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti.base.json_types import JsonObject
from ganeti.htools import execute, hbal, plan, program, sources, text
from ganeti.htools.execute import Job
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import Program, say, warn
from ganeti.placement import squeeze, tags
from ganeti.placement.facts import Cluster
from ganeti.placement.squeeze import Room, Squeeze

# fmt: off
KNOWN = (
    "luxi", "text-data", "exec", "minimal-resources", "target-resources", "save",
    "print-commands", "verbose", "no-headers", "static-kvm-node-memory",
)
# fmt: on

#: Tag of a node that this program switched off.
AUTO = tags.STANDBY + "auto"


def room_of(values: Values) -> Room:
    """How much room the command line asks for."""
    usual = Room()
    room = Room(
        values.number("minimal_resources", usual.least),
        values.number("target_resources", usual.target),
    )
    for name, factor in (("minimal", room.least), ("target", room.target)):
        if not 0 <= factor < float("inf"):
            raise UsageError(f"option --{name}-resources: {factor} is not an amount")
    return room


def run(values: Values) -> int:
    execute.check_source(values)
    cluster = sources.read(values)
    room = room_of(values)
    found = [squeeze.plan(cluster, group, room) for group in cluster.groups]
    if values.verbosity > 1:
        say(f"Offline candidates: {','.join(n for one in found for n in one.may_go)}")
        say(f"Online candidates: {','.join(n for one in found for n in one.may_come)}")
    _print_nodes(found, values)
    if "print_commands" in values:
        _print_commands(found, values.get("print_commands"))
    _save(cluster, found, values)
    sets = _jobs(found)
    if "exec" in values and sets:
        return execute.carry_out(sets, values, "hsqueeze", "squeeze")
    return 0


def _print_nodes(found: Sequence[Squeeze], values: Values) -> None:
    headers = "no_headers" not in values
    for title, names in (
        ("'Nodes to online'", [name for one in found for name in one.come]),
        ("'Nodes to offline'", [name for one in found for name in one.go]),
    ):
        if names:
            say("\n".join([title] * headers + names))
    for one in found:
        if one.short:
            where = f" (group {one.group.name})" if len(found) > 1 else ""
            warn(f"Onlining all nodes will not yield enough capacity{where}")
    if headers and not any(one.go or one.come for one in found):
        say("'No action'")


def _print_commands(found: Sequence[Squeeze], name: str) -> None:
    """The moves of all groups, then what is done to the nodes."""
    moves = [step for one in found for step in one.moves]
    come = [node for one in found for node in one.come]
    go = [node for one in found for node in one.go]
    then = []
    if go:
        then.append(("Tagging Commands", [f"gnt-node add-tags {node} {AUTO}" for node in go]))
        then.append(("Offline Commands", [f"gnt-node modify -O yes {node}" for node in go]))
    power = [f"gnt-node power -f on {node}" for node in come]
    power += [f"gnt-node power -f off {node}" for node in go]
    if power:
        then.append(("Power Commands", power))
    if not then:
        then.append(("Nothing to do", []))
    if name:
        listed = plan.listing(moves, script=True, then=then)
        Path(name).write_text(listed, encoding="utf-8")
        say(f"The commands have been written to file '{name}'")
        return
    say("\nCommands to run:")
    say(plan.listing(moves, then=then))


def _jobs(found: Sequence[Squeeze]) -> list[list[Job]]:
    """Sets of jobs: the moves of all groups, then a job for each node."""
    sets: list[list[Job]] = [jobs for one in found for jobs in execute.jobs_of(one.moves)]
    last = [Job(_make_switch_opcodes(node, on=True)) for one in found for node in one.come]
    last += [Job(_make_switch_opcodes(node, on=False)) for one in found for node in one.go]
    return [*sets, last] if last else sets


def _make_switch_opcodes(node: str, *, on: bool) -> list[JsonObject]:
    """The opcodes that switch a node on, or mark it and switch it off."""
    power = {"OP_ID": "OP_OOB_COMMAND", "node_names": [node]}
    if on:
        return [power | {"command": "power-on"}]
    return [
        {"OP_ID": "OP_TAGS_SET", "kind": "node", "name": node, "tags": [AUTO]},
        {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": node, "offline": True, "auto_promote": True},
        power | {"command": "power-off"},
    ]


def _save(cluster: Cluster, found: Sequence[Squeeze], values: Values) -> None:
    if "save" not in values:
        return
    name = values.get("save")
    after = cluster
    for one in found:
        if one.moves:
            after = hbal.apply_layout(after, one.moves[-1].after)
        after = squeeze.set_online(after, one.go, online=False)
        after = squeeze.set_online(after, one.come, online=True)
    for suffix, what, when in (("original", cluster, "before"), ("squeezed", after, "after")):
        Path(f"{name}.{suffix}").write_text(text.dump(what), encoding="utf-8")
        warn(f"The cluster state {when} squeezing has been written to file '{name}.{suffix}'")


PROGRAM = Program("hsqueeze", "Find nodes that can be switched off.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
