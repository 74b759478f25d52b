"""gnt-node add: prepare a server and add it to the cluster."""

from __future__ import annotations

from ganeti import constants, errors, paths
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, notices, selection, ssconf
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.failures import NodeSetupError
from ganeti.cli.fields import override
from ganeti.cli.programs import NODE

#: Program that prepares a server; reads certificates from its standard input.
SETUP_PROGRAM = "ganeti-node-setup"
#: Seconds it may take.
SETUP_TIMEOUT = 180.0
_NOT_FOUND = 127


@NODE.command(
    "add",
    take_one("host"),
    op="OP_NODE_ADD",
    without=("node_name", "primary_ip"),
    names={
        "group": override("-g", "--node-group"),
        "node_setup": override(
            "--no-node-setup",
            kind="switch_off",
            help="The node is prepared already: its certificates are there and its daemon runs",
        ),
    },
    also={"SetupRequest": ("force_join",)},
    new=True,
    options=(o.NO_SSH_KEY_CHECK, o.VERBOSE, o.PRIORITY),
)
def add(call: Call) -> None:
    """Add a server to the cluster.

    Makes certificates for the server, sends them over SSH (or the command in the variable
    GANETI_REMOTE_SHELL), starts the node daemon there, and records the node. The programs must
    be installed on the server, and root of this node must be able to log in there. A cluster that
    manages SSH then lets root of its master candidates log in there, too.
    """
    opts = call.opts
    name, address = _resolve(call.args[0])
    _check_membership(call, name)
    if opts.node_setup:
        cluster_name = str(call.client.query_config_values(["cluster_name"])[0])
        prepare(
            name,
            address,
            cluster_name,
            check_host_key=opts.ssh_key_check,
            force_join=opts.force_join or opts.readd,
            runs_instances=opts.vm_capable is not False,
            verbose=opts.verbose,
        )
    jobs.run(call, node_name=name, primary_ip=address, node_setup=None)


def _resolve(given: str) -> tuple[str, str]:
    """Full name and address of the new node."""
    from ganeti.net import resolve

    address = resolve.address(given)
    full = given if "." in given else resolve.reverse(address)
    return full or given, address


def _check_membership(call: Call, name: str) -> None:
    """Refuse early, before anything is changed on the server."""
    known = call.client.query_nodes([], ["name", "uuid"])
    member = any(row[0] == name for row in known)
    if member and not call.opts.readd:
        raise errors.make_exists_error(
            f"Node {name} is in the cluster already (--readd adds it after it was set up again)",
        )
    if call.opts.readd and not member:
        selection.refuse_unknown(call.client, "node", [name], known)
    if call.opts.readd and name == ssconf.master():
        raise errors.make_state_error(f"Node {name} is the master and cannot be added again")


def prepare(
    name: str,
    address: str,
    cluster_name: str,
    *,
    check_host_key: bool = True,
    force_join: bool = False,
    runs_instances: bool = True,
    verbose: bool = False,
) -> None:
    """Send a server its certificates and start its node daemon; blocks up to 3 minutes.

    Warns of what instances would miss there, if it is to run any.

    Raises:
        NodeSetupError: it could not be reached or refused; the text has its own words.
        X509CertError: the authority of the cluster cannot be read.
    """
    from ganeti.base import jsonio, remote_shell

    request = _request(name, address, cluster_name) | {"force_join": force_join}
    if runs_instances:
        request["needs"] = _needs()
    request["now"] = SYSTEM.now()
    if verbose:
        notices.say(f"Preparing {name} ({address}) with {SETUP_PROGRAM}")
    try:
        result = remote_shell.run(
            name,
            [SETUP_PROGRAM],
            timeout=SETUP_TIMEOUT,
            input=jsonio.dumps_bytes(request),
            port=ssconf.ssh_ports().get(name, 22),
            check_host_key=check_host_key,
        )
    except errors.CommandError as err:
        raise NodeSetupError(f"Node {name} cannot be prepared: {errors.text(err)}") from err
    if result.ok:
        for line in result.stdout.splitlines():
            notices.warn(f"Node {name}: {line}")
        return
    output = (result.stderr or result.stdout).strip()
    if result.timed_out:
        output = f"no answer within {SETUP_TIMEOUT:g} seconds. {output}".strip()
    elif result.code == remote_shell.SSH_FAILED:
        output = f"it cannot be reached over SSH as root: {output}"
    elif result.code == _NOT_FOUND:
        output = f"{SETUP_PROGRAM} is not there; install version {constants.RELEASE_VERSION} first"
    raise NodeSetupError(f"Node {name} cannot be prepared: {output or result.explain()}")


def _needs() -> JsonObject | None:
    """The needs of instances of this cluster on a server."""
    from dataclasses import asdict

    from ganeti.doctor import needs

    found = needs.here(paths.current())
    return None if found is None else asdict(found)


def _request(name: str, address: str, cluster_name: str) -> JsonObject:
    """The request to the program on the server; holds private keys."""
    from ganeti.net import certs

    where = paths.current()
    authority = certs.read_authority(where.ca_key, where.ca_cert)
    server = certs.issue_server(authority, name, [address])
    client = certs.issue_client(authority, name, [address])
    return {
        "cluster_name": cluster_name,
        "node_name": name,
        "ca_pem": where.ca_cert.read_text(encoding="ascii"),
        "server_pem": server.pem.decode("ascii"),
        "client_pem": client.pem.decode("ascii"),
        "ssconf": ssconf.read_contents(),
        "start": True,
        "manage_ssh": where.ssh_managed.exists(),
        "manage_hosts": where.hosts_managed.exists(),
    }
