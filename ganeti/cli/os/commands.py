"""gnt-os: OS definitions of the nodes and their settings."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.cli import formats, info, jobs, output, values
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import OS

#: API versions from which on a definition has variants, and parameters.
_WITH_VARIANTS, _WITH_PARAMETERS = 15, 20

_CHANGES = ("hvparams", "osparams", "osparams_private_cluster", "hidden_os", "blacklisted_os")


def names_with_variants(name: str, variants: Sequence[str] | None) -> list[str]:
    """An OS as it can be installed: once for each variant, if it has any."""
    return [f"{name}+{variant}" for variant in variants] if variants else [name]


def _diagnose(call: Call, fields: Sequence[str]) -> list[JsonObject]:
    rows = jobs.run_op(call, "OP_OS_DIAGNOSE", output_fields=list(fields), names=[])
    return [dict(zip(fields, row, strict=True)) for row in rows]


@OS.command("list", options=(o.NO_HEADERS, o.FORMAT, o.PRIORITY))
def list_oses(call: Call) -> None:
    """List the operating systems that can be installed, with their variants."""
    form = formats.choose(call)
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


@OS.command("info", take_many("os"), aliases=("show",), options=(o.INFO_FORMAT, o.PRIORITY))
def show_info(call: Call) -> None:
    """Show versions, variants and parameters of OS definitions."""
    fields = (
        "name",
        "valid",
        "variants",
        "parameters",
        "api_versions",
        "blacklisted",
        "hidden",
        "os_hvp",
        "osparams",
        "trusted",
        "hypervisors",
    )
    found = {item["name"]: item for item in _diagnose(call, fields)}
    if call.opts.format != "text":
        shown = {name: found.get(name) for name in call.args or found}
        info.show(call, {name: item and dict(item) for name, item in shown.items()})
        return
    for name in call.args or found:
        item = found.get(name)
        print(f"{name}:" if item else f"{name}: ")
        if item is not None:
            output.print_lines(_info_lines(item))
        print()


def _info_lines(item: JsonObject) -> list[str]:
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
        lines += [f"    - {name}: {info.text(text)}" for name, text in item["parameters"] or ()]
        lines.append(f"  - trusted: {item['trusted']}")
        if item["hypervisors"]:
            lines.append("  - hypervisors:")
            lines += [f"    - {name}" for name in item["hypervisors"]]
    return lines


@OS.command("diagnose", options=(o.PRIORITY,))
def diagnose(call: Call) -> int:
    """Show which nodes have which OS definitions, and what is wrong with them.

    Fails when an OS cannot be used on all nodes.
    """
    fields = (
        "name",
        "valid",
        "variants",
        "parameters",
        "api_versions",
        "node_status",
        "hidden",
        "blacklisted",
        "hypervisors",
    )
    found = _diagnose(call, fields)
    nodes = {row[0]: row[1] for row in call.client.query_nodes([], ["uuid", "name"])}
    code = 0
    for item in found:
        output.print_lines(_diagnosis(item, nodes))
        if not item["valid"]:
            code = 1
    return code


def _diagnosis(item: JsonObject, nodes: dict[str, str]) -> list[str]:
    marks = "".join(f" [{word}]" for word in ("hidden", "blacklisted") if item[word])
    lines = [f"OS: {item['name']} [global status: {_global_status(item)}]{marks}"]
    if item["valid"]:
        lines.append(f"  Variants: [{', '.join(item['variants'] or ())}]")
        lines.append(f"  Parameters: [{', '.join(name for name, _ in item['parameters'] or ())}]")
        if item["hypervisors"]:
            lines.append(f"  Hypervisors: [{', '.join(item['hypervisors'])}]")
    for uuid, entries in item["node_status"].items():
        first, *others = entries or [None]
        status = "OS not found" if first is None else _describe_state(*first)
        lines.append(f"  Node: {nodes.get(uuid, uuid)}, status: {status}")
        # others of the same name are not used
        lines += [
            f"    [path: {path}, status: {_state(ok, text)}]" for path, ok, text, *_rest in others
        ]
    return [*lines, ""]


def _global_status(item: JsonObject) -> str:
    if item["valid"]:
        return "valid"
    usable = any(entries and entries[0][1] for entries in item["node_status"].values())
    return "partial valid" if usable else "invalid"


def _describe_state(
    path: str,
    ok: bool,
    text: str,
    variants: list[str],
    parameters: list[list[str]],
    versions: list[int],
    trusted: bool,
) -> str:
    """State of a definition on a node; which words are there depends on its API version."""
    latest = max(versions, default=0)
    facts = [
        f"API versions: {', '.join(map(str, sorted(versions)))}"
        if versions
        else "no API versions declared"
    ]
    if latest >= _WITH_VARIANTS:
        facts.append(f"variants: {', '.join(variants)}" if variants else "no variants")
    if latest >= _WITH_PARAMETERS:
        names = ", ".join(name for name, _doc in parameters)
        facts.append(f"parameters: {names}" if names else "no parameters")
    facts.append("trusted" if trusted else "untrusted")
    return f"{_state(ok, text)} (path: {path}) {' '.join(f'[{fact}]' for fact in facts)}"


def _state(ok: bool, text: str) -> str:
    return "VALID" if ok else f"INVALID - {text}"


@OS.command(
    "modify",
    take_one("os"),
    op="OP_CLUSTER_SET_PARAMS",
    only=_CHANGES,
    names={
        "osparams": override("-O", "--os-parameters", kind="keyval", help="OS parameters"),
        "osparams_private_cluster": override(
            "--os-parameters-private",
            kind="keyprivateval",
            help="OS parameters that are stored but not shown",
        ),
        "hidden_os": override("--hidden", kind="bool", help="Whether the OS is left out of lists"),
        "blacklisted_os": override(
            "--blacklisted", kind="bool", help="Whether the OS must not be installed"
        ),
    },
    options=o.JOB_OPTIONS,
)
def modify(call: Call) -> None:
    """Change the settings of an OS for the whole cluster."""
    name, opts = call.args[0], call.opts
    hvparams: JsonObject = {}
    for hypervisor, keys in opts.hvparams:
        hvparams[hypervisor] = values.resets_as_default(keys) if isinstance(keys, dict) else keys
    changes = {
        "os_hvp": {name: hvparams} if hvparams else None,
        "osparams": {name: values.resets_as_default(opts.osparams)} if opts.osparams else None,
        "osparams_private_cluster": (
            {name: values.resets_as_default(opts.osparams_private_cluster)}
            if opts.osparams_private_cluster
            else None
        ),
        "hidden_os": _membership(name, opts.hidden_os),
        "blacklisted_os": _membership(name, opts.blacklisted_os),
    }
    if all(change is None for change in changes.values()):
        raise errors.make_invalid_error("Nothing to change: give at least one option")
    jobs.run_op(call, "OP_CLUSTER_SET_PARAMS", **changes)


def _membership(name: str, wanted: bool | None) -> list[list[str]] | None:
    return None if wanted is None else [["add" if wanted else "remove", name]]
