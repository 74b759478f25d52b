"""A plan as commands, as jobs and as sets of jobs that may run side by side."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.base.json_types import JsonObject
from ganeti.placement.balance import Step
from ganeti.placement.facts import RUNNING
from ganeti.placement.move_kinds import Kind
from ganeti.placement.use import NOWHERE


def find_touched_nodes(step: Step) -> frozenset[int]:
    """The nodes that a move needs."""
    move, before = step.move, step.before
    nodes = {
        int(before.primary[move.instance]),
        int(before.secondary[move.instance]),
        move.primary,
        move.secondary,
    }
    return frozenset(nodes - {NOWHERE})


def sets(steps: Sequence[Step]) -> list[list[Step]]:
    """Consecutive moves whose nodes do not overlap may run side by side."""
    result: list[list[Step]] = []
    busy: set[int] = set()
    for step in steps:
        nodes = find_touched_nodes(step)
        if not result or busy & nodes:
            result.append([])
            busy = set()
        result[-1].append(step)
        busy |= nodes
    return result


def _parts(step: Step) -> list[tuple[str, str]]:
    """The single actions of a move: ``migrate`` or ``replace``, and the target or ""."""
    move = step.move
    target = step.before.board.nodes[move.target].name if move.target != NOWHERE else ""
    migrate, replace = ("migrate", ""), ("replace", target)
    return {
        Kind.TO_SECONDARY: [migrate],
        Kind.REPLACE_SECONDARY: [replace],
        Kind.TO_SECONDARY_REPLACE: [migrate, replace],
        Kind.REPLACE_TO_SECONDARY: [replace, migrate],
        Kind.REPLACE_PRIMARY: [migrate, replace, migrate],
        Kind.TO_ANY: [("migrate", target)],
    }[move.kind]


def commands(step: Step) -> list[str]:
    """The gnt-instance commands of a move."""
    item = step.before.board.instances[step.move.instance]
    lines = []
    for action, target in _parts(step):
        if action == "replace":
            lines.append(f"gnt-instance replace-disks -n {target} {item.name}")
        else:
            verb = "migrate" if item.status in RUNNING else "failover"
            where = f"-n {target} " if target else ""
            lines.append(f"gnt-instance {verb} -f {where}{item.name}")
    return lines


def opcodes(step: Step) -> list[JsonObject]:
    """The opcodes of a move: one job."""
    item = step.before.board.instances[step.move.instance]
    result: list[JsonObject] = []
    for action, target in _parts(step):
        op: JsonObject = {"instance_name": item.name}
        if action == "replace":
            op |= {
                "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
                "mode": "replace_new_secondary",
                "disks": [],
                "remote_node": target,
            }
        else:
            lives = item.status in RUNNING
            op["OP_ID"] = "OP_INSTANCE_MIGRATE" if lives else "OP_INSTANCE_FAILOVER"
            if lives:
                op["allow_failover"] = True
            if target:
                op["target_node"] = target
        result.append(op)
    return result


_SCRIPT_HEAD = """\
#!/bin/sh

# Carries out a plan; touch /tmp/stop-htools to end it between two jobs.

set -e

check() {
  if [ -f /tmp/stop-htools ]; then
    echo 'Stop requested, exiting'
    exit 0
  fi
}

"""


def listing(
    steps: Sequence[Step], *, script: bool = False, then: Sequence[tuple[str, list[str]]] = ()
) -> str:
    """All commands of a plan, set by set; ``script``: as a shell script.

    ``then`` follows: titles, each with its commands.
    """
    lines = []
    for number, jobs in enumerate(sets(steps), 1):
        lines += ["", f"echo jobset {number}, {len(jobs)} jobs"]
        for position, step in enumerate(jobs, 1):
            lines.append(f"  echo job {number}/{position}")
            if script:
                lines.append("  check")
            lines += [f"  {command}" for command in commands(step)]
    for title, last in then:
        lines += ["", f"echo {title}", *(f"  {command}" for command in last)]
    if script:
        return _SCRIPT_HEAD + "\n".join(lines) + "\n"
    return "\n".join(f"  {line}" for line in lines)
