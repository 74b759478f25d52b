"""gnt-node: what nodes there are and how they are."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.cli import info, listing, output, selection, tags
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import NODE

_LIST_FIELDS = ("name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt")

_ROLES = {"M": "master", "C": "candidate", "R": "regular", "D": "drained", "O": "offline"}
_ON_TERMINAL = listing.OnTerminal(
    usual=("name", "role", *_LIST_FIELDS[1:]),
    texts={"role": lambda letter: _ROLES.get(letter, str(letter))},
)

tags.add_commands(NODE, "node", "node")


@NODE.command("list", take_many("node"), options=o.LIST_OPTIONS, default_args="GNT_NODE_LIST")
def list_nodes(call: Call) -> int:
    """List nodes.

    Arguments are names, patterns such as 'node1*', or one filter such as 'mfree > 1024'.
    """
    formats = dict.fromkeys(("pinst_list", "sinst_list", "tags"), output.join_items)
    return listing.show_list(call, "node", _LIST_FIELDS, texts=formats, on_terminal=_ON_TERMINAL)


@NODE.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-node list can show."""
    return listing.show_fields(call, "node")


@NODE.command("info", take_many("node"), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show addresses, roles, instances and parameters of nodes (all without arguments)."""
    fields = (
        "name",
        "pip",
        "sip",
        "pinst_list",
        "sinst_list",
        "master_candidate",
        "drained",
        "offline",
        "master_capable",
        "vm_capable",
        "powered",
        "ndparams",
        "custom_ndparams",
        "uuid",
    )
    rows = call.client.query_nodes(call.args, fields)
    selection.refuse_unknown(call.client, "node", call.args, [(row[0], row[-1]) for row in rows])
    info.show(call, [_node_info(dict(zip(fields, row, strict=True))) for row in rows])


def _node_info(node: JsonObject) -> list[info.Pair]:
    result: list[info.Pair] = [
        ("Node name", node["name"]),
        ("primary ip", node["pip"]),
        ("secondary ip", node["sip"]),
        ("master candidate", node["master_candidate"]),
        ("drained", node["drained"]),
        ("offline", node["offline"]),
    ]
    if node["powered"] is not None:
        result.append(("powered", node["powered"]))
    result += [("master_capable", node["master_capable"]), ("vm_capable", node["vm_capable"])]
    if node["vm_capable"]:
        result += [
            ("primary for instances", list(node["pinst_list"] or ())),
            ("secondary for instances", list(node["sinst_list"] or ())),
        ]
    own = node["custom_ndparams"] or {}
    return [*result, ("node parameters", info.mark_defaults(node["ndparams"] or {}, own))]
