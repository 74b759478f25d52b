"""Patterns of the source that mean a whole text: ``$`` also matches before a final newline."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "ganeti"
#: A text that ends with ``$``; only files with one are parsed.
_ENDS = re.compile(r"""\$\)?["']""")
_CALLS = {"compile", "match", "search", "fullmatch", "finditer", "findall", "sub", "split"}


def loose_ends(source: str) -> list[int]:
    """Lines of patterns that end with ``$`` although lines are not meant (MULTILINE)."""
    tree = ast.parse(source)
    return [node.lineno for node in _patterns(tree) if _last_text(node).endswith("$")]


def _patterns(tree: ast.AST) -> Iterator[ast.expr]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        found = [word.value for word in call.keywords if word.arg == "pattern"]
        match call.func:
            case ast.Attribute(value=ast.Name(id="re" | "regex"), attr=attr) if attr in _CALLS:
                found += call.args[:1]
        if found and not any(
            isinstance(part, ast.Attribute) and part.attr in ("M", "MULTILINE")
            for part in ast.walk(call)
        ):
            yield from found


def _last_text(pattern: ast.expr) -> str:
    last = pattern.values[-1] if isinstance(pattern, ast.JoinedStr) else pattern
    value = last.value if isinstance(last, ast.Constant) else ""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.removesuffix(")") if not text.endswith(r"\$") else ""


def test_no_pattern_lets_a_final_newline_through() -> None:
    found = [
        f"{path.relative_to(SOURCE.parent)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if _ENDS.search(source := path.read_text())
        for line in loose_ends(source)
    ]
    assert not found, f"use fullmatch(), or \\Z at the end: {found}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('re.compile(r"^a$")', [1]),
        ('re.compile(\n  rf"{x}(a|b)$", re.IGNORECASE)', [2]),
        ('Meta(pattern="^a$")', [1]),
        ('re.match("a$", text)', [1]),
        ('re.compile(b"a$")', [1]),
        ('re.compile(r"^a$", re.MULTILINE)', []),
        ('re.compile(r"a\\$")', []),
        ('re.compile(r"a\\Z")', []),
        ('text.split("$")', []),
    ],
)
def test_the_scan_finds_what_it_should(source: str, lines: list[int]) -> None:
    assert loose_ends(source) == lines
    assert re.match("a$", "a\n"), "this is why"
