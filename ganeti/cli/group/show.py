"""gnt-group: what node groups there are and how they are set."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.cli import info, listing, output, selection, tags
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.option import switch
from ganeti.cli.programs import GROUP

_LIST_FIELDS = ("name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams")
_INCLUDE_DEFAULTS = switch(
    "--include-defaults",
    dest="include_defaults",
    help="Also print what the group inherits from the cluster",
)

tags.add_commands(GROUP, "nodegroup", "group")


def _parameters(value: object) -> str:
    """Node parameters in one cell."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{key}={item}" for key, item in sorted(value.items()))


@GROUP.command(
    "list",
    take_many("group"),
    options=(o.NO_HEADERS, o.SEPARATOR, o.FIELDS, o.VERBOSE, o.FILTER, o.FORMAT),
    default_args="GNT_GROUP_LIST",
)
def list_groups(call: Call) -> int:
    """List node groups.

    Arguments are names, patterns, or one filter such as 'node_cnt == 0'.
    """
    formats = {
        **dict.fromkeys(("node_list", "pinst_list", "tags"), output.join_items),
        "ndparams": _parameters,
    }
    return listing.show_list(call, "group", _LIST_FIELDS, texts=formats)


@GROUP.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-group list can show."""
    return listing.show_fields(call, "group")


def _rows(call: Call, fields: tuple[str, ...]) -> list[JsonObject]:
    """The named groups (all without arguments); an unknown name is an error."""
    if call.args:
        known = call.client.query_groups([], ("name", "uuid"))
        selection.refuse_unknown(call.client, "node group", call.args, known)
    rows = call.client.query_groups(call.args, fields)
    return [dict(zip(fields, row, strict=True)) for row in rows]


@GROUP.command("info", take_many("group"), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show parameters and policies of node groups (all without arguments)."""
    fields = (
        "name",
        "ndparams",
        "custom_ndparams",
        "diskparams",
        "custom_diskparams",
        "ipolicy",
        "custom_ipolicy",
        "custom_beparams",
    )
    found = _rows(call, fields)
    info.show(call, [_group_info(group) for group in found])


def _group_info(group: JsonObject) -> list[info.Pair]:
    own = group["custom_beparams"]
    return [
        ("Node group", group["name"]),
        ("Node parameters", info.mark_defaults(group["ndparams"], group["custom_ndparams"])),
        *([("Backend parameters", own)] if own else []),
        ("Disk parameters", info.mark_defaults(group["diskparams"], group["custom_diskparams"])),
        ("Instance policy", _policy(group["ipolicy"], group["custom_ipolicy"])),
    ]


def _policy(policy: Mapping[str, Any], own: Mapping[str, object]) -> list[info.Pair]:
    """The policy of a group; inherited values are marked as ``default (value)``."""

    def format_own(key: str, text: object) -> object:
        return text if key in own else f"default ({text})"

    bounds: list[object] = [
        [
            (
                f"{limit}/{number}",
                {
                    key: size if "minmax" in own else f"default ({size})"
                    for key, size in pair.get(limit, {}).items()
                },
            )
            for limit in ("max", "min")
        ]
        for number, pair in enumerate(policy.get("minmax", []))
    ]
    templates = ", ".join(policy.get("disk-templates", ()))
    return [
        ("bounds specs", bounds),
        ("allowed disk templates", format_own("disk-templates", templates)),
        *((key, format_own(key, policy.get(key))) for key in ("spindle-ratio", "vcpu-ratio")),
    ]


@GROUP.command("show-ispecs-cmd", take_many("group"), options=(_INCLUDE_DEFAULTS,))
def show_ispecs_cmd(call: Call) -> None:
    """Print commands that create node groups with the policies of these (by default of all)."""
    for group in _rows(call, ("name", "ipolicy", "custom_ipolicy")):
        policy = group["ipolicy"] if call.opts.include_defaults else group["custom_ipolicy"]
        words = ["gnt-group", "add", *_policy_words(policy), group["name"]]
        print(shlex.join(words))


def _policy_words(policy: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    if "minmax" in policy:
        pairs = [
            "/".join(f"{limit}:{_sizes(pair[limit])}" for limit in ("min", "max"))
            for pair in policy["minmax"]
        ]
        words += ["--ipolicy-bounds-specs", "//".join(pairs)]
    if "disk-templates" in policy:
        words += ["--ipolicy-disk-templates", ",".join(policy["disk-templates"])]
    for key in ("spindle-ratio", "vcpu-ratio"):
        if key in policy:
            words += [f"--ipolicy-{key}", str(policy[key])]
    return words


def _sizes(sizes: Mapping[str, object]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(sizes.items()))
