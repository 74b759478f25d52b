"""Each row of the first table of ``doc/adding.md`` has a test, and each test a row."""

from __future__ import annotations

import ast
from pathlib import Path

import adding_table


def _list_tested_rows() -> dict[str, list[str]]:
    """Row -> test files that name it in ``ROWS``."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_adding_*.py")):
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="ROWS")], value=value):
                    for row in ast.literal_eval(value):
                        found.setdefault(row, []).append(path.name)
    return found


def test_each_row_has_a_test_and_each_test_a_row() -> None:
    tried = _list_tested_rows()
    assert [row for row in adding_table.rows() if row not in tried] == []
    assert {row: files for row, files in tried.items() if row not in adding_table.rows()} == {}


def test_a_row_names_files_and_patterns_of_files() -> None:
    assert adding_table.names("opcode", "ops/group/greet.py")
    assert adding_table.names("command", "cli/group/change.py")
    assert adding_table.names("check of `gnt-cluster verify`", "ops/cluster/verify_config.py")
    assert not adding_table.names("opcode", "cli/group/change.py")
    assert not adding_table.names("command", "cli/program.py")
