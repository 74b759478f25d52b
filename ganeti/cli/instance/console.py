"""gnt-instance console: a terminal on the console of a guest."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ganeti import errors, paths
from ganeti.cli import options as o
from ganeti.cli import selection, ssconf
from ganeti.cli.command import Call, take_one
from ganeti.cli.option import switch
from ganeti.cli.programs import INSTANCE

_SHOW_COMMAND = switch(
    "--show-cmd", dest="show_command", help="Only print the command that would be run"
)


@INSTANCE.command("console", take_one("instance"), options=(_SHOW_COMMAND, o.PRIORITY))
def console(call: Call) -> None:
    """Open the console of a running instance.

    A serial console is opened in this terminal; for a graphical one its address is shown. Nothing
    is locked, so this works while a job is busy with the instance.
    """
    found = _console(call, call.args[0])
    kind = found.get("kind")
    if kind == "ssh":
        _terminal(call, found)
    elif kind == "msg":
        print(found.get("message"))
    elif kind in ("vnc", "spice"):
        print(_address(found))
    else:
        raise errors.OpExecError(
            f"Instance {found.get('instance')} has a console of the unknown kind '{kind}'"
        )


def _console(call: Call, name: str) -> dict[str, Any]:
    """What the master says about the console.

    Raises:
        OpPrereqError: no such instance, or one that does not run.
        OpExecError: its node did not say where the console is.
    """
    fields = ["name", "uuid", "oper_state", "pnode", "console", "forthcoming"]
    rows = call.client.query_instances([name], fields)
    selection.refuse_unknown(call.client, "instance", [name], [row[:2] for row in rows])
    full, _uuid, runs, node, found, forthcoming = rows[0]
    if forthcoming:
        raise errors.OpPrereqError(
            f"Instance {full} is forthcoming and has no console; gnt-instance add --commit {full}"
            " creates it",
            errors.ErrorCode.STATE,
        )
    if runs is None:
        raise errors.OpExecError(
            f"Node {node} does not say whether instance {full} runs, so there is no console"
        )
    if not runs:
        raise errors.OpPrereqError(
            f"Instance {full} does not run; start it with gnt-instance startup {full}",
            errors.ErrorCode.STATE,
        )
    if not isinstance(found, dict):
        raise errors.OpExecError(
            f"Node {node} does not say where the console of instance {full} is"
        )
    return found


def _terminal(call: Call, found: dict[str, Any]) -> None:
    """Become the program that shows the console, so nothing of ours stays while it is open.

    On the node of the instance itself that needs no remote shell.
    """
    from ganeti.base import remote_shell

    node, words = str(found["host"]), [str(word) for word in found["command"]]
    user = found.get("user") or "root"
    is_here = node == paths.hostname() and user == "root" and os.geteuid() == 0
    if not is_here:
        port = found.get("port") or ssconf.ssh_ports().get(node, 22)
        words = remote_shell.argv(node, words, user=user, port=port, tty=True)
    if call.opts.show_command:
        print(shlex.join(words))
        return
    call.client.close()
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)
    except OSError as err:
        raise errors.OpExecError(f"Cannot start {words[0]}: {err.strerror}") from err


def _address(found: Mapping[str, object]) -> str:
    kind = str(found["kind"])
    host, port = found.get("host"), found.get("port")
    shown = f"[{host}]" if ":" in str(host) else host
    display = f" (display {found['display']})" if found.get("display") is not None else ""
    return (
        f"Instance {found.get('instance')} has its {kind.upper()} display at {shown}:{port}"
        f"{display}: {kind}://{shown}:{port}/"
    )
