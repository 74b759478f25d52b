"""gnt-node: change roles and settings, switch on and off, remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.cli import jobs, notices, output, params, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, choice, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import NODE

_NAME = take_one("node", "node_name")

NODE.submits("remove", "OP_NODE_REMOVE", _NAME, options=o.PLAN_OPTIONS)


@NODE.command(
    "modify",
    _NAME,
    op="OP_NODE_SET_PARAMS",
    names={
        "drained": override("-D", "--drained"),
        "master_candidate": override("-C", "--master-candidate"),
        "offline": override("-O", "--offline"),
        "powered": override("--node-powered"),
    },
    options=o.JOB_OPTIONS,
)
def modify(call: Call) -> None:
    """Change the role or the parameters of a node."""
    output.print_changes("node", call.args[0], jobs.run_changes(call))


@NODE.command("powercycle", _NAME, op="OP_NODE_POWERCYCLE", options=(o.CONFIRM, *o.JOB_OPTIONS))
def powercycle(call: Call) -> int:
    """Reboot a node at once, without stopping its guests.

    Asks first, unless --yes is given.
    """
    node, opts = call.args[0], call.opts
    question = f"Restart node {node} at once, with everything that runs on it?"
    if not (opts.confirm or notices.confirm(question, option="--yes")):
        return 1
    result = jobs.run(call)
    if result:
        print(result)
    return 0


_OOB_NAMES = {"timeout": override("--oob-timeout")}
_POWER_COMMANDS = {
    "on": "power-on",
    "off": "power-off",
    "cycle": "power-cycle",
    "status": "power-status",
}


@NODE.command(
    "power",
    choice("on", "off", "cycle", "status"),
    take_many("node"),
    op="OP_OOB_COMMAND",
    only=("ignore_status", "power_delay", "timeout"),
    names=_OOB_NAMES,
    also={"OP_NODE_SET_PARAMS": ("auto_promote",)},
    options=(
        o.FORCE,
        *o.TABLE_OPTIONS,
        *o.SUBMIT_OPTIONS,
        o.PRIORITY,
    ),
)
def power(call: Call) -> int:
    """Switch nodes on or off, restart them or show whether they are on.

    Uses the out-of-band helper of the nodes. Without nodes, on and status act on all of them.
    off marks the nodes as offline first.
    """
    action, *names = call.args
    opts = call.opts
    if action in ("off", "cycle"):
        if not names:
            raise errors.make_invalid_error(f"Name the nodes to switch {action}")
        verb = "Switch off" if action == "off" else "Power-cycle"
        if not opts.force and not selection.confirm(names, "node", verb):
            return 1
    ops: list[jobs.WireOp] = []
    if action == "off":
        ops = [
            jobs.build(
                call,
                "OP_NODE_SET_PARAMS",
                node_name=name,
                offline=True,
                auto_promote=opts.auto_promote,
            )
            for name in names
        ]
    ops.append(_oob(call, _POWER_COMMANDS[action], names))
    rows = jobs.run_ops(call, ops)[-1]
    code = _report_failures(rows)
    if action == "status":
        good = [
            (name, "powered" if on["powered"] else "unpowered")
            for name, on in _normal_answers(rows)
        ]
        _print_states(call, ("Node", "Status"), good)
    return code


@NODE.command(
    "health",
    take_many("node"),
    op="OP_OOB_COMMAND",
    only=("timeout",),
    names=_OOB_NAMES,
    options=(*o.TABLE_OPTIONS, o.PRIORITY),
)
def health(call: Call) -> int:
    """Show what the out-of-band helper says about the health of nodes."""
    rows = jobs.run_ops(call, [_oob(call, "health", call.args)])[0]
    code = _report_failures(rows)
    table = [
        (name, ", ".join(f"{item}={state}" for item, state in found))
        for name, found in _normal_answers(rows)
    ]
    _print_states(call, ("Node", "Status"), table)
    return code


def _oob(call: Call, command: str, names: Sequence[str]) -> jobs.WireOp:
    return jobs.build_own(call, node_names=list(names), command=command)


def _normal_answers(rows: Sequence[Any]) -> list[tuple[str, Any]]:
    """Node and value of each answer ``[[status, node], [status, value]]`` that is normal."""
    return [(name, found) for (_, name), (status, found) in rows if status == 0]


def _report_failures(rows: Sequence[Any]) -> int:
    if rows and all(status == 3 for _, (status, _value) in rows):
        notices.say("None of these nodes has an out-of-band helper (node parameter oob_program)")
    bad = [str(name) for (_, name), (status, _value) in rows if status not in (0, 3)]
    for name in bad:
        notices.say(f"Node {name}: the out-of-band helper gave no answer")
    return 1 if bad else 0


def _print_states(call: Call, titles: tuple[str, str], rows: Sequence[tuple[str, str]]) -> None:
    output.print_lines(
        output.table(
            titles,
            rows,
            right=(False, False),
            separator=call.opts.separator,
            headers=not call.opts.no_headers,
        )
    )


@NODE.command(
    "restricted-command",
    take_one("command"),
    take_many("node"),
    op="OP_RESTRICTED_COMMAND",
    only=("use_locking",),
    names={"use_locking": override("--sync", help="Wait until nothing else works on the nodes")},
    options=(
        o.NODE_GROUP,
        o.SHOW_MACHINE,
        *o.SUBMIT_OPTIONS,
        o.PRIORITY,
    ),
)
def restricted_command(call: Call) -> int:
    """Run a command from the directory of restricted commands on nodes."""
    command, *names = call.args
    opts = call.opts
    nodes = params.online_nodes(call.client, names, opts.nodegroup)
    result = jobs.run(call, command=command, nodes=nodes)
    code = 0
    for name, (ok, text) in zip(nodes, result, strict=True):
        if not ok:
            notices.say(str(text))  # begins with the node's name
            code = 1
            continue
        prefix = f"{name}: " if opts.show_machine_names else ""
        output.print_lines([f"{prefix}{line}" for line in str(text).splitlines()])
    return code
