"""How many options are written by hand; the others follow from fields of opcodes.

An option with a field behind it is derived (``ganeti.cli.fields``). So the number only falls,
unless a command comes that has options without fields.
"""

from __future__ import annotations

import ast
from pathlib import Path

import ganeti.cli

MOST = 65
#: What makes an option, or another form of one.
MAKERS = {"Option", "legacy_option", "select", "switch", "switch_off", "value", "values_of"}
ROOT = Path(ganeti.cli.__file__).parent


def hand_written() -> dict[str, int]:
    """Number of options that each file writes by hand; the makers themselves do not count."""
    found: dict[str, int] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.name in ("option.py", "fields.py", "parser.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            number = 0
            if isinstance(node, ast.Call) and _name(node.func) in MAKERS:
                number = 1
            elif isinstance(node, ast.keyword) and node.arg == "each":
                number = _rows(node.value, tree)
            if number:
                file = str(path.relative_to(ROOT))
                found[file] = found.get(file, 0) + number
    return found


def _rows(table: ast.expr, tree: ast.AST) -> int:
    """Switches that stand for values of one field: each has flags and a help of its own."""
    if isinstance(table, ast.Name):
        (table,) = (
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and _is(node.targets[0], table.id)
        )
    assert isinstance(table, ast.Dict)
    return len(table.keys)


def _is(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def test_the_number_only_falls() -> None:
    found = hand_written()
    assert sum(found.values()) == MOST, f"lower MOST, or derive the option: {found}"
