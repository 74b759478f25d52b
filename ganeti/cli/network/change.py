"""gnt-network: create, modify, connect, disconnect, rename and remove networks."""

from __future__ import annotations

from collections.abc import Callable

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.cli import jobs, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import NETWORK
from ganeti.model.enums import NicMode

_NAME = take_one("network", "network_name")
#: Parameters of a connection for which -N says nothing.
_CONNECTION = {"mode": "bridged", "link": "xen-br0", "vlan": ""}

NETWORK.submits("rename", "OP_NETWORK_RENAME", _NAME, take_one("new-name", "new_name"))


@NETWORK.command(
    "add",
    _NAME,
    op="OP_NETWORK_ADD",
    options=o.JOB_OPTIONS,
    usage="--network=<address>/<length> <network>",
)
def add(call: Call) -> None:
    """Create a network; connect it to node groups before instances use it.

    The first and last address, the gateway and, unless --no-conflicts-check is given, addresses
    of nodes and cluster are reserved.
    """
    if call.opts.network is None:
        raise errors.make_invalid_error("The subnet is missing, as in --network=192.0.2.0/24")
    jobs.run(call)


@NETWORK.command("modify", _NAME, op="OP_NETWORK_SET_PARAMS", options=o.JOB_OPTIONS)
def modify(call: Call) -> None:
    """Change a network; other settings keep their values. The subnet cannot be changed."""
    jobs.run_changes(call)


@NETWORK.command("remove", _NAME, op="OP_NETWORK_REMOVE", options=o.JOB_OPTIONS)
def remove(call: Call) -> None:
    """Remove a network that no instance uses.

    It must not be connected to a node group either, unless --force is given.
    """
    jobs.run(call)


@NETWORK.command(
    "connect",
    _NAME,
    take_many("group"),
    op="OP_NETWORK_CONNECT",
    only=("conflicts_check",),
    # mode, link and vlan of a connection are one option, as for NICs
    also={"OP_CLUSTER_SET_PARAMS": ("nicparams",)},
    names={
        "nicparams": override(
            "-N",
            "--nic-parameters",
            kind="keyval",
            help="How NICs reach the network: mode, link, vlan",
        )
    },
    options=(o.PRIORITY,),
    usage="-N mode=<mode>,link=<link>[,vlan=<vlan>] <network> [<group>...]",
)
def connect(call: Call) -> int:
    """Connect a network to node groups (to all without groups), for their instances to use.

    The link is a bridge (mode bridged), a switch (openvswitch) or a routing table (routed).
    """
    _refuse_old_form(call.args)
    connection = _connection(call.opts.nicparams)
    return _submit_for_groups(
        call,
        lambda group: jobs.build_own(
            call,
            group_name=group,
            network_mode=connection["mode"],
            network_link=connection["link"],
            network_vlan=connection["vlan"],
        ),
    )


@NETWORK.command(
    "disconnect",
    _NAME,
    take_many("group"),
    op="OP_NETWORK_DISCONNECT",
    without=("group_name",),
    options=(o.PRIORITY,),
)
def disconnect(call: Call) -> int:
    """Disconnect a network from node groups (from all without groups).

    No instance of these node groups may use it.
    """
    return _submit_for_groups(call, lambda group: jobs.build_own(call, group_name=group))


def _connection(given: JsonObject) -> dict[str, str]:
    for key, text in given.items():
        if key not in _CONNECTION:
            raise errors.make_invalid_error(
                f"-N: unknown key '{key}'{nearest(key, _CONNECTION)}; choose from"
                f" {', '.join(_CONNECTION)}",
            )
        if not isinstance(text, str):
            raise errors.make_invalid_error(f"-N: '{key}' needs a value, as in {key}=...")
    return {**_CONNECTION, **given}


def _refuse_old_form(args: list[str]) -> None:
    """Before 2.10 mode and link were arguments; a group of that name would be taken for them."""
    if len(args) > 2 and args[1] in set(NicMode):
        raise errors.make_invalid_error(
            f"Mode and link are given as -N mode={args[1]},link={args[2]}"
        )


def _submit_for_groups(call: Call, make: Callable[[str], jobs.WireOp]) -> int:
    """One job for each of the groups that are named, or for all."""
    rows = call.client.query_groups(call.args[1:], ("name", "uuid"))
    selection.refuse_unknown(call.client, "node group", call.args[1:], rows)
    groups = call.args[1:] or [row[0] for row in rows]
    outcomes = jobs.run_many(
        call, [(group, make(group)) for group in groups], announce=len(groups) > 1
    )
    return jobs.exit_code(outcomes)
