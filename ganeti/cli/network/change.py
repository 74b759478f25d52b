"""gnt-network: make, change, connect, disconnect, rename and remove networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.cli import jobs
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, many, one
from ganeti.cli.option import value
from ganeti.cli.programs import NETWORK

_NETWORK = value("--network", dest="network", metavar="<address>/<length>", help="IPv4 subnet")
_NETWORK6 = value("--network6", dest="network6", metavar="<address>/<length>", help="IPv6 subnet")
_GATEWAY = value("--gateway", dest="gateway", metavar="<address>", help="IPv4 gateway")
_GATEWAY6 = value("--gateway6", dest="gateway6", metavar="<address>", help="IPv6 gateway")
_ADD_RESERVED = value(
    "--add-reserved-ips",
    dest="add_reserved_ips",
    kind="list",
    metavar="<address>,...",
    help="Addresses that no instance gets",
)
_REMOVE_RESERVED = value(
    "--remove-reserved-ips",
    dest="remove_reserved_ips",
    kind="list",
    metavar="<address>,...",
    help="Addresses that instances may get again",
)
_TAGS = value(
    "--tags", dest="tags", metavar="<tag>,...", help="Tags of the network, with commas between"
)
_NIC_PARAMS = value(
    "-N",
    "--nic-parameters",
    dest="nicparams",
    kind="keyval",
    default={},
    help="How NICs reach the network: mode, link, vlan",
)
_NO_CONFLICTS_CHECK = o.NO_CONFLICTS_CHECK.but(
    help="Do not look who has addresses of the network already"
)
#: What a connection is like where -N says nothing.
_CONNECTION = {"mode": "bridged", "link": "xen-br0", "vlan": ""}


def _reset(option: Any) -> Any:
    return option.but(help=f"{option.help}; none removes it")


@NETWORK.command(
    "add",
    one("network"),
    options=(
        _NETWORK,
        _GATEWAY,
        _NETWORK6,
        _GATEWAY6,
        _ADD_RESERVED,
        c.MAC_PREFIX,
        _NO_CONFLICTS_CHECK,
        _TAGS,
        *o.JOB_OPTIONS,
    ),
    usage="--network=<address>/<length> <network>",
)
def add(call: Call) -> None:
    """Create a network; connect it to node groups before instances use it.

    The first and last address, the gateway and, unless --no-conflicts-check is given, addresses
    of nodes and cluster are reserved.
    """
    opts = call.opts
    if opts.network is None:
        raise errors.OpPrereqError(
            "The subnet is missing, as in --network=192.0.2.0/24", errors.ErrorCode.INVAL
        )
    jobs.run_op(
        call,
        "OP_NETWORK_ADD",
        network_name=call.args[0],
        network=opts.network,
        gateway=opts.gateway,
        network6=opts.network6,
        gateway6=opts.gateway6,
        mac_prefix=opts.mac_prefix,
        add_reserved_ips=opts.add_reserved_ips,
        conflicts_check=opts.conflicts_check,
        tags=[tag for tag in (opts.tags or "").split(",") if tag],
    )


@NETWORK.command(
    "modify",
    one("network"),
    options=(
        _reset(_GATEWAY),
        _reset(_NETWORK6),
        _reset(_GATEWAY6),
        _ADD_RESERVED,
        _REMOVE_RESERVED,
        _reset(c.MAC_PREFIX),
        *o.JOB_OPTIONS,
    ),
)
def modify(call: Call) -> None:
    """Change a network; what is not named stays. Its subnet cannot be changed."""
    names = (
        "gateway",
        "network6",
        "gateway6",
        "mac_prefix",
        "add_reserved_ips",
        "remove_reserved_ips",
    )
    changes = {name: getattr(call.opts, name) for name in names}
    if not any(changes.values()):
        raise errors.OpPrereqError(
            "Nothing to change: give at least one option", errors.ErrorCode.INVAL
        )
    jobs.run_op(call, "OP_NETWORK_SET_PARAMS", network_name=call.args[0], **changes)


@NETWORK.command("remove", one("network"), options=(o.FORCE, *o.JOB_OPTIONS))
def remove(call: Call) -> None:
    """Remove a network that no instance uses.

    It must not be connected to a node group either, unless --force is given.
    """
    jobs.run_op(call, "OP_NETWORK_REMOVE", network_name=call.args[0], force=call.opts.force)


@NETWORK.command("rename", one("network"), one("new-name"), options=o.JOB_OPTIONS)
def rename(call: Call) -> None:
    """Give a network another name."""
    old, new = call.args
    jobs.run_op(call, "OP_NETWORK_RENAME", network_name=old, new_name=new)


@NETWORK.command(
    "connect",
    one("network"),
    many("group"),
    options=(_NIC_PARAMS, _NO_CONFLICTS_CHECK, o.PRIORITY),
    usage="-N mode=<mode>,link=<link>[,vlan=<vlan>] <network> [<group>...]",
)
def connect(call: Call) -> int:
    """Let the instances of node groups (all without groups) use a network.

    The link is a bridge (mode bridged), a switch (openvswitch) or a routing table (routed).
    """
    params = _connection(call.opts.nicparams)
    return _on_groups(
        call,
        lambda group: jobs.build(
            call,
            "OP_NETWORK_CONNECT",
            network_name=call.args[0],
            group_name=group,
            network_mode=params["mode"],
            network_link=params["link"],
            network_vlan=params["vlan"],
            conflicts_check=call.opts.conflicts_check,
        ),
    )


@NETWORK.command("disconnect", one("network"), many("group"), options=(o.PRIORITY,))
def disconnect(call: Call) -> int:
    """Stop node groups (all without groups) from using a network; no instance there may use it."""
    return _on_groups(
        call,
        lambda group: jobs.build(
            call, "OP_NETWORK_DISCONNECT", network_name=call.args[0], group_name=group
        ),
    )


def _connection(given: dict[str, Any]) -> dict[str, str]:
    for key, text in given.items():
        if key not in _CONNECTION:
            raise errors.OpPrereqError(
                f"-N: unknown key '{key}'{nearest(key, _CONNECTION)}; known are"
                f" {', '.join(_CONNECTION)}",
                errors.ErrorCode.INVAL,
            )
        if not isinstance(text, str):
            raise errors.OpPrereqError(
                f"-N: '{key}' needs a value, as in {key}=...", errors.ErrorCode.INVAL
            )
    return {**_CONNECTION, **given}


def _on_groups(call: Call, make: Callable[[str], jobs.WireOp]) -> int:
    """One job for each of the groups that are named, or for all."""
    groups = call.args[1:] or [row[0] for row in call.client.query_groups([], ("name",))]
    outcomes = jobs.run_many(
        call, [(group, make(group)) for group in groups], announce=len(groups) > 1
    )
    return jobs.exit_code(outcomes)
