"""Only ``base/clock.py`` reads the clock of the machine, or sleeps: others are given a clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "ganeti"
#: Files that may; the set may only become smaller.
ALLOWED = {"base/clock.py"}
#: Functions that read a clock or wait.
READ = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep", "ctime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
#: Functions that read the clock when they are called with fewer arguments than this.
READ_WITHOUT = {"ctime": 1, "localtime": 1, "gmtime": 1, "asctime": 1, "strftime": 2}


def readings(source: str) -> Iterator[int]:
    """Lines that read the clock."""
    tree = ast.parse(source)
    with_moment = {id(call.func) for call in ast.walk(tree) if _has_moment(call)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module) | ast.Attribute(attr=module), attr=name):
                known = READ.get(module, set()) | (
                    READ_WITHOUT.keys() if module == "time" else set()
                )
                if name in known and id(node) not in with_moment:
                    yield node.lineno
            case ast.ImportFrom(module="time"):
                yield node.lineno


def _has_moment(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in READ_WITHOUT:
            return len(args) >= READ_WITHOUT[name]
    return False


def test_the_clock_of_the_machine_is_read_in_one_file() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if "time" in (source := path.read_text()) and (lines := list(readings(source)))
    }
    assert found.keys() == ALLOWED, f"take a Clock of ganeti.base.clock: {found}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("def f(wait=time.sleep): ...", [1]),
        ("x = time.time_ns() + time.monotonic()", [1, 1]),
        ("from time import monotonic", [1]),
        ("datetime.now(UTC)", [1]),
        ("datetime.datetime.utcnow()", [1]),
        ('time.strftime("%Y")', [1]),
        ('time.strftime("%Y", time.localtime(seconds))', []),
        ("time.localtime()", [1]),
        ("time.ctime(seconds)", []),
        ("clock.monotonic() + self.time.now()", []),
        ("datetime.fromtimestamp(clock.now(), UTC)", []),
    ],
)
def test_the_scan_finds_what_it_should(source: str, lines: list[int]) -> None:
    assert list(readings(source)) == lines
