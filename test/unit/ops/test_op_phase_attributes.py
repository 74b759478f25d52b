"""Which attributes operations and their steps set after they are made.

What phases hand to each other is what ``find()`` and ``decide()`` return. The set below may only
become smaller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ganeti.ops

ROOT = Path(ganeti.ops.__file__).parent

#: What every operation of a kind has, set at one place.
BASES = {
    "DiskOperation.disk",
    "FindingOperation.found",
    "GroupOperation.group",
    "InstanceOperation.instance",
    "NetworkOperation.network",
    "NodeOperation.node",
    "PlannedOperation.plan",
}
#: Steps and reports that count while they work.
COUNTERS = {
    "Destination._uuid",
    "Migration._info",
    "Progress._bytes",
    "Progress._moved",
    "Progress._told",
    "Report.ok",
    "_Watch._degraded_since",
    "_Watch._failed",
    "_Watch._moved",
}


def set_later(source: str) -> Iterator[str]:
    """``Class.attribute`` for each that a method other than ``__init__`` assigns to."""
    for cls in ast.walk(ast.parse(source)):
        if not isinstance(cls, ast.ClassDef):
            continue
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                yield from (f"{cls.name}.{name}" for name in _assigned(method))


def _assigned(method: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                yield attr


def test_phases_hand_on_what_they_return() -> None:
    found = {name for path in sorted(ROOT.rglob("*.py")) for name in set_later(path.read_text())}
    assert found == BASES | COUNTERS, "return it from find() or decide()"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("def check(self):\n  self.x = 1", {"C.x"}),
        ("def locks(self):\n  self.x, y = yield", {"C.x"}),
        ("def run(self):\n  self.x += 1", {"C.x"}),
        ("def run(self):\n  self.x: int = 1", {"C.x"}),
        ("def __init__(self):\n  self.x = 1", set()),
        ("def run(self):\n  self.x.y = self.z", set()),
    ],
)
def test_the_scan_finds_what_it_should(body: str, found: set[str]) -> None:
    indented = "\n".join(f"  {line}" for line in body.splitlines())
    assert set(set_later(f"class C:\n{indented}")) == found
