"""What commands submit, option by option, against what they have always submitted.

After a wanted change: ``UPDATE_RECORDED=1 pytest test/unit/cli``, then read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import command_lines
import pytest
from recording_master import RecordingMaster

from ganeti.base import jsonio
from ganeti.cli import program as runner
from ganeti.cli.command import Command, Program
from ganeti.cli.programs import PROGRAMS
from ganeti.net import resolve

FILE = Path(__file__).parents[2] / "recorded" / "cli_submitted.json"
UPDATE = bool(os.environ.get("UPDATE_RECORDED"))
RECORDED = jsonio.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}

Submit = Callable[[Program, str, str], list[dict[str, Any]]]


@pytest.fixture
def submit(
    master: RecordingMaster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Submit:
    for name in ("web1.example.com", "web2.example.com"):
        master.add_instance(name)
    for name in ("node1.example.com", "node2.example.com"):
        master.add_node(name, pinst_list=["web1.example.com"], sinst_list=["web2.example.com"])
    master.results["OP_INSTANCE_MULTI_ALLOC"] = {}
    monkeypatch.setattr(resolve, "address", lambda _name: "192.0.2.10")

    def run(program: Program, name: str, line: str) -> list[dict[str, Any]]:
        master.jobs.clear()
        runner.main(program, [*name.split(), *line.split(" ")])
        capsys.readouterr()
        return [_without_reasons(op) for op in master.ops]

    return run


def commands() -> Iterator[tuple[Program, Command]]:
    for program in PROGRAMS.values():
        program.load()
        for name, command in sorted(program.commands.items()):
            if (program.name, name) not in command_lines.NOT_RUN:
                yield program, command


def _without_reasons(op: dict[str, Any]) -> dict[str, Any]:
    """An opcode of which those inside, as in a reservation, have no reason (a time) either."""
    return {
        key: [RecordingMaster.strip(item) if isinstance(item, dict) else item for item in value]
        if isinstance(value, list)
        else value
        for key, value in op.items()
    }


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_each_option_submits_the_same_opcodes(program: str, submit: Submit) -> None:
    ours = PROGRAMS[program]
    wrong: dict[str, Any] = {}
    for name, known in RECORDED.get(program, {}).items():
        for line, ops in known.items():
            found = submit(ours, name, line)
            if found != ops:
                wrong[f"{program} {name} {line}"] = {"now": found, "before": ops}
    assert not wrong, jsonio.format_pretty(wrong)


if UPDATE:

    def test_record(submit: Submit) -> None:
        """Renew the record with ``UPDATE_RECORDED=1``."""
        found: dict[str, dict[str, Any]] = {}
        for program, command in commands():
            for words in command_lines.lines(program, command):
                line = " ".join(words)
                ops = submit(program, command.name, line)
                if ops:
                    found.setdefault(program.name, {}).setdefault(command.name, {})[line] = ops
        assert found, "no command line submits an opcode"
        FILE.write_text(_format(found), encoding="utf-8")


def _format(found: dict[str, dict[str, Any]]) -> str:
    """One row for each command line."""
    parts = []
    for program, known in sorted(found.items()):
        for name, each in sorted(known.items()):
            rows = [f" {jsonio.dumps(line)}:\n  {jsonio.dumps(ops)}" for line, ops in each.items()]
            parts.append((program, f"{jsonio.dumps(name)}: {{\n" + ",\n".join(rows) + "\n}"))
    texts = [
        f"{jsonio.dumps(program)}: {{\n"
        + ",\n".join(text for owner, text in parts if owner == program)
        + "\n}"
        for program in sorted(found)
    ]
    return "{\n" + ",\n".join(texts) + "\n}\n"
