"""gnt-os: OS definitions of the nodes and their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.cli import formats, jobs, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, many, one
from ganeti.cli.option import value
from ganeti.cli.programs import OS

_HIDDEN = value(
    "--hidden", dest="hidden", kind="bool", help="Whether the OS is left out of lists"
)
_BLACKLISTED = value(
    "--blacklisted", dest="blacklisted", kind="bool", help="Whether the OS must not be installed"
)


def names_with_variants(name: str, variants: Sequence[str] | None) -> list[str]:
    """An OS as it can be installed: once for each variant, if it has any."""
    return [f"{name}+{variant}" for variant in variants] if variants else [name]


def _diagnose(call: Call, fields: Sequence[str]) -> list[dict[str, Any]]:
    rows = jobs.run_op(call, "OP_OS_DIAGNOSE", output_fields=list(fields), names=[])
    return [dict(zip(fields, row, strict=True)) for row in rows]


@OS.command("list", options=(o.NO_HEADERS, o.FORMAT, o.PRIORITY))
def list_oses(call: Call) -> None:
    """List the operating systems that can be installed, with their variants."""
    form = formats.wanted(call)
    found = _diagnose(call, ("name", "variants", "valid", "hidden", "blacklisted"))
    names = [
        text
        for item in found
        if item["valid"] and not item["hidden"] and not item["blacklisted"]
        for text in names_with_variants(item["name"], item["variants"])
    ]
    headers = not call.opts.no_headers
    if form is None:
        output.print_lines(["Name", *names] if headers else names)
        return
    records = [{"name": name} for name in names]
    output.print_lines(formats.lines(form, ["name"], records, headers=headers))


@OS.command("info", many("os"), aliases=("show",), options=(o.PRIORITY,))
def show_info(call: Call) -> None:
    """Show versions, variants and parameters of OS definitions."""
    fields = (
        "name", "valid", "variants", "parameters", "api_versions", "blacklisted", "hidden",
        "os_hvp", "osparams", "trusted",
    )  # fmt: skip
    found = {item["name"]: item for item in _diagnose(call, fields)}
    for name in call.args or found:
        item = found.get(name)
        print(f"{name}:" if item else f"{name}: ")
        if item is not None:
            output.print_lines(_info_lines(item))
        print()


def _info_lines(item: dict[str, Any]) -> list[str]:
    lines = [
        f"  - valid: {item['valid']}",
        f"  - hidden: {item['hidden']}",
        f"  - blacklisted: {item['blacklisted']}",
    ]
    if item["valid"]:
        lines.append("  - API versions:")
        lines += [f"    - {version}" for version in sorted(item["api_versions"] or ())]
        lines.append("  - variants:")
        lines += [f"    - {variant}" for variant in item["variants"] or ()]
        lines.append("  - parameters:")
        lines += [f"    - {name}: {text}" for name, text in item["parameters"] or ()]
        lines.append(f"  - trusted: {item['trusted']}")
    return lines


@OS.command("diagnose", options=(o.PRIORITY,))
def diagnose(call: Call) -> int:
    """Show which nodes have which OS definitions, and what is wrong with them.

    Fails when an OS cannot be used on all nodes.
    """
    fields = (
        "name", "valid", "variants", "parameters", "api_versions", "node_status",
        "hidden", "blacklisted",
    )  # fmt: skip
    found = _diagnose(call, fields)
    nodes = {row[0]: row[1] for row in call.client.query_nodes([], ["uuid", "name"])}
    code = 0
    for item in found:
        output.print_lines(_diagnosis(item, nodes))
        if not item["valid"]:
            code = 1
    return code


def _diagnosis(item: dict[str, Any], nodes: dict[str, str]) -> list[str]:
    marks = [word for word in ("hidden", "blacklisted") if item[word]]
    marks.insert(0, "valid" if item["valid"] else "invalid")
    lines = [f"OS: {item['name']} [global status: {', '.join(marks)}]"]
    if item["valid"]:
        lines.append(f"  Variants: [{', '.join(item['variants'] or ())}]")
        lines.append(f"  Parameters: [{', '.join(name for name, _ in item['parameters'] or ())}]")
        lines.append(f"  API versions: [{', '.join(map(str, item['api_versions'] or ()))}]")
    for uuid, entries in item["node_status"].items():
        if not entries:
            lines.append(f"  Node: {nodes.get(uuid, uuid)}, status: missing")
        for number, (path, ok, text, *_rest) in enumerate(entries):
            state = "valid" if ok else f"invalid: {text}"
            place = "" if number == 0 else " (not used, another one comes first)"
            lines.append(f"  Node: {nodes.get(uuid, uuid)}, status: {state}, path: {path}{place}")
    return [*lines, ""]


@OS.command(
    "modify",
    one("os"),
    options=(
        o.HV_LIST, o.OS_PARAMS, o.OS_PARAMS_PRIVATE, _HIDDEN, _BLACKLISTED, *o.JOB_OPTIONS,
    ),
)  # fmt: skip
def modify(call: Call) -> None:
    """Change the settings of an OS for the whole cluster."""
    name, opts = call.args[0], call.opts
    hvparams: dict[str, Any] = {}
    for hypervisor, keys in opts.hvparams:
        hvparams[hypervisor] = values.resets_as_default(keys) if isinstance(keys, dict) else keys
    changes = {
        "os_hvp": {name: hvparams} if hvparams else None,
        "osparams": {name: values.resets_as_default(opts.osparams)} if opts.osparams else None,
        "osparams_private_cluster": (
            {name: values.resets_as_default(opts.osparams_private)}
            if opts.osparams_private
            else None
        ),
        "hidden_os": _membership(name, opts.hidden),
        "blacklisted_os": _membership(name, opts.blacklisted),
    }
    if all(change is None for change in changes.values()):
        raise errors.OpPrereqError(
            "Nothing to change: give at least one option", errors.ErrorCode.INVAL
        )
    jobs.run_op(call, "OP_CLUSTER_SET_PARAMS", **changes)


def _membership(name: str, wanted: bool | None) -> list[list[str]] | None:
    return None if wanted is None else [["add" if wanted else "remove", name]]
