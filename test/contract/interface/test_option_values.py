"""Every documented option of every command is read, with values of every documented kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import command_lines
import contract
import pytest

from ganeti import errors
from ganeti.cli import parser

#: Values for a kind of option that Ganeti documents; ``command_lines`` has those of single options.
VALUES = {
    "bool": ("yes", "no", "true", "false"),
    "filteraction": ("ACCEPT", "CONTINUE", "PAUSE", "REJECT", "RATE_LIMIT 3"),
    "float": ("1.5", "2"),
    "identkeyval": ("kvm:acpi=true,-boot_order", "kvm"),
    "int": ("7", "0"),
    "json": ('[["jobid", [">", "id", 3]]]',),
    "keyprivateval": ("one=1,-four",),
    "keyval": ("one=1,two,no_three,-four", r"a=b\,c"),
    "list": ("a,b", r"a\,b", ""),
    "maybefloat": ("1.5", "default"),
    "multilistidentkeyval": ("min:cpu-count=1/max:cpu-count=2//min:cpu-count=3/max:cpu-count=4",),
    "string": ("word", "-4", "two words"),
    "unit": ("3", "3G", "1.5t"),
}
#: Options whose text is one of some words or a number, although the program takes any.
NARROW = {
    "--alloc-policy": ("preferred", "last_resort", "unallocable"),
    "--master-netmask": ("24",),
    "--primary-ip-version": ("4",),
}


def test_every_option_is_read() -> None:
    wanted, have, wrong = [], [], []
    for program, commands in contract.read_recorded("cli").items():
        for name, facts in commands.items():
            command = contract.find_command(f"{program} {name}")
            for flag, kind in facts["options"].items():
                for text in values(flag, kind):
                    wanted.append(item := f"{program} {name} {flag} {text}".rstrip())
                    problem = (
                        "no such command"
                        if command is None
                        else explain_refusal(command, flag, text)
                    )
                    if not problem:
                        have.append(item)
                    elif command is not None:
                        wrong.append(f"{item}: {problem}")
    print(*wrong, sep="\n")
    contract.check_table("options with values", wanted, have)


def values(flag: str, kind: Any) -> Iterator[str]:
    if kind is None:
        yield ""
    elif isinstance(kind, list):
        yield from kind
    elif flag in NARROW:
        yield from NARROW[flag]
    elif flag in command_lines.BY_FLAG and kind not in ("bool", "unit", "float"):
        yield command_lines.BY_FLAG[flag]
    else:
        yield from VALUES[kind]


def explain_refusal(command: Any, flag: str, text: str) -> str:
    """Why the option is not read, in both forms of a long one; empty if it is."""
    lines = [[flag, text]] if text else [[flag]]
    if text and flag.startswith("--"):
        lines.append([f"{flag}={text}"])
    arguments = ["x"] * max(1, sum(arg.least for arg in command.args))
    for words in lines:
        try:
            _values, rest = parser.parse(command.all_options, [*words, *arguments])
        except (parser.UsageError, errors.GanetiError) as err:
            return str(err)
        if rest != arguments:
            return f"the value was not taken: {rest}"
    return ""


@pytest.mark.parametrize("flag", ["--priority", "--submit", "--reason", "--dry-run"])
def test_options_of_jobs_are_asked_for_by_the_table(flag: str) -> None:
    """The table itself is whole: a command that submits jobs has these."""
    assert flag in contract.read_recorded("cli")["gnt-instance"]["startup"]["options"]
