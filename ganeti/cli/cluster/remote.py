"""gnt-cluster: run a command, or put a file, on many nodes."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.cli import notices, params, ssconf
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.option import switch
from ganeti.cli.programs import CLUSTER

#: Seconds one command may take on a node, and a file to arrive there.
COMMAND_TIMEOUT = 3600.0
COPY_TIMEOUT = 600.0

#: Replaces a file in one step; path and mode are arguments, the content is the standard input.
_RECEIVE = (
    'new="$1.ganeti-new.$$"; (umask 077; cat > "$new") && chmod -- "$2" "$new"'
    ' && mv -f -- "$new" "$1" || { rm -f -- "$new"; exit 1; }'
)

_FAILURE_ONLY = switch(
    "--failure-only", dest="failure_only", help="Show only nodes where the command failed"
)
_REPLICATION_NET = switch(
    "--use-replication-network",
    dest="use_replication_network",
    help="Send over the network for the replication of disks",
)


@CLUSTER.command(
    "command",
    take_many("command", least=1),
    passes_on=True,
    options=(o.NODES, o.NODE_GROUP, o.SHOW_MACHINE, _FAILURE_ONLY),
    usage="[-n <node>...] <command>",
)
def run_command(call: Call) -> None:
    """Run a command on all nodes at the same time, and show what each printed.

    The words are joined and passed to the shell of each node. The master node comes last.
    """
    from ganeti.base import remote_shell

    opts = call.opts
    master = ssconf.master()
    nodes = params.online_nodes(call.client, opts.nodes, opts.nodegroup)
    nodes.sort(key=lambda name: name == master)
    results = remote_shell.run_everywhere(
        nodes,
        ["/bin/sh", "-c", " ".join(call.args)],
        timeout=COMMAND_TIMEOUT,
        ports=ssconf.ssh_ports(),
    )
    for node, result in zip(nodes, results, strict=True):
        if opts.failure_only and result.ok:
            continue
        print("-" * 48)
        text = result.stdout + result.stderr
        if opts.show_machine_names:
            for line in text.splitlines():
                print(f"{node}: {line}")
        else:
            print(f"node: {node}\n{text}")
        print(f"return code = {result.code}", flush=True)


@CLUSTER.command(
    "copyfile",
    take_one("file"),
    options=(o.NODES, _REPLICATION_NET, o.NODE_GROUP),
    usage="[-n <node>...] <file>",
)
def copyfile(call: Call) -> None:
    """Copy a file of this node to the other nodes, with the same path and mode."""
    from ganeti.base import remote_shell

    opts = call.opts
    path = Path(call.args[0]).absolute()
    data, mode = _read(path)
    names = params.online_nodes(call.client, opts.nodes, opts.nodegroup, without=ssconf.master())
    targets = names
    if opts.use_replication_network:
        address = ssconf.mapping("node_secondary_ips")
        targets = [address.get(name, name) for name in names]
    ports = ssconf.ssh_ports()
    results = remote_shell.run_everywhere(
        targets,
        ["/bin/sh", "-c", _RECEIVE, "copyfile", str(path), f"{mode:04o}"],
        timeout=COPY_TIMEOUT,
        input=data,
        ports={
            target: ports[name]
            for name, target in zip(names, targets, strict=True)
            if name in ports
        },
    )
    failed = [(name, res) for name, res in zip(names, results, strict=True) if not res.ok]
    for name, result in failed:
        reason = (result.stderr or result.stdout).strip() or result.explain()
        notices.say(f"Copy of file {path} to node {name} failed: {reason}")
    if failed:
        raise Exit(1)


def _read(path: Path) -> tuple[bytes, int]:
    try:
        return path.read_bytes(), path.stat().st_mode & 0o7777
    except OSError as err:
        raise errors.make_invalid_error(
            f"File {path} cannot be read: {err.strerror or err}"
        ) from err
