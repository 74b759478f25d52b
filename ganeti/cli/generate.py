"""Text of the module ``generated``, which tools/make-docs writes so that commands start fast."""

from __future__ import annotations

from collections.abc import Iterable

from ganeti.cli.command import Program
from ganeti.cli.derive import facts

_HEAD = '''\
"""What commands know of opcodes without importing them. Made by tools/make-docs; do not edit.

Fields of the opcodes that commands submit (see ``ganeti.cli.fields``), and the module in which
each command is.
"""

# fmt: off
from typing import Any

'''


def module_text(programs: Iterable[Program]) -> str:
    """The module ``ganeti.cli.generated``; loads all commands."""
    lines = [_HEAD, "OPCODES: dict[str, Any] = {\n"]
    modules: list[str] = []
    op_ids: set[str] = set()
    for program in programs:
        program.load()
        modules.append(f"    {program.name!r}: {{\n")
        for name, command in sorted(program.commands.items()):
            op_ids.update(command.also, [command.op] if command.op else [])
            modules += [
                f"        {word!r}: {command.module!r},\n" for word in (name, *command.aliases)
            ]
        modules.append("    },\n")
    for op_id in sorted(op_ids):
        doc, own = facts(op_id)
        lines.append(f"    {op_id!r}: ({doc!r}, (\n")
        lines += [f"        {field!r},\n" for field in own]
        lines.append("    )),\n")
    lines += ["}\n", "\n#: Program, command or alias: module of its package\n"]
    lines += ["COMMANDS: dict[str, dict[str, str]] = {\n", *modules, "}\n"]
    return "".join(lines)
