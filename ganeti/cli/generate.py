"""Text of the modules that tools/make-docs writes so that commands start fast."""

from __future__ import annotations

from collections.abc import Iterable

from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.cli.command import Command, Program
from ganeti.cli.derive import facts

_HEAD = '''\
"""{summary} Made by tools/make-docs; do not edit.

{rest}
"""

# fmt: off
from __future__ import annotations

'''


def modules(programs: Iterable[Program]) -> dict[str, str]:
    """Names of the modules and their texts; loads all commands."""
    found = list(programs)
    for program in found:
        program.load()
    return {"generated": _opcodes(found), "generated_modules": _modules(found)}


def _opcodes(programs: Iterable[Program]) -> str:
    names: set[str] = set()
    for program in programs:
        for command in program.commands.values():
            names.update(command.also, [command.op] if command.op else [])
    lines = [
        _HEAD.format(
            summary="Fields of opcodes, for commands that do not import them.",
            rest="Fields of the requests that commands make (see ``ganeti.cli.fields``).",
        ),
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
        "    from ganeti.cli.derive import Field\n\n"
        "OPCODES: dict[str, tuple[str, tuple[Field, ...]]] = {\n",
    ]
    for name in sorted(names):
        doc, own = facts(name)
        lines.append(f"    {name!r}: ({doc!r}, (\n")
        lines += [f"        {field!r},\n" for field in own]
        lines.append("    )),\n")
    return "".join([*lines, "}\n"])


def _modules(programs: Iterable[Program]) -> str:
    lines = [
        _HEAD.format(
            summary="The module in which each command is.",
            rest="Program, command or alias: module of its package.",
        ),
        "COMMANDS: dict[str, dict[str, str]] = {\n",
    ]
    for program in programs:
        lines.append(f"    {program.name!r}: {{\n")
        for name, command in sorted(program.commands.items()):
            lines += [
                f"        {word!r}: {command.module!r},\n" for word in (name, *command.aliases)
            ]
        lines.append("    },\n")
    return "".join([*lines, "}\n"])


#: Commands of an opcode that are not the plain one.
_SPECIAL = frozenset({"reserve", "import", "batch-create", "change-group", "burnin"})


def describe_commands(programs: Iterable[Program]) -> str:
    """JSON text: which command makes an opcode, for forms that show it.

    Per opcode its program, command, the field that the argument fills, and per field the option
    and how its value is written.
    """
    found: JsonObject = {}
    for program in programs:
        program.load()
        for name, command in sorted(program.commands.items()):
            if not command.op.startswith("OP_") or (command.op in found and name in _SPECIAL):
                continue
            if command.op not in found or found[command.op]["command"] in _SPECIAL:
                found[command.op] = _describe_command(program.name, name, command)
    lines = [f'"{op}": {jsonio.dumps(found[op])}' for op in sorted(found)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _describe_command(program: str, name: str, command: Command) -> JsonObject:
    kinds = {field: kind for field, kind, *_rest in facts(command.op)[1]}
    flags = {
        option.dest: [option.flags[-1], kinds.get(option.dest, "")]
        for option in command.field_options
    }
    argument = next((args.field for args in command.args if args.field), "")
    return {"program": program, "command": name, "argument": argument, "flags": flags}
