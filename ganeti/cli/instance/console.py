"""gnt-instance console: a terminal on the console of a guest."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from urllib.parse import urlencode

from ganeti import constants, errors, paths
from ganeti.base.json_types import JsonObject
from ganeti.cli import options as o
from ganeti.cli import selection, ssconf
from ganeti.cli.command import Call, take_one
from ganeti.cli.option import switch
from ganeti.cli.programs import INSTANCE
from ganeti.net import resolve

_SHOW_COMMAND = switch(
    "--show-cmd", dest="show_command", help="Only print the command that would be run"
)

_WEB = switch(
    "--web", dest="web", help="Print the addresses of the console's pages in the web interface"
)


@INSTANCE.command("console", take_one("instance"), options=(_SHOW_COMMAND, _WEB, o.PRIORITY))
def console(call: Call) -> None:
    """Open the console of a running instance.

    A serial console is opened in this terminal; for a graphical one its address is shown. Nothing
    is locked, so this works while a job is busy with the instance.
    """
    if call.opts.web:
        print("\n".join(_pages(call, call.args[0])))
        return
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


def _pages(call: Call, name: str) -> list[str]:
    """Address of a page for each console that a browser can show.

    Raises:
        OpPrereqError: no such instance, or none of its consoles is for browsers.
        HypervisorError: it does not run.
    """
    found = call.client.query_consoles(name)
    if not found["kinds"]:
        raise errors.make_state_error(
            f"Instance {found['instance']} has no console for a browser; set serial_console or"
            " vnc_bind_address and start it again",
        )
    start = f"https://{_web_host(call)}:{resolve.port(constants.RAPI)}/ui/console.html?"
    return [start + urlencode({"instance": found["instance"], "kind": k}) for k in found["kinds"]]


def _web_host(call: Call) -> str:
    """Host in the URL for a browser: the cluster's name, or an address of a local cluster."""
    if not paths.is_rooted():
        return str(call.client.query_config_values(["cluster_name"])[0])
    return _bracket(resolve.address(ssconf.master()))


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _console(call: Call, name: str) -> JsonObject:
    """Return the facts about the console from the master.

    Raises:
        OpPrereqError: no such instance, or one that does not run.
        OpExecError: its node did not say where the console is.
    """
    fields = ["name", "uuid", "oper_state", "pnode", "console", "forthcoming"]
    rows = call.client.query_instances([name], fields)
    selection.refuse_unknown(call.client, "instance", [name], [row[:2] for row in rows])
    full, _uuid, runs, node, found, forthcoming = rows[0]
    if forthcoming:
        raise errors.make_state_error(
            f"Instance {full} is forthcoming and has no console; gnt-instance add --commit {full}"
            " creates it",
        )
    if runs is None:
        raise errors.OpExecError(
            f"Node {node} does not say whether instance {full} runs, so there is no console"
        )
    if not runs:
        raise errors.make_state_error(
            f"Instance {full} does not run; start it with gnt-instance startup {full}",
        )
    if not isinstance(found, dict):
        raise errors.OpExecError(
            f"Node {node} does not say where the console of instance {full} is"
        )
    return found


def _terminal(call: Call, found: JsonObject) -> None:
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
    shown = _bracket(str(host))
    display = f" (display {found['display']})" if found.get("display") is not None else ""
    return (
        f"Instance {found.get('instance')} has its {kind.upper()} display at {shown}:{port}"
        f"{display}: {kind}://{shown}:{port}/"
    )
