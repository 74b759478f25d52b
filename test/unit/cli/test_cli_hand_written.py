"""How many options are written by hand; the others follow from fields of opcodes.

The number may only fall: an option with a field behind it is derived (``ganeti.cli.fields``).
"""

from __future__ import annotations

import ast
from pathlib import Path

import ganeti.cli

MOST = 111
#: What makes an option, or another form of one.
MAKERS = {"Option", "but", "ignored", "select", "switch", "switch_off", "value", "values_of"}
ROOT = Path(ganeti.cli.__file__).parent


def hand_written() -> dict[str, int]:
    """Number of options that each file writes by hand; the makers themselves do not count."""
    found: dict[str, int] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.name in ("option.py", "fields.py", "parser.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in MAKERS:
                file = str(path.relative_to(ROOT))
                found[file] = found.get(file, 0) + 1
    return found


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def test_the_number_only_falls() -> None:
    found = hand_written()
    assert sum(found.values()) == MOST, f"lower MOST, or derive the option: {found}"
