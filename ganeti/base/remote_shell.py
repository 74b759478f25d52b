"""Commands on other nodes: ssh, or whatever ``GANETI_REMOTE_SHELL`` names.

The variable replaces ssh the way ``GIT_SSH_COMMAND`` does for git: it is split into words once,
and called as ``<words...> <node> <command as one shell-quoted text>``. A cluster inside one
machine uses it to reach its nodes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from ganeti import errors, paths
from ganeti.base import patience, process

VARIABLE = "GANETI_REMOTE_SHELL"
#: Nodes that are worked on at the same time.
PARALLEL = 16
#: Seconds to reach a node with ssh.
CONNECT_TIMEOUT = 10
#: Exit code of ssh itself when it could not reach the node.
SSH_FAILED = 255


def argv(
    node: str,
    command: Sequence[str],
    *,
    user: str = "root",
    port: int = 22,
    tty: bool = False,
    check_host_key: bool = True,
    options: Sequence[str] = (),
) -> list[str]:
    """Words that run ``command`` (an argument list) on a node.

    ``tty`` gives the command a terminal (consoles), ``options`` are more of ssh. Unknown host keys
    are refused unless ``check_host_key`` is false; then a new one is accepted, but never a changed
    one.

    Raises:
        ParameterError: the variable cannot be split into words.
    """
    text = shlex.join(command)
    custom = os.environ.get(VARIABLE)
    if custom:
        try:
            words = shlex.split(custom)
        except ValueError as err:
            raise errors.ParameterError(f"variable {VARIABLE} cannot be used: {err}") from err
        return [*words, node, text]
    connect = round(patience.scale(CONNECT_TIMEOUT))
    words = ["ssh", "-oBatchMode=yes", f"-oConnectTimeout={connect}", "-oEscapeChar=none"]
    words.append(f"-oStrictHostKeyChecking={'yes' if check_host_key else 'accept-new'}")
    words += [*options, *_known_hosts()]
    if tty:
        words.append("-t")
    if port != 22:
        words += ["-p", str(port)]
    return [*words, f"{user}@{node}", "--", text]


def _known_hosts() -> list[str]:
    """The host keys that the cluster knows count as well as those of the user and the host."""
    where = paths.current()
    if not where.ssh_managed.exists():
        return []
    return [f"-oGlobalKnownHostsFile={where.known_hosts} /etc/ssh/ssh_known_hosts"]


def run(
    node: str,
    command: Sequence[str],
    *,
    timeout: float,
    input: bytes | None = None,
    port: int = 22,
    check_host_key: bool = True,
    options: Sequence[str] = (),
) -> process.Result:
    """Run a command on a node and wait for its end; blocks at most ``timeout`` seconds.

    ``input`` is its standard input: the place for secrets, which must not be in words.

    Raises:
        CommandError: the remote shell itself cannot be started.
    """
    words = argv(node, command, port=port, check_host_key=check_host_key, options=options)
    return process.run(words, timeout=timeout, input=input, env=os.environ)


def run_everywhere(
    nodes: Sequence[str],
    command: Sequence[str],
    *,
    timeout: float,
    input: bytes | None = None,
    ports: Mapping[str, int] | None = None,
) -> list[process.Result]:
    """Run the same command on several nodes at the same time; results in the order of nodes.

    A node on which it could not be started has a result with exit code 255.
    """
    from concurrent.futures import ThreadPoolExecutor

    known = ports or {}

    def run_one(node: str) -> process.Result:
        try:
            return run(node, command, timeout=timeout, input=input, port=known.get(node, 22))
        except errors.CommandError as err:
            return process.Result((node,), SSH_FAILED, "", errors.text(err))

    with ThreadPoolExecutor(max_workers=max(1, min(PARALLEL, len(nodes)))) as pool:
        return list(pool.map(run_one, nodes))
