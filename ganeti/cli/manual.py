"""Man pages of programs, made from their commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ganeti.cli import usage
from ganeti.cli.command import Command, Program
from ganeti.cli.option import GROUPS, Option
from ganeti.cli.options import COMMON

SECTION = 8


_EXIT_CODES = (
    "0 success, 1 failure, 2 wrong options, 5 no cluster here, 11 another node is the master,"
    " 12 a node could not be set up, 14 unknown field"
)


def page(program: Program, name: str = "", exit_codes: str = _EXIT_CODES) -> str:
    """The page of a program as roff (``man`` macros); loads all its commands.

    ``name`` is that of the installed program, where its usage says another one.
    """
    program.load()
    return "\n".join(_lines(program, name or program.name, exit_codes)) + "\n"


def _lines(program: Program, name: str, exit_codes: str) -> Iterator[str]:
    title = program.title.partition("\n")[0].rstrip(".")
    yield f'.TH {_text(name.upper())} {SECTION} "" "Ganeti" "Ganeti administration"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(title[:1].lower() + title[1:])}")
    yield from (".SH SYNOPSIS", f".B {_text(program.name)}")
    yield _text("<command> [options] [arguments]")
    yield from (".SH DESCRIPTION", _text(program.title))
    yield "Options may come before or after the arguments of a command. Long options may be"
    yield f"shortened as long as they stay unique. Exit codes: {exit_codes}."
    yield ".SH COMMANDS"
    for _name, command in sorted(program.commands.items()):
        yield from _command(program, command)
    yield ".SH OPTIONS OF ALL COMMANDS"
    yield from _options(COMMON)


def _command(program: Program, command: Command) -> Iterator[str]:
    yield f".SS {_text(', '.join((command.name, *command.aliases)))}"
    line = usage.usage_line(program, command).removeprefix("Usage: ")
    yield from (".nf", _text(line), ".fi", ".PP")
    for text in command.documentation.splitlines():
        yield _text(text) if text else ".PP"
    yield from _options(command.options)


def _options(options: Iterable[Option]) -> Iterator[str]:
    found = list(options)
    for group in GROUPS:
        for option in sorted((o for o in found if o.group == group), key=lambda o: o.flags):
            flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
            value = f" \\fI{_text(option.value_name)}\\fR" if option.takes_value else ""
            yield from (".TP", flags + value, _text(option.help))


def _text(text: str) -> str:
    """Text without meaning for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
