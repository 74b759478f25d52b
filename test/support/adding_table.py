"""The first table of ``doc/adding.md``: the kinds of things, and the files that each one needs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[2] / "doc" / "adding.md"
#: What looks like a file or a directory between backticks.
_FILE = re.compile(r"`([\w<>*./-]+(?:\.\w+|/))`")
_PLACEHOLDER = re.compile(r"<\w+>|\*")


@cache
def rows() -> dict[str, tuple[str, ...]]:
    """First cell of each row -> the files and directories that its second cell names.

    A row that begins with a dash continues the last one without: it needs files of both.
    """
    found: dict[str, tuple[str, ...]] = {}
    inherited: tuple[str, ...] = ()
    for line in PAGE.read_text(encoding="utf-8").partition("| to add |")[2].splitlines()[2:]:
        if not line.startswith("|"):
            break
        kind, write = (cell.strip() for cell in line.split("|")[1:3])
        named = tuple(_FILE.findall(write))
        if kind.startswith("- "):
            named += inherited
        else:
            inherited = named
        found[kind] = named
    return found


def names(kind: str, file: str) -> bool:
    """Whether the row names this file, itself or by a pattern such as ``cli/<program>/*.py``.

    ``verify_config.py`` stands for a file of this name in any directory.
    """
    return any(_matches(pattern, file) for pattern in rows()[kind])


def _matches(pattern: str, file: str) -> bool:
    parts = (re.escape(part) for part in _PLACEHOLDER.split(pattern))
    expression = "[^/]+".join(parts)
    if pattern.endswith("/"):
        expression += ".+"
    elif "/" not in pattern:
        expression = f"(.*/)?{expression}"
    return re.fullmatch(expression, file) is not None
