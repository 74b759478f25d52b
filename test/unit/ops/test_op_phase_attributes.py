"""Which attributes operations set after they are made.

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


def operations(classes: list[ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """Those that are operations, by the names of their bases."""
    bases = {cls.name: {_name(base) for base in cls.bases} for cls in classes}
    known = {"Operation"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    yield from (cls for cls in classes if cls.name in known)


def _name(base: ast.expr) -> str:
    match base:
        case ast.Subscript(value=value):
            return _name(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def set_later(classes: list[ast.ClassDef]) -> Iterator[str]:
    """``Class.attribute`` for each that a method of an operation assigns to."""
    for cls in operations(classes):
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                yield from (f"{cls.name}.{name}" for name in _assigned(method))


def _classes(source: str) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def _assigned(method: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                yield attr


def test_phases_hand_on_what_they_return() -> None:
    classes = [cls for path in sorted(ROOT.rglob("*.py")) for cls in _classes(path.read_text())]
    assert len(list(operations(classes))) > 70
    assert set(set_later(classes)) == BASES, "return it from find() or decide()"


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
    source = f"class B(Operation[O, R]): ...\nclass C(x.B, D):\n{indented}"
    assert set(set_later(_classes(source))) == found
    assert not set(set_later(_classes(f"class C:\n{indented}")))
