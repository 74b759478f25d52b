"""The commands and options of this program against those of Ganeti.

``contract_cli.json`` holds what scripts find there: it never follows the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganeti.base import jsonio
from ganeti.cli.command import Command
from ganeti.cli.programs import PROGRAMS

FILE = Path(__file__).parents[2] / "recorded" / "contract_cli.json"
CONTRACT = jsonio.loads(FILE.read_text(encoding="utf-8"))
#: Commands that may be missing.
NOT_BUILT = {
    *(("gnt-backup", name) for name in ("export", "import", "list", "list-fields", "remove")),
}
DOCUMENTED = [(name, command) for name, found in CONTRACT.items() for command in found]


def command_of(program: str, name: str) -> Command | None:
    found = PROGRAMS.get(program)
    if found is None:
        return None
    found.load()
    return found.find(name)


@pytest.mark.parametrize(("program", "name"), DOCUMENTED)
def test_each_option_is_accepted(program: str, name: str) -> None:
    command, facts = command_of(program, name), CONTRACT[program][name]
    if command is None:
        assert (program, name) in NOT_BUILT
        return
    ours = {flag: option for option in command.all_options for flag in option.flags}
    wrong: dict[str, Any] = {}
    for flag, kind in facts["options"].items():
        option = ours.get(flag)
        if option is None or option.takes_value != (kind is not None):
            wrong[flag] = kind
        elif isinstance(kind, list) and option.choices and not set(kind) <= set(option.choices):
            wrong[flag] = set(kind) - set(option.choices)
    assert not wrong
    for alias in facts["aliases"]:
        assert command_of(program, alias) is command


@pytest.mark.parametrize(("program", "name"), DOCUMENTED)
def test_as_many_arguments_are_accepted(program: str, name: str) -> None:
    command, facts = command_of(program, name), CONTRACT[program][name]
    if command is None:
        return
    least = sum(low for low, _high in facts["args"])
    most = [high for _low, high in facts["args"]]
    counts = {least, least + 3 if None in most else sum(most)}
    for count in counts:
        problem = command.problem(["x"] * count) or ""
        assert not problem.endswith(f", not {count}"), problem
