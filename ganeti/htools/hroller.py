"""hroller: put nodes into groups that may be rebooted at the same time."""

from __future__ import annotations

import sys
from pathlib import Path

from ganeti.htools import program, sources, tables, text
from ganeti.htools.hbal import pick_group, report_inconsistencies
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import Program, say, warn
from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.rolling import Rolling, find_fixed, fits_elsewhere, groups

# fmt: off
KNOWN = (
    "luxi", "master", "text-data", "ialloc-src", "offline", "offline-maintenance", "verbose",
    "quiet", "no-headers", "node-tags", "save", "group", "print-moves", "full-evacuation",
    "skip-non-redundant", "ignore-non-redundant", "force", "one-step-only",
    "static-kvm-node-memory",
)
# fmt: on


def run(values: Values) -> int:
    if "full_evacuation" in values:
        raise UsageError("--full-evacuation: use 'gnt-node evacuate' for the secondaries")
    cluster = sources.read(values)
    report_inconsistencies(cluster, values)
    group = pick_group(cluster, values.get("group")) if "group" in values else None
    layout = Layout.from_board(Board(cluster, group))
    board = layout.board
    if "save" in values:
        path = f"{values.get('save')}.original"
        Path(path).write_text(text.dump(cluster), encoding="utf-8")
        warn(f"The cluster state has been written to file '{path}'")
    rolling = Rolling(
        secondaries="offline_maintenance" in values,
        ignore_fixed="ignore_non_redundant" in values,
    )
    wanted = set(values.names("node_tags"))
    nodes = [
        i
        for i, node in enumerate(board.nodes)
        if not node.offline and (not wanted or wanted & set(node.tags))
    ]
    if "skip_non_redundant" in values:
        stuck = find_fixed(layout)
        nodes = [i for i in nodes if not stuck[i]]
    if "force" not in values:
        for node in nodes:
            if not fits_elsewhere(layout, [node], rolling):
                name = board.nodes[node].name
                raise UsageError(f"the instances of {name} fit nowhere else; --force continues")
    found = _master_last(layout, groups(layout, nodes, rolling))
    if "one_step_only" in values:
        found = found[:1]
    if "no_headers" not in values:
        say("'First Reboot Group'" if "one_step_only" in values else "'Node Reboot Groups'")
    names = tables.short_names([node.name for node in board.nodes])
    for members in found:
        say(",".join(names[board.nodes[i].name] for i in members))
        if "print_moves" in values:
            _print_moves(layout, members, names)
    return 0


def _master_last(layout: Layout, found: list[list[int]]) -> list[list[int]]:
    """The group of the master comes last, and the master last in it."""
    master = [i for i, node in enumerate(layout.board.nodes) if node.master]
    with_master = [m for m in found if set(m) & set(master)]
    others = [m for m in found if not set(m) & set(master)]
    return others + [
        [i for i in m if i not in master] + [i for i in m if i in master] for m in with_master
    ]


def _print_moves(layout: Layout, members: list[int], names: dict[str, str]) -> None:
    """Print where each instance on shared storage can wait: the node with the most memory left."""
    board = layout.board
    left = layout.memory_left.copy()
    left[~board.online] = left[members] = float("-inf")
    for i, item in enumerate(board.instances):
        if layout.primary[i] in members and layout.secondary[i] < 0 and item.runs:
            target = int(left.argmax())
            left[target] -= item.memory
            say(f"  {item.name} {names[board.nodes[target].name]}")


PROGRAM = Program("hroller", "Group nodes that may be rebooted together.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
