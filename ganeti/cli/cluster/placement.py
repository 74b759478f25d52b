"""gnt-cluster: capacity, checks and better places for instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ganeti.base import units
from ganeti.base.text import plural
from ganeti.cli import info, jobs, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Call
from ganeti.cli.fields import override
from ganeti.cli.programs import CLUSTER

_GROUP = override("-g", "--group", "--node-group", metavar="<group>")
_WHAT_IF = override("--what-if", append=True, metavar="<change>")

Fields = Mapping[str, Any]


def _describe_assumptions(found: Fields) -> Iterator[str]:
    """The assumptions of ``--what-if``, and what is not known."""
    for change in found["what_if"]:
        yield f"Supposed: {change}"
    for note in found["notes"]:
        yield f"  {note}"
    for node in found["silent"]:
        yield f"Node {node} does not answer: what it has is unknown and not counted"


def _print_found(call: Call, found: Fields, lines: Iterator[str]) -> None:
    if call.opts.format != "text":
        info.show(call, found)
    else:
        output.print_lines(list(lines))


@CLUSTER.command(
    "capacity",
    op="OP_CLUSTER_CAPACITY",
    names={"group_name": _GROUP, "what_if": _WHAT_IF},
    options=(o.INFO_FORMAT, o.PRIORITY),
)
def capacity(call: Call) -> None:
    """Show how many more instances fit into each node group, and which resource runs out first.

    normal: instances of the standard size of the policy, or of the given size. tiered: first
    instances of the largest size that the policy allows, then of smaller and smaller ones. All
    instances survive the failure of any one node. Nothing is changed.
    """
    found = jobs.run_ops(call, [jobs.build_own(call)], feedback=jobs.report_entry)[0]
    _print_found(call, found, _capacity_lines(found))


def _capacity_lines(found: Fields) -> Iterator[str]:
    yield from _describe_assumptions(found)
    for group in found["groups"]:
        yield (
            f"Group {group['group']}: {plural(group['online'], 'node')} online of {group['nodes']},"
            f" {plural(group['instances'], 'instance')},"
            f" {plural(group['reservations'], 'reservation')}"
        )
        if group["closed"]:
            yield f"  nothing fits: {group['closed']}"
            continue
        for name in group["stuck"]:
            yield f"  N+1 does not hold: when {name} fails, not all of it can start elsewhere"
        normal = group["normal"]
        yield f"  normal: {_fitting(normal, found)}"
        yield f"    ended by: {normal['ended_by']}"
        tiered = group["tiered"]
        total = sum(size["count"] for size in tiered["sizes"])
        yield f"  tiered: {plural(total, 'instance')}"
        for size in tiered["sizes"]:
            yield f"    {_fitting(size, found)}"
        yield f"    ended by: {tiered['ended_by']}"


def _fitting(fits: Fields, found: Fields) -> str:
    """How many instances of one size fit."""
    return f"{plural(fits['count'], 'instance')} of {_size(fits, found)}"


def _size(size: Fields, found: Fields) -> str:
    memory, disk = (units.format_size(size[key]) for key in ("memory", "disk"))
    return (
        f"{memory} memory, {disk} disk ({found['disk_template']}),"
        f" {plural(size['vcpus'], 'virtual processor')}"
    )


@CLUSTER.command(
    "place",
    op="OP_CLUSTER_PLACE",
    names={"group_name": _GROUP, "what_if": _WHAT_IF},
    options=(o.INFO_FORMAT, o.PRIORITY),
)
def place(call: Call) -> int:
    """Show which node would get a new instance, and why others would not.

    The allocator hail answers. The default size is the standard size of the policy. Each line
    is a node. For a node that could run the instance it shows the secondary node and the
    score that the cluster would have; for any other, which resources are missing. Nothing is
    created or reserved. Fails when no node has room.
    """
    found = jobs.run_ops(call, [jobs.build_own(call)], feedback=jobs.report_entry)[0]
    _print_found(call, found, _place_lines(found))
    return 0 if found["nodes"] else 1


def _place_lines(found: Fields) -> Iterator[str]:
    yield from _describe_assumptions(found)
    what = f"An instance of {_size(found, found)}"
    if found["nodes"]:
        yield f"{what} would go to {' and '.join(found['nodes'])}"
    else:
        yield f"{what} has no place"
    for group in found["groups"]:
        yield f"Group {group['group']}{': ' + group['reason'] if group['reason'] else ''}"
        for one in group["places"]:
            yield f"  {' and '.join(one['nodes'])}: score {one['score']:.4f}"
        for node in group["nodes"]:
            yield f"  {node['text']}"
    for hint in found["hints"]:
        yield f"It would fit if you {hint['text']}"


@CLUSTER.command(
    "check",
    op="OP_CLUSTER_CHECK",
    names={"group_name": _GROUP, "what_if": _WHAT_IF},
    options=(o.INFO_FORMAT, o.PRIORITY),
)
def check(call: Call) -> int:
    """Check that all instances survive the loss of any one node; fails when they do not.

    Counts the nodes that could not take over, instances on offline nodes and instances that should
    be apart, and says whether gnt-cluster balance would help. Nothing is changed.
    """
    found = jobs.run_ops(call, [jobs.build_own(call)], feedback=jobs.report_entry)[0]
    _print_found(call, found, _check_lines(found))
    return 0 if found["ok"] else 1


def _check_lines(found: Fields) -> Iterator[str]:
    yield from _describe_assumptions(found)
    for group in found["groups"]:
        verdict = "ok" if group["ok"] else "not ok"
        yield (
            f"Group {group['group']}: {verdict}, {plural(group['nodes'], 'node')},"
            f" {plural(group['instances'], 'instance')}, score {group['score']:.4f}"
        )
        for text in group["findings"]:
            yield f"  {text}"
        if group["balancing_helps"]:
            yield f"  gnt-cluster balance helps, with {plural(group['moves'], 'move')}"
        elif not group["ok"]:
            yield "  no move helps: add a node, start fewer instances or release reservations"


@CLUSTER.command(
    "balance",
    op="OP_CLUSTER_BALANCE",
    names={
        "group_name": _GROUP,
        "what_if": _WHAT_IF,
        "max_moves": override(metavar="<number>"),
        "max_parallel": override(metavar="<number>"),
    },
    options=(o.INFO_FORMAT, *o.JOB_OPTIONS),
)
def balance(call: Call) -> int:
    """Move instances to where they balance the cluster.

    The master plans; each move is a job. A move begins only when it still suits the cluster: when
    an instance or a node has changed since, the job is refused and nothing moves. A node takes part
    in one move at a time. The plan continues when this command is interrupted, and after
    a failover of the master; gnt-job cancel stops it between two moves.
    """
    dry = call.opts.dry_run
    found = jobs.run_ops(call, [jobs.build_own(call)], feedback=jobs.report_entry)[0]
    moves = [move for group in found["groups"] for move in group["moves"]]
    _print_found(call, found, _balance_lines(found, explain=call.opts.explain))
    if dry or not moves:
        return 0
    return _follow(call, moves)


def _follow(call: Call, moves: list[Fields]) -> int:
    """Wait for the jobs of moves and sum up."""
    tasks = [jobs.Task(move["instance"], move["job"]) for move in moves]
    quiet = call.opts.format != "text"
    outcomes = jobs.wait_many(call, tasks, announce=False, feedback=jobs.report_entry, quiet=quiet)
    bad = sum(not outcome.ok for outcome in outcomes)
    if bad:
        notices.say(
            f"{plural(bad, 'move')} of {len(outcomes)} failed or was refused; gnt-cluster balance"
            " makes a new plan"
        )
    return jobs.exit_code(outcomes)


def _balance_lines(found: Fields, *, explain: bool) -> Iterator[str]:
    yield from _describe_assumptions(found)
    number = 0
    for group in found["groups"]:
        head = f"Group {group['group']}: "
        if not group["moves"]:
            reason = "no move fits the limits" if group["limited"] else "nothing to do"
            yield f"{head}{reason}, score {group['score']:.4f}"
            continue
        copied = sum(move["copied"] for move in group["moves"])
        yield (
            f"{head}{plural(len(group['moves']), 'move')}, score {group['score']:.4f} to"
            f" {group['score_after']:.4f}, copies {units.format_size(copied)}"
        )
        first = number
        for move in group["moves"]:
            number += 1
            yield f"  {number}. {_move(move)}"
            if explain:
                yield f"     {'; '.join(move['reasons'])}"
                yield f"     {_cost(move, first)}"
        if group["limited"]:
            yield "  The limits end the plan here; more moves would help"


def _move(move: Fields) -> str:
    return (
        f"{move['instance']}: {' + '.join(move['from'])} -> {' + '.join(move['to'])}"
        f" ({', '.join(move['steps'])}), gain {move['gain']:.4f}"
    )


def _cost(move: Fields, first: int) -> str:
    after = [str(first + other + 1) for other in move["after"]]
    begins = f"after {' and '.join(after)}" if after else "at once"
    return f"copies {units.format_size(move['copied'])}, begins {begins}"
