"""gnt-node maintenance: move instances off nodes, and bring them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ganeti.base.text import join_names
from ganeti.cli import info, jobs, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, choice
from ganeti.cli.fields import override
from ganeti.cli.option import JOB, switch
from ganeti.cli.programs import NODE

_WAIT = switch("--wait", dest="wait", help="Wait until all instances have moved", group=JOB)

Fields = Mapping[str, Any]


@NODE.command(
    "maintenance",
    choice("on", "off"),
    Args("node", 1, None),
    op="OP_NODE_MAINTENANCE",
    without=("on", "node_names"),
    names={"max_parallel": override(metavar="<number>")},
    usage="on|off <node>...",
    options=(_WAIT, o.INFO_FORMAT, *o.JOB_OPTIONS),
)
def maintenance(call: Call) -> int:
    """Move instances off nodes for maintenance, or bring them back.

    on: drains the nodes and migrates their guests live to other nodes. Second copies of mirrored
    disks stay there unless --disks-too is given. The configuration records which instances left.
    off: ends the drain, and brings back those that have not moved since, if that breaks no rule.
    """
    verb, *names = call.args
    op = jobs.build_own(call, node_names=names, on=verb == "on")
    found = jobs.run_ops(call, [op], feedback=jobs.report_entry)[0]
    text = call.opts.format == "text"
    if text:
        output.print_lines(list(_lines(found)))
    else:
        info.show(call, found)
    if call.opts.dry_run or not call.opts.wait:
        return 1 if found["on"] and found["stay"] else 0
    outcomes = jobs.wait_many(
        call, jobs.children(found), announce=False, feedback=jobs.report_entry, quiet=not text
    )
    code = jobs.exit_code(outcomes)
    return max(code, _report_left(call, found)) if found["on"] else code


def _lines(found: Fields) -> Iterator[str]:
    for move in found["moves"]:
        job = "" if move["job"] is None else f", job {move['job']}"
        steps = ", ".join(move["steps"])
        way = f"{' + '.join(move['from'])} -> {' + '.join(move['to'])}"
        yield f"{move['instance']}: {way} ({steps}{job})"
    for item in found["stay"]:
        yield f"{item['instance']} stays: {item['reason']}"
    if not found["moves"] and not found["stay"]:
        yield "Nothing to move"


def _report_left(call: Call, found: Fields) -> int:
    """Say from which nodes all instances have left; 1 when one is still there."""
    code = 0
    for name, guests in call.client.query_nodes(found["nodes"], ["name", "pinst_list"]):
        if guests:
            notices.say(f"Node {name} still has {join_names(guests)}")
            code = 1
        else:
            print(f"All instances have left node {name}")
    return code
