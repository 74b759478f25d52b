"""hcheck: check whether a cluster is healthy, and whether balancing would make it so."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ganeti.htools import program, sources
from ganeti.htools.hbal import goal_of, limits_of, report_inconsistencies
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say
from ganeti.placement.balance import steps
from ganeti.placement.board import Board
from ganeti.placement.facts import Group
from ganeti.placement.health import Health, examine
from ganeti.placement.layout import Layout

# fmt: off
KNOWN = (
    "text-data", "no-disk-moves", "dynu-file", "ignore-dynu", "evac-mode", "exclude-instances",
    "exclusion-tags", "ialloc-src", "no-instance-moves", "luxi", "machine-readable", "max-cpu",
    "max-length", "min-disk", "min-gain", "min-gain-limit", "min-score", "ignore-soft-errors",
    "no-simulation", "offline", "quiet", "master", "select-instances", "no-capacity-checks",
    "verbose", "static-kvm-node-memory",
)
# fmt: on

_TITLES = (
    ("N1_FAIL", "Nodes not N+1 happy"),
    ("CONFLICT_TAGS", "Nodes with conflicting instances"),
    ("OFFLINE_PRI", "Instances having the primary node offline"),
    ("OFFLINE_SEC", "Instances having a secondary node offline"),
    ("GN1_FAIL", "Nodes not directly evacuateable"),
)


def _total(groups: Sequence[Health]) -> tuple[int, ...]:
    return tuple(sum(column) for column in zip(*(group.counts for group in groups)))


def _print_text(when: str, groups: Sequence[Group], found: Sequence[Health]) -> None:
    for group, health in zip(groups, found):
        say(f"\nStatistics for group {group.name} {when}")
        for (_, title), count in zip(_TITLES, health.counts):
            say(f"    {title}: {count}")
        say(f"    Group score: {health.score:.8f}")
    say(f"\nCluster statistics {when}")
    for (_, title), count in zip(_TITLES, _total(found)):
        say(f"    {title}: {count}")
    say(f"    Cluster is not healthy: {any(_total(found))}")


def _print_keys(level: str, groups: Sequence[Group], found: Sequence[Health]) -> None:
    for number, health in enumerate(found):
        for (key, _), count in zip(_TITLES, health.counts):
            say(f"HCHECK_{level}_GROUP_{number}_{key}={count}")
        say(f"HCHECK_{level}_GROUP_{number}_SCORE={health.score:.8f}")
    for (key, _), count in zip(_TITLES, _total(found)):
        say(f"HCHECK_{level}_CLUSTER_{key}={count}")
    say(f"HCHECK_{level}_CLUSTER_NEED_REBALANCE={int(any(_total(found)))}")


def run(values: Values) -> int:
    cluster = sources.read(values)
    keys = values.get("machine_readable", "no") == "yes"
    simulate = "no_simulation" not in values
    report_inconsistencies(cluster, values)
    limits, goal = limits_of(values, cluster), goal_of(values)
    members = {node.group for node in cluster.nodes}
    groups = [group for group in cluster.groups if group.uuid in members]
    layouts = [Layout.from_board(Board(cluster, group)) for group in groups]
    stuck = "no_capacity_checks" not in values
    before = after = [examine(layout, stuck=stuck) for layout in layouts]
    ill = any(_total(before))
    if ill and simulate:
        after = []
        for layout in layouts:
            last = layout
            for step in steps(layout, limits, goal):
                last = step.after
            after.append(examine(last, stuck=stuck))
    if keys:
        for number, group in enumerate(groups):
            say(f"HCHECK_GROUP_UUID_{number}={group.uuid}")
        _print_keys("INIT", groups, before)
        _print_keys("FINAL", groups, after)
        say("HCHECK_OK=1")
    else:
        if not simulate:
            say("Running in no-simulation mode.")
        elif ill:
            say("Cluster needs rebalancing.")
        else:
            say("No need to rebalance cluster, no problems found.")
        if values.verbosity > 0:
            _print_text("initially", groups, before)
            if ill and simulate:
                _print_text("after rebalancing", groups, after)
    return int(simulate and any(_total(after)))


PROGRAM = Program("hcheck", "Say whether a cluster is well.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
