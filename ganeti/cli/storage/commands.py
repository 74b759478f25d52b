"""gnt-storage: providers of external storage on the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.text import natural_sorted
from ganeti.cli import jobs, output
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import STORAGE


def _diagnose(call: Call, *fields: str) -> list[JsonObject]:
    rows = jobs.run_op(call, "OP_EXT_STORAGE_DIAGNOSE", output_fields=list(fields), names=[])
    return [dict(zip(fields, row, strict=True)) for row in rows]


@STORAGE.command("diagnose", options=(o.PRIORITY,))
def diagnose(call: Call) -> None:
    """Show which nodes have which providers, and what is wrong with them."""
    found = _diagnose(call, "name", "node_status", "nodegroup_status")
    nodes = {row[0]: row[1] for row in call.client.query_nodes([], ["uuid", "name"])}
    for item in found:
        print(f"Provider: {item['name']}")
        good: dict[str, str] = {}
        bad: dict[str, str] = {}
        for uuid, entries in item["node_status"].items():
            works, text = _node_state(entries)
            (good if works else bad)[nodes.get(uuid, uuid)] = text
        for states in (good, bad):
            output.print_lines(
                [f"  Node: {node}, status: {states[node]}" for node in natural_sorted(states)]
            )
        working = _find_working_groups(item)
        others = natural_sorted(set(item["nodegroup_status"]) - set(working))
        for group in (*working, *others):
            state = "valid" if group in working else "invalid"
            print(f"  For nodegroup: {group} --> {state}")
        print()


def _node_state(entries: list[list[Any]]) -> tuple[bool, str]:
    """Whether the first find of a node works, and how that is said."""
    if not entries:
        return False, "ExtStorage provider not found"
    path, works, text, parameters = entries[0]
    state = "valid" if works else f"invalid - {text}"
    names = ", ".join(name for name, _description in parameters)
    shown_parameters = f"[parameters: {names}]" if names else "[no parameters]"
    return works, f"{state} (path: {path}) {shown_parameters}"


def _find_working_groups(item: Mapping[str, Any]) -> list[str]:
    return natural_sorted(
        name for name, status in item["nodegroup_status"].items() if status["valid"]
    )


@STORAGE.command("info", take_many("provider"), options=(o.PRIORITY,))
def show_info(call: Call) -> None:
    """Show the node groups where providers work, and their parameters."""
    found = {
        item["name"]: item for item in _diagnose(call, "name", "nodegroup_status", "parameters")
    }
    for name in [name for name in found if not call.args or name in call.args]:
        print(f"{name}:")
        output.print_lines(_info_lines(found[name]))
        print()
    for name in call.args:
        if name not in found:
            print(f"{name}: Not Found\n")


def _info_lines(item: Mapping[str, Any]) -> list[str]:
    groups = _find_working_groups(item)
    if not groups:
        return ["  - Invalid for all nodegroups"]
    return [
        "  - Valid for nodegroups:",
        *(f"      {group}" for group in groups),
        "  - Supported parameters:",
        *(f"      {name}: {text}" for name, text in item["parameters"]),
    ]
