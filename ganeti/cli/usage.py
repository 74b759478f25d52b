"""Help texts of programs and commands."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ganeti.base.json_types import JsonObject
from ganeti.cli.command import Command, Program
from ganeti.cli.option import GROUPS, Option
from ganeti.cli.parser import HELP

if TYPE_CHECKING:
    import argparse


def program_text(program: Program) -> str:
    """All commands of a program with what they do."""
    lines = [
        f"Usage: {program.name} <command> [options] [arguments]",
        f"       {program.name} <command> --help",
        f"       {program.name} --version",
        "",
        program.title,
        "",
        "Commands:",
    ]
    width = max(len(_names(cmd)) for cmd in program.commands.values())
    for _, cmd in sorted(program.commands.items()):
        lines.append(f"  {_names(cmd):<{width}}  {cmd.summary.rstrip('.')}")
    lines += ["", "Options may come before or after the arguments of a command."]
    return "\n".join(lines)


def _names(command: Command) -> str:
    return ", ".join((command.name, *command.aliases))


def usage_line(program: Program, command: Command) -> str:
    """How to call a command."""
    words = (program.name, command.name, "[options]", command.arguments_text)
    return f"Usage: {' '.join(word for word in words if word)}"


def command_text(program: Program, command: Command) -> str:
    """Complete help of a command: usage, description, options by group."""
    import argparse

    parser = argparse.ArgumentParser(
        prog=f"{program.name} {command.name}",
        usage=_escape(usage_line(program, command).removeprefix("Usage: ")),
        description=_escape(_description(command)),
        epilog=_escape(_epilog(program, command)),
        add_help=False,
        formatter_class=_formatter(),
    )
    for heading in GROUPS:
        members = [opt for opt in (*command.all_options, HELP) if opt.group == heading]
        if members:
            group = parser.add_argument_group(heading)
            for option in members:
                group.add_argument(*option.flags, **_argparse(option))
    text = parser.format_help()
    return text[:1].upper() + text[1:].rstrip("\n")


def _formatter() -> type[argparse.HelpFormatter]:
    """A formatter that shows the value of an option once, behind its last flag."""
    import argparse

    class Formatter(argparse.RawDescriptionHelpFormatter):
        def _format_action_invocation(self, action: argparse.Action) -> str:
            if not action.option_strings or action.nargs == 0:
                return super()._format_action_invocation(action)
            value = self._format_args(action, self._get_default_metavar_for_optional(action))
            return f"{', '.join(action.option_strings)} {value}"

    return Formatter


def _argparse(option: Option) -> JsonObject:
    help_text = option.help
    default = option.default
    if option.takes_value and default not in (None, [], {}):
        help_text += f" (default: {default})"
    if option.action == "append" and option.takes_value:
        help_text += "; may be given several times"
    result: JsonObject = {"help": _escape(help_text), "dest": option.dest or "ignored"}
    if option.takes_value:
        return result | {"metavar": option.value_name}
    return result | {"action": "store_true"}


def _escape(text: str) -> str:
    """Text in which argparse replaces nothing."""
    return text.replace("%", "%%")


def _description(command: Command) -> str:
    return "\n".join(line.rstrip() for line in command.documentation.splitlines())


def _epilog(program: Program, command: Command) -> str:
    parts = []
    if command.aliases:
        parts.append(f"Aliases: {', '.join(command.aliases)}.")
    if command.default_args:
        parts.append(f"The variable {command.default_args} can hold default options.")
    return textwrap.fill(" ".join(parts), 78) if parts else ""
