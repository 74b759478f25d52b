"""gnt-cluster recovery: what the cluster does about the death of nodes."""

from __future__ import annotations

import time

from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, output
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, take_one
from ganeti.cli.programs import CLUSTER

#: Texts about an instance, by its state.
_STATES = {
    "recovered": "was started on {node} (job {job})",
    "starting": "starts elsewhere (job {job}, attempt {attempts})",
    "failed": "does not start, attempt {attempts}: {reason}",
    "waiting": "waits: {reason}",
    "left": "stays: {reason}",
}


@CLUSTER.command("recovery status")
def status(call: Call) -> None:
    """Show leases and proofs of death of the nodes, and the instances of dead nodes.

    For each node: the seconds since it answered, those until its lease ends if it is not renewed,
    what can prove its death in the order in which it is tried, and what happens next by itself.
    """
    found = call.client.query_recovery()
    output.print_lines([*_describe_settings(found), "", *_make_table(found["nodes"])])
    for node in found["nodes"]:
        if node["fenced"]:
            output.print_lines(["", *_describe_death(node, found["instances"])])


def _describe_settings(found: JsonObject) -> list[str]:
    lines = [f"Nodes are fenced after: {_describe_limit(found['fence_after'])}"]
    role = found["role"]
    if role is not None and role["chooses"]:
        lines.append(f"The master is replaced by: {role['store']}")
    else:
        limit = _describe_limit(found["failover_after"])
        lines.append(f"The master is replaced after: {limit}")
    if role is not None:
        lines.append(_describe_role(role))
    if found["paused_until"] is not None:
        lines.append(f"Recovery pauses until {time.ctime(found['paused_until'])}")
    if found["watcher_paused_until"] is not None:
        until = time.ctime(found["watcher_paused_until"])
        lines.append(f"The watcher pauses until {until}: no node is fenced")
    return lines


def _describe_limit(seconds: int | None) -> str:
    return f"{seconds} s without an answer" if seconds else "never"


def _describe_role(role: JsonObject) -> str:
    store = role["store"]
    if role["problem"]:
        return f"{store} does not renew the role of the master: {role['problem']}"
    if role["lease_left"] is None:
        return f"{store} does not know of this master yet"
    left = f"{role['lease_left']:.0f} s"
    return f"{store} decides about the master: term {role['term']}, lease for {left}"


def _make_table(nodes: list[JsonObject]) -> list[str]:
    titles = ("Node", "Silence", "Lease", "Proofs", "Next")
    rows = [
        (
            node["node"],
            _seconds(node["silence"]),
            _seconds(node["lease_left"]),
            ", ".join(node["proofs"]) or "-",
            node["next"],
        )
        for node in nodes
    ]
    return output.table(titles, rows, right=(False, True, True, False, False))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}s"


def _describe_death(node: JsonObject, instances: list[JsonObject]) -> list[str]:
    fenced = node["fenced"]
    over = fenced.get("over")
    back = f"; it came back at {output.timestamp(over)}" if over else ""
    lines = [
        f"{node['node']} died before {output.timestamp(fenced['time'])}: {fenced['proof']}{back}"
    ]
    rows = [row for row in instances if row["source"] == node["node"]]
    for row in sorted(rows, key=lambda row: str(row["instance"])):
        lines.append(f"  {row['instance']} {_STATES[row['state']].format(**row)}")
    return lines


@CLUSTER.command(
    "recovery pause",
    Args("duration"),
    op="OP_CLUSTER_PAUSE_RECOVERY",
    without=("duration",),
    options=(o.PRIORITY,),
)
def pause(call: Call) -> None:
    """Pause automatic fencing of nodes and failover of the master, for 30m, 4h or 1d.

    Nodes need no lease during the pause: guests of a node that is cut off keep running, and
    watchdogs are off. The pause ends by itself, and continues when another node becomes the
    master. gnt-node fence and gnt-cluster master-failover work as always.
    """
    until = jobs.run(call, duration=units.parse_timespec(call.args[0]))
    print(f"Recovery pauses until {time.ctime(until)}.")


@CLUSTER.command(
    "recovery continue",
    op="OP_CLUSTER_PAUSE_RECOVERY",
    without=("duration",),
    options=(o.PRIORITY,),
)
def go_on(call: Call) -> None:
    """End a pause of recovery."""
    jobs.run(call, duration=0)
    print("Recovery does not pause any more.")


@CLUSTER.command("recovery plan", take_one("node", "node_name"), op="OP_CLUSTER_PLAN_RECOVERY")
def plan(call: Call) -> None:
    """Show what would happen if a node died now; nothing is changed.

    Each time is the latest moment of its step, without the time that a vote or a device takes.
    The instances start in the order of their tags ganeti:order:N, where there is room now.
    """
    found = jobs.run(call)
    lines = [f"If {found['node']} died now:"]
    lines += [f"  after {item['after']:.0f} s: {item['text']}" for item in found["moments"]]
    if found["paused_until"] is not None:
        lines.append(f"  but not before {time.ctime(found['paused_until'])}: recovery pauses")
    lines += _describe_starts(found["starts"], proven=found["moments"][-1]["proves"])
    for title, key in (("These wait for room:", "waits"), ("These stay:", "left")):
        if found[key]:
            lines.append(title)
            lines += [f"  {item['instance']}: {item['reason']}" for item in found[key]]
    output.print_lines(lines)


def _describe_starts(starts: list[JsonObject], *, proven: bool) -> list[str]:
    if not starts:
        return ["No instance starts elsewhere."]
    when = "Then" if proven else "After gnt-node fence --confirm"
    return [
        f"{when} these start elsewhere, in this order:",
        *(
            f"  {item['instance']} on {item['node'] or 'a node that its job chooses'}"
            f" (order {item['order']})"
            for item in starts
        ),
    ]
