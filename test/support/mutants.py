"""Sampled mutants: how many defects, put in by hand, do the tests of a module notice?

``make test-mutants`` runs the table below; ``test/support/mutants.py --help`` tells the rest. A
mutant is the source of one module with one place changed: a turned comparison, ``and`` for ``or``,
``not`` left away, another number or truth value, a result that is None. The tests named for the
module run against each in a process of its own, which loads the changed source in place of the
file; the working tree is never written. A mutant that no test notices is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Seconds for the tests of one mutant; one that makes them hang is noticed, too.
_LIMIT = 120
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
#: Module -> tests that must notice its mutants.
TABLE: dict[str, tuple[str, ...]] = {
    "ganeti/rapi/scope.py": ("test/unit/rapi/test_rapi_scope.py",),
    "ganeti/jobs/gate.py": ("test/unit/jobs/test_job_gate.py",),
    "ganeti/ops/planning/placement.py": ("test/unit/ops/test_op_placement.py",),
    "ganeti/ops/planning/migration_verdict.py": ("test/unit/ops/test_op_migration_verdict.py",),
    "ganeti/locking/manager.py": ("test/unit/locking", "test/property/test_lock_manager.py"),
    "ganeti/storage/lvm/report.py": ("test/unit/storage/test_lvm_report.py",),
    "ganeti/config/verify.py": ("test/unit/config",),
    "ganeti/storage/drbd/machine.py": ("test/unit/storage/test_drbd_machine.py",),
    "ganeti/filters/compile.py": ("test/unit/filters",),
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    what: str
    source: str


class _Names(ast.NodeVisitor):
    """Places that may be changed; annotations and docstrings are none."""

    def __init__(self) -> None:
        self.found: list[ast.AST] = []

    def generic_visit(self, node: ast.AST) -> None:
        self.found.append(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST) and not _is_docstring(part) and not _is_typing(part):
                    self.visit(part)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_typing(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(path.read_text())
    places = _places(tree)
    found = []
    for number, place in enumerate(places):
        for variant in range(len(list(_changes(place)))):
            fresh = copy.deepcopy(tree)
            what, node = list(_changes(_places(fresh)[number]))[variant]
            _apply(fresh, _places(fresh)[number], node)
            source = ast.unparse(ast.fix_missing_locations(fresh))
            found.append(Mutant(path, getattr(place, "lineno", 0), what, source))
    return found


def _places(tree: ast.AST) -> list[ast.AST]:
    names = _Names()
    names.visit(tree)
    return names.found


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a place can become: the words for it, and the new node."""
    match node:
        case ast.Compare(ops=[operation]):
            turned = _TURNED[type(operation)]()
            yield (
                f"{type(operation).__name__} -> {type(turned).__name__}",
                ast.Compare(node.left, [turned], node.comparators),
            )
        case ast.BoolOp(op=operation):
            other: ast.boolop = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield f"-> {type(other).__name__.lower()}", ast.BoolOp(other, node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not left away", node.operand
        case ast.Constant(value=bool()):
            yield f"{node.value} -> {not node.value}", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield f"{node.value} -> {node.value + 1}", ast.Constant(node.value + 1)
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield "returns None", ast.Return(ast.Constant(None))


def _apply(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if part is old else part for part in value]
    ast.copy_location(new, old)


_HOOK = """
import importlib.abc, importlib.machinery, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != {name!r}:
            return None
        loader = importlib.machinery.SourceFileLoader(name, {file!r})
        loader.get_filename = lambda name=None: {original!r}
        loader.get_code = lambda name: compile(open({file!r}).read(), {original!r}, "exec")
        return importlib.machinery.ModuleSpec(name, loader, origin={original!r})
sys.meta_path.insert(0, Finder())
"""


def is_noticed(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Run the tests against a mutant; whether one failed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        changed = Path(directory) / "changed.txt"
        changed.write_text(mutant.source)
        name = ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts)
        (Path(directory) / "sitecustomize.py").write_text(
            _HOOK.format(name=name, file=str(changed), original=str(mutant.path))
        )
        try:
            ran = _pytest(tests, directory)
        except subprocess.TimeoutExpired:
            return True
    if ran.returncode not in (0, 1, 2):
        raise SystemExit(f"the tests of {name} do not run: {ran.stdout}{ran.stderr}")
    return ran.returncode != 0


def _pytest(tests: Sequence[str], hooks: str = "") -> subprocess.CompletedProcess[str]:
    quick = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *quick, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": hooks, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        check=False,
    )


def measure(path: Path, tests: Sequence[str], count: int, seed: int, workers: int) -> float:
    """Print what survives of ``count`` mutants; the share that was noticed."""
    begun = time.monotonic()
    if _pytest(tests).returncode:
        raise SystemExit(f"{' '.join(tests)} fails without a mutant")
    lasted = time.monotonic() - begun
    all_of_it = mutants(path)
    sample = random.Random(seed).sample(all_of_it, min(count, len(all_of_it)))
    sample.sort(key=lambda mutant: mutant.line)
    with ThreadPoolExecutor(workers) as pool:
        noticed = list(pool.map(lambda mutant: is_noticed(mutant, tests), sample))
    share = sum(noticed) / len(sample)
    name = path.relative_to(ROOT)
    print(
        f"{share:6.1%}  {name}: {sum(noticed)} of {len(sample)} sampled"
        f" ({len(all_of_it)} in all), tests take {lasted:.1f} s",
        flush=True,
    )
    for mutant, seen in zip(sample, noticed, strict=True):
        if not seen:
            print(f"        {name}:{mutant.line}: {mutant.what}", flush=True)
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description="Sampled mutants: how many do tests notice?")
    parser.add_argument("module", nargs="?", help="a file below ganeti/; default: the whole table")
    parser.add_argument("tests", nargs="*", help="its tests; default: those of the table")
    parser.add_argument("--count", type=int, default=40, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are chosen")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="side by side")
    parser.add_argument("--least", type=float, default=90, help="percentage for exit code 0")
    given = parser.parse_args()
    table = TABLE
    if given.module is not None:
        table = {given.module: tuple(given.tests) or TABLE[given.module]}
    shares = [
        measure(ROOT / module, tests, given.count, given.seed, given.workers)
        for module, tests in table.items()
    ]
    return 0 if min(shares) * 100 >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
