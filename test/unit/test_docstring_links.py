"""The roles in docstrings and comments of ganeti/, such as :func:`name`, name what exists.

A name without dots is looked up as in the code beside it: in the class around it and its bases,
then in the module, then among the builtins. Other names are written in full: :mod:`ganeti.paths`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "ganeti").rglob("*.py"))

_ROLE = re.compile(r":([a-z]+):`~?([^`]*)`")
_KINDS: dict[str, Callable[[Any], bool]] = {
    "attr": lambda _found: True,
    "class": inspect.isclass,
    "data": lambda found: not callable(found) and not inspect.ismodule(found),
    "func": lambda found: callable(found) and not inspect.isclass(found),
    "meth": callable,
    "mod": inspect.ismodule,
}
_NOTHING = object()


def _module(path: Path) -> ModuleType:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


def _classes(tree: ast.AST, line: int) -> Iterator[str]:
    """Names of the classes around a line, the innermost first."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    yield from (node.name for node in sorted(around, key=lambda node: -node.lineno))


def _assigned(owner: type, name: str) -> bool:
    """Whether a class or a base of it declares the attribute, or a method assigns it."""
    for part in owner.__mro__:
        if name in inspect.get_annotations(part):
            return True
        if part.__module__.startswith("ganeti."):
            text = inspect.getsource(part)
            if re.search(rf"\bself\.{re.escape(name)}(: [^=\n]+)? = ", text):
                return True
    return False


def _member(owner: Any, name: str) -> Any:
    found = getattr(owner, name, _NOTHING)
    if found is _NOTHING and inspect.isclass(owner) and _assigned(owner, name):
        return None
    return found


def _full(name: str) -> Any:
    """What a dotted name from the root means."""
    found: Any = importlib.import_module("ganeti")
    done = "ganeti"
    for part in name.split(".")[1:]:
        done = f"{done}.{part}"
        try:
            found = importlib.import_module(done)
        except ImportError:
            found = _member(found, part)
    return found


def _target(module: ModuleType, classes: list[str], name: str) -> Any:
    """What a name means at a place; ``_NOTHING`` when it means nothing."""
    if name.startswith("ganeti."):
        return _full(name)
    first, *rest = name.split(".")
    owners = [getattr(module, around, None) for around in classes]
    for start in (*owners, module, builtins):
        found = _member(start, first)
        for part in rest:
            found = _member(found, part)
        if found is not _NOTHING:
            return found
    return _NOTHING


def _find_missing(path: Path) -> Iterator[str]:
    text = path.read_text()
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if ":`" in line]
    if not lines:
        return
    tree, module = ast.parse(text), _module(path)
    for number, line in lines:
        for role, name in _ROLE.findall(line):
            found = _target(module, list(_classes(tree, number)), name)
            if found is _NOTHING or not _KINDS[role](found):
                yield f"{path.relative_to(ROOT)}:{number}: :{role}:`{name}`"


def test_roles_name_what_exists() -> None:
    assert [line for path in FILES for line in _find_missing(path)] == []
