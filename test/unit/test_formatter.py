"""The formatter arranges the code; only tables are arranged by hand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Lines that keep the formatter away. Lower this when there are fewer.
MOST = 52
MARK = "# fmt" + ": skip"


def test_few_tables_are_arranged_by_hand() -> None:
    found = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count(MARK)
        for top in ("ganeti", "test", "tools")
        for path in sorted((ROOT / top).rglob("*"))
        if path.is_file() and (path.suffix == ".py" or path.parent == ROOT / "tools")
    }
    assert sum(found.values()) <= MOST, {name: count for name, count in found.items() if count}
