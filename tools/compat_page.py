"""The parts of doc/compat.md that follow from the code: what is there, missing and added.

The page has a pair of comments around each part; all other lines are written by hand.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "test" / "support"))

import contract  # noqa: E402

PAGE = HERE / "doc" / "compat.md"
_PART = re.compile(r"(<!-- from the code: ([a-z ]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_WIDTH = 118


def filled(text: str) -> str:
    """The page with its parts made anew.

    Raises:
        KeyError: the page has a part that nobody makes.
    """
    return _PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", text)


# parts ----------------------------------------------------------------------------------------


def _overview() -> str:
    rows = ["| interface | there | of | missing | not needed |", "|---|---|---|---|---|"]
    for name, make in contract.TABLES.items():
        wanted, have = set(make()[0]), set(make()[1])
        never = contract.NEVER.get(name, frozenset()) & wanted
        missing = wanted - have - never
        rows.append(
            f"| {name} | {len(wanted & have)} | {len(wanted)} | {len(missing) or ''}"
            f" | {len(never) or ''} |"
        )
    return "\n".join(rows) + "\n"


def _state(table: str) -> Callable[[], str]:
    """A part that says how much of a table there is, and what is missing."""

    def make() -> str:
        wanted, have = (set(items) for items in contract.TABLES[table]())
        missing = sorted(wanted - have)
        never = [item for item in missing if item in contract.NEVER.get(table, ())]
        gone = [item for item in missing if item not in never]
        lines = [f"{len(wanted & have)} of {len(wanted)} {table} are there."]
        if gone:
            lines.append(f"Missing: {_names(gone)}.")
        if never:
            lines.append(f"Not needed here: {_names(never)}.")
        return _wrapped(" ".join(lines))

    return make


def _commands() -> str:
    return _state("commands")() + _more("Commands", "commands", _own_commands())


def _options() -> str:
    wanted, have = (set(items) for items in contract.TABLES["options"]())
    missing = sorted(item for item in wanted - have if contract.find_command(_command(item)))
    text = f"{len(wanted & have)} of {len(wanted)} options of commands are there."
    text += f" Missing: {_names(missing)}." if missing else (
        " Commands that are there have all of theirs." if wanted - have else ""
    )  # fmt: skip
    rows = [
        f"| `{flag}` | {_names(commands)} |" for flag, commands in sorted(_own_options().items())
    ]
    head = ["Options that Ganeti does not have:", "", "| option | commands |", "|---|---|"]
    return _wrapped(text) + "\n" + "\n".join([*head, *rows]) + "\n"


def _command(option: str) -> str:
    return " ".join(option.split()[:2])


def _own_commands() -> list[str]:
    recorded = contract.read_recorded("cli")
    return [
        f"{program} {name}"
        for program, commands in _all_commands()
        for name in commands
        if name not in _words(recorded.get(program, {}))
    ]


def _words(commands: dict[str, dict[str, list[str]]]) -> set[str]:
    return {word for name, facts in commands.items() for word in (name, *facts["aliases"])}


def _own_options() -> dict[str, list[str]]:
    """Long option -> commands of Ganeti that have it here only."""
    recorded = contract.read_recorded("cli")
    found: dict[str, list[str]] = defaultdict(list)
    for program, commands in _all_commands():
        for name, command in commands.items():
            facts = recorded.get(program, {}).get(name)
            if facts is None:
                continue
            for option in command.all_options:
                if option.action != "ignore" and not set(option.flags) & set(facts["options"]):
                    found[option.flags[-1]].append(f"{program} {name}")
    return found


def _all_commands() -> Iterator[tuple[str, dict[str, Any]]]:
    from ganeti.cli.programs import PROGRAMS

    for program, found in sorted(PROGRAMS.items()):
        found.load()
        yield program, dict(sorted(found.commands.items()))


def _opcodes() -> str:
    from ganeti.opcodes import registry

    own = sorted(set(registry.all_opcodes()) - set(contract.read_recorded("opcodes")))
    return (
        _state("opcodes")()
        + _state("opcode parameters")()
        + _more("Opcodes", "opcodes", own)
        + _more("Parameters", "parameters", _own_parameters())
    )


def _own_parameters() -> list[str]:
    from ganeti.base import typed
    from ganeti.opcodes import registry
    from ganeti.opcodes.base import OpCode

    common = {field.encode_name for field in typed.fields(OpCode)}
    classes = registry.all_opcodes()
    return [
        f"{op_id} {field.encode_name}"
        for op_id, names in sorted(contract.read_recorded("opcodes").items())
        if op_id in classes
        for field in typed.fields(classes[op_id])
        if field.encode_name not in names and field.encode_name not in common
    ]


def _fields() -> str:
    from ganeti.query.registry import KINDS

    recorded = contract.read_recorded("query_fields")
    own = [
        f"{kind} {name}"
        for kind in sorted(KINDS.names())
        if kind in recorded
        for name in KINDS.get(kind).fields
        if name not in recorded[kind]["fields"]
    ]
    kinds = sorted(set(KINDS.names()) - set(recorded))
    return (
        _state("query fields")()
        + _more("Kinds of objects", "kinds", kinds)
        + _more("Fields", "fields", own)
    )


def _luxi() -> str:
    from ganeti.luxi.calls import METHODS

    own = sorted(set(METHODS) - set(contract.read_recorded("names")["luxi_methods"]))
    return _state("LUXI methods")() + _more("Methods", "methods", own) + _state("error classes")()


def _calls() -> str:
    from ganeti.rpc import wire

    own = sorted(set(wire.specs()) - set(contract.read_recorded("names")["node_calls"]))
    return _state("node calls")() + _more("Node calls", "calls", own)


def _requests() -> str:
    from ganeti.rapi import routes

    known = {
        (method, routes.shape(path.replace("<", "{").replace(">", "}")))
        for path, resource in contract.read_recorded("rapi")["resources"].items()
        for method in resource["methods"]
    }
    own = [
        f"{route.method} {route.path}"
        for route in sorted(routes.ROUTES, key=lambda route: (route.path, route.method))
        if (route.method, routes.shape(route.path)) not in known
    ]
    return _state("requests of the remote API")() + _more("Requests", "requests", own)


def _codes() -> str:
    from ganeti.opcodes.enums import CVErrorCode

    own = sorted(
        {code.value for code in CVErrorCode} - set(contract.read_recorded("names")["verify_codes"])
    )
    return _state("codes of verify")() + _more("Codes", "codes", own)


def _hooks() -> str:
    recorded = contract.read_recorded("hooks")
    paths = {facts["path"] for facts in recorded["operations"].values()} | set(recorded["others"])
    missing = contract.NOT_YET.get("hooks", frozenset())
    text = f"Hooks of {len(paths - missing)} of {len(paths)} paths run."
    text += f" Missing: {_names(missing)}." if missing else ""
    variables = contract.NOT_YET.get("variables of hooks", frozenset()) - missing
    text += f" Missing variables: {_names(variables)}." if variables else ""
    return _wrapped(text)


def _parameters() -> str:
    table = contract.read_recorded("params")
    count = sum(len(names) for kind in ("hypervisor", "disk") for names in table[kind].values())
    count += sum(
        len(table[kind]) for kind in ("backend", "node", "nic", "policy", "spec", "cluster")
    )
    without = contract.NOT_YET.get("parameters with an effect", frozenset())
    text = (
        f"{count} parameters of hypervisors, instances, nodes, NICs, disks, policies and the"
        f" cluster can be set. A test observes the effect of {count - len(without)}."
    )
    text += f" Not of: {_names(without)}." if without else ""
    return _wrapped(text)


def _daemons() -> str:
    return _state("daemons")() + _state("collectors of mond")() + _state("requests of confd")()


# text -----------------------------------------------------------------------------------------


def _more(title: str, noun: str, own: list[str]) -> str:
    if not own:
        return ""
    return "\n" + _wrapped(f"{title} that Ganeti does not have ({len(own)}): {_names(own)}.")


def _names(items: Iterable[str]) -> str:
    return ", ".join(f"`{item}`" for item in sorted(items))


def _wrapped(text: str) -> str:
    """Lines that are not too long; what stands in backquotes stays together."""
    lines, line = [], ""
    for word in re.findall(r"(?:`[^`]*`\S*|[^\s`]+)", text):
        if line and len(line) + len(word) + 1 > _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".lstrip()
    return "\n".join([*lines, line]) + "\n"


def _tools() -> str:
    return _state("tools")()


PARTS: dict[str, Callable[[], str]] = {
    "overview": _overview,
    "commands": _commands,
    "options": _options,
    "opcodes": _opcodes,
    "query fields": _fields,
    "luxi": _luxi,
    "node calls": _calls,
    "remote api": _requests,
    "verify": _codes,
    "hooks": _hooks,
    "parameters": _parameters,
    "daemons": _daemons,
    "tools": _tools,
}
