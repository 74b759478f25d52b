"""hbal: plan moves that balance a group, and carry them out."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from ganeti.htools import execute, plan, program, sources, tables, text
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import Program, say, warn
from ganeti.placement import move_kinds
from ganeti.placement.balance import Goal, Step, steps
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Group
from ganeti.placement.layout import Layout
from ganeti.placement.score import WEIGHTS, compute_bound, metrics, score

# fmt: off
KNOWN = (
    "print-nodes", "print-instances", "print-commands", "text-data",
    "evac-mode", "restricted-migration", "master", "luxi",
    "ialloc-src", "exec", "first-job-group", "reason",
    "group", "max-length", "verbose", "quiet",
    "offline", "static-kvm-node-memory", "min-score", "max-cpu",
    "min-disk", "min-gain", "min-gain-limit", "no-disk-moves",
    "select-instances", "no-instance-moves", "ignore-soft-errors", "dynu-file",
    "ignore-dynu", "mond", "mond-data", "exit-on-missing-mond-data",
    "mond-xen", "exclusion-tags", "exclude-instances", "save",
    "priority",
)
# fmt: on


def limits_of(values: Values, cluster: Cluster) -> move_kinds.Limits:
    """The moves that the command line allows."""
    ratio = values.get("max_cpu")
    return move_kinds.Limits(
        disk_moves="no_disk_moves" not in values,
        instance_moves="no_instance_moves" not in values,
        restricted_migration="restricted_migration" in values,
        evacuate="evac_mode" in values,
        ignore_soft="ignore_soft_errors" in values,
        vcpu_ratio=None if ratio is None else float(ratio),
        disk_ratio=values.number("min_disk", 0.0),
        instances=sources.instance_names(values, "select_instances", cluster),
        frozen=sources.instance_names(values, "exclude_instances", cluster) or frozenset(),
    )


def goal_of(values: Values) -> Goal:
    """When the command line wants the plan to end."""
    usual = Goal()
    return Goal(
        max_length=int(values.get("max_length", usual.max_length)),
        min_score=values.number("min_score", usual.min_score),
        min_gain=values.number("min_gain", usual.min_gain),
        min_gain_limit=values.number("min_gain_limit", usual.min_gain_limit),
    )


def pick_group(cluster: Cluster, wanted: str | None) -> Group:
    """The group that is named, or the only one."""
    names = "\n".join(f"  {group.name}" for group in cluster.groups)
    if wanted is None:
        if len(cluster.groups) == 1:
            return cluster.groups[0]
        if not cluster.groups:
            raise UsageError("the cluster has no group")
        warn(f"Found multiple node groups:\n{names}")
        raise UsageError("choose one with -G")
    for group in cluster.groups:
        if wanted in (group.name, group.uuid):
            return group
    warn(f"Node group {wanted} not found. Node group list is:\n{names}")
    raise UsageError(f"there is no group '{wanted}'")


def print_coefficients(title: str, layout: Layout) -> None:
    """The metrics of a layout with their weights."""
    say(f"{title} overall {score(layout):.8f}")
    print_metrics(layout)


def print_metrics(layout: Layout) -> None:
    found = metrics(layout)
    width = max(len(name) for name in found)
    lines = {name: f"{value:.8f}" for name, value in found.items()}
    numbers = max(len(line) for line in lines.values())
    say(f"   {'Field':<{width}} {'Value':>{numbers}} Weight")
    for name, value in lines.items():
        say(f"   {name:<{width}} {value:>{numbers}} {f'x{WEIGHTS[name]:.2f}':>6}")


def report_inconsistencies(cluster: Cluster, values: Values) -> None:
    whole = Layout.from_board(Board(cluster))
    lines = tables.inconsistencies(whole)
    if lines and values.verbosity > 0:
        warn("Warning: cluster has inconsistent data:")
        warn("\n".join(lines) + "\n")


def run(values: Values) -> int:
    execute.check_source(values)
    cluster = sources.read(values)
    verbosity = values.verbosity
    if verbosity > 1:
        say(f"Loaded cluster tags: {','.join(cluster.tags)}")
    report_inconsistencies(cluster, values)
    say(f"Loaded {len(cluster.nodes)} nodes, {len(cluster.instances)} instances")
    group = pick_group(cluster, values.get("group"))
    limits, goal = limits_of(values, cluster), goal_of(values)
    layout = Layout.from_board(Board(cluster, group))
    board = layout.board
    say(f"Group size {len(board.nodes)} nodes, {len(board.instances)} instances")
    say(f"Selected node group: {group.name}")
    if not board.instances:
        say("Cluster is empty, exiting.")
        return 0
    _print_check(layout, verbosity)
    _print_tables("Initial", layout, values)
    now = score(layout)
    if verbosity > 2:
        print_coefficients("Initial coefficients:", layout)
    else:
        say(f"Initial score: {now:.8f}")
    optimum = compute_bound(layout)
    if now <= goal.min_score + optimum:
        say(
            f"Cluster is already well balanced (initial score {now:.6f},\n"
            f"optimum score due to N+1 reservations {_power(optimum)},\n"
            f"minimum score {goal.min_score:.6f}).\nNothing to do, exiting"
        )
        return 0
    say("Trying to minimize the CV...")
    done = _print_steps(layout, limits, goal)
    last = done[-1].after if done else layout
    if verbosity > 2 and done:
        print_coefficients("Final coefficients:  ", last)
    elif done:
        say(f"Cluster score improved from {now:.8f} to {done[-1].move.score:.8f}")
    if not done:
        say("No solution found")
    if verbosity > 0:
        say(f"Solution length={len(done)}")
    if "print_commands" in values:
        _print_commands(done, values.get("print_commands"))
    _save(cluster, last, values)
    _print_tables("Final", last, values)
    if "exec" in values and done:
        return execute.carry_out(execute.jobs_of(done), values, "hbal", "balance")
    return 0


def _power(value: float) -> str:
    """A number as ``1.259766e-2``."""
    digits, _, power = f"{value:.6e}".partition("e")
    return f"{digits}e{int(power)}"


def _print_check(layout: Layout, verbosity: int) -> None:
    bad = layout.fails & layout.board.online
    hit = bad[layout.primary] | ((layout.secondary >= 0) & bad[layout.secondary])
    if verbosity > 0:
        say(f"Initial check done: {int(bad.sum())} bad nodes, {int(hit.sum())} bad instances.")
        if bad.any():
            say(
                "Cluster is not N+1 happy, continuing but no guarantee "
                "that the cluster will end N+1 happy."
            )


def _print_steps(layout: Layout, limits: move_kinds.Limits, goal: Goal) -> list[Step]:
    board = layout.board
    names = tables.short_names([item.name for item in board.instances])
    node_names = tables.short_names([node.name for node in board.nodes])
    width = max(len(name) for name in names.values())
    places = 2 * max(len(name) for name in node_names.values()) + 1

    def place(where: Layout, instance: int) -> str:
        first, second = where.place(instance)
        return node_names[first] + (f":{node_names[second]}" if second else "")

    done = []
    for step in steps(layout, limits, goal):
        move = step.move
        name = names[board.instances[move.instance].name]
        done.append(step)
        target = node_names[board.nodes[move.target].name] if move.target >= 0 else ""
        say(
            f"  {len(done):3d}. {name:<{width}} {place(step.before, move.instance):<{places}} => "
            f"{place(step.after, move.instance):<{places}} {move.score:12.8f} "
            f"a={move.kind.value.format(target)}"
        )
    return done


def _print_commands(done: list[Step], name: str) -> None:
    if name:
        Path(name).write_text(plan.listing(done, script=True), encoding="utf-8")
        say(f"The commands have been written to file '{name}'")
        return
    say("\nCommands to run to reach the above solution:")
    say(plan.listing(done))


def apply_layout(cluster: Cluster, layout: Layout) -> Cluster:
    """The cluster as the layout has it: what a text file of it says."""
    board = layout.board
    places = {item.name: layout.place(i) for i, item in enumerate(board.instances)}
    moved = {}
    free = {}
    for i, node in enumerate(board.nodes):
        free[node.name] = (
            int(node.free_memory + _find_first_used(layout, 0, i) - layout.used[0][i]),
            int(board.disk_room[i] - layout.used[2][i]),
        )
    for item in cluster.instances:
        if item.name in places:
            first, second = places[item.name]
            item = dataclasses.replace(item, primary=first, secondary=second)
        moved[item.name] = item
    nodes = tuple(
        dataclasses.replace(n, free_memory=free[n.name][0], free_disk=free[n.name][1])
        if n.name in free and not n.offline
        else n
        for n in cluster.nodes
    )
    return dataclasses.replace(cluster, instances=tuple(moved.values()), nodes=nodes)


def _find_first_used(layout: Layout, use: int, node: int) -> float:
    return float(layout.board.first_sums.used[use][node])


def _save(cluster: Cluster, last: Layout, values: Values) -> None:
    if "save" not in values:
        return
    name = values.get("save")
    for suffix, what, when in (
        ("original", cluster, "before"),
        ("balanced", apply_layout(cluster, last), "after"),
    ):
        Path(f"{name}.{suffix}").write_text(text.dump(what), encoding="utf-8")
        warn(f"The cluster state {when} balancing has been written to file '{name}.{suffix}'")


def _print_tables(title: str, layout: Layout, values: Values) -> None:
    if "print_instances" in values:
        warn(f"\n{title} instance map:\n{tables.instances(layout)}")
    if "print_nodes" in values:
        warn(f"\n{title} cluster status:\n{tables.nodes(layout, values.get('print_nodes'))}\n")


PROGRAM = Program("hbal", "Plan moves that balance the instances of a group.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
