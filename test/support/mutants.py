"""Sampled mutants: how many defects, put in by hand, do the tests of a module notice?

``make test-mutants`` runs the table below; ``test/support/mutants.py --help`` tells the rest. A
mutant is the source of one module with one place changed: a turned comparison, ``and`` for ``or``
(``&`` for ``|`` too), ``not`` left away, another number or truth value, a result that is None. The
tests named for the module run against each in a process of its own, which loads the changed source
in place of the file; the working tree is never written. A mutant that no test notices is printed
with its line. The same seed chooses the same mutants, until the module changes.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Tests that take this many times as long as without a mutant hang, which is noticed.
_PATIENCE = 10
#: Seconds that tests may always take.
_LEAST_LIMIT = 30.0
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
#: Module -> tests that must notice its mutants; they take less than a minute.
TABLE: dict[str, tuple[str, ...]] = {
    "ganeti/config/failover_policy.py": ("test/unit/ops/test_op_recovery_plans.py",),
    "ganeti/rapi/scope.py": ("test/unit/rapi/test_rapi_scope.py",),
    "ganeti/rapi/login_settings.py": ("test/unit/rapi/test_rapi_login_settings.py",),
    "ganeti/rapi/oidc_tokens.py": ("test/unit/rapi/test_rapi_oidc.py",),
    "ganeti/notify/conditions.py": ("test/unit/notify/test_notify_conditions.py",),
    "ganeti/config/limits.py": ("test/unit/config/test_config_limits.py",),
    "ganeti/images/location.py": ("test/unit/images/test_images_location.py",),
    "ganeti/jobs/gate.py": ("test/unit/jobs/test_job_gate.py",),
    "ganeti/jobs/reason_limits.py": ("test/unit/jobs/test_job_gate.py",),
    "ganeti/ops/planning/checks.py": ("test/unit/ops/test_op_checks.py",),
    "ganeti/ops/planning/cloud_init_settings.py": ("test/unit/ops/test_op_cloud_init_settings.py",),
    "ganeti/ops/planning/cluster_settings.py": ("test/unit/ops/test_op_cluster_settings.py",),
    "ganeti/ops/planning/commit_request.py": ("test/unit/ops/test_op_commit_request.py",),
    "ganeti/ops/planning/communication_network.py": (
        "test/unit/ops/test_op_communication_network.py",
    ),
    "ganeti/ops/planning/communication_nic.py": ("test/unit/ops/test_op_communication_nic.py",),
    "ganeti/ops/planning/device_changes.py": ("test/unit/ops/test_op_device_changes.py",),
    "ganeti/ops/planning/disk_bearer.py": ("test/unit/ops/test_op_disk_bearer.py",),
    "ganeti/ops/planning/disk_layout.py": ("test/unit/ops/test_op_disk_layout.py",),
    "ganeti/ops/planning/disk_names.py": ("test/unit/ops/test_op_disk_names.py",),
    "ganeti/ops/planning/disk_settings.py": ("test/unit/ops/test_op_disk_settings.py",),
    "ganeti/ops/planning/export_request.py": ("test/unit/ops/test_op_export_request.py",),
    "ganeti/ops/planning/fencing_record.py": ("test/unit/ops/test_op_fencing_record.py",),
    "ganeti/ops/planning/group_settings.py": ("test/unit/ops/test_op_group_settings.py",),
    "ganeti/ops/planning/images.py": ("test/unit/ops/test_op_image_plans.py",),
    "ganeti/ops/planning/import_settings.py": ("test/unit/ops/test_op_import_settings.py",),
    "ganeti/ops/planning/maintenance.py": ("test/unit/ops/test_op_maintenance_plans.py",),
    "ganeti/ops/planning/migration_verdict.py": ("test/unit/ops/test_op_migration_verdict.py",),
    "ganeti/ops/planning/missing_attributes.py": ("test/unit/ops/test_op_missing_attributes.py",),
    "ganeti/ops/planning/network_settings.py": ("test/unit/ops/test_op_network_settings.py",),
    "ganeti/ops/planning/nics.py": ("test/unit/ops/test_op_nic_plans.py",),
    "ganeti/ops/planning/node_roles.py": ("test/unit/ops/test_op_node_roles.py",),
    "ganeti/ops/planning/node_storage.py": ("test/unit/ops/test_op_node_storage.py",),
    "ganeti/ops/planning/os_images.py": ("test/unit/ops/test_op_image_plans.py",),
    "ganeti/ops/planning/os_settings.py": ("test/unit/ops/test_op_cluster_settings.py",),
    "ganeti/ops/planning/disk_reach.py": ("test/unit/ops/test_op_disk_reach.py",),
    "ganeti/ops/planning/policy.py": ("test/unit/ops/test_op_policy.py",),
    "ganeti/ops/planning/recovery.py": ("test/unit/ops/test_op_recovery_plans.py",),
    "ganeti/ops/planning/recovery_settings.py": ("test/unit/ops/test_op_recovery_plans.py",),
    "ganeti/ops/planning/reservation_draft.py": ("test/unit/ops/test_op_reservation_draft.py",),
    "ganeti/ops/planning/snapshots.py": ("test/unit/ops/test_op_snapshot_plans.py",),
    "ganeti/ops/planning/ssh_keys.py": ("test/unit/ops/test_op_ssh_keys.py",),
    "ganeti/ops/planning/supposed.py": ("test/unit/ops/test_op_supposed.py",),
    "ganeti/ops/targets/instance.py": ("test/unit/ops/test_op_targets.py",),
    "ganeti/ops/targets/network.py": ("test/unit/ops/test_op_targets.py",),
    "ganeti/ops/targets/tags.py": ("test/unit/ops/test_op_targets.py",),
    "ganeti/ops/verification/bridges.py": ("test/unit/ops/test_op_verify_requirements.py",),
    "ganeti/ops/verification/certificates.py": ("test/unit/ops/test_op_verify_certificates.py",),
    "ganeti/ops/verification/exports.py": ("test/unit/ops/test_op_verify_requirements.py",),
    "ganeti/ops/verification/files.py": ("test/unit/ops/test_op_verify_requirements.py",),
    "ganeti/ops/verification/requirements.py": ("test/unit/ops/test_op_verify_requirements.py",),
    "ganeti/ops/verification/images.py": ("test/unit/ops/test_op_verify_requirements.py",),
    "ganeti/ops/verification/disk_parts.py": ("test/unit/ops/test_op_verify_disk_parts.py",),
    "ganeti/locking/level_locks.py": ("test/unit/locking",),
    "ganeti/locking/manager.py": ("test/unit/locking",),
    "ganeti/net/https.py": ("test/unit/net/test_https.py",),
    "ganeti/rapi/oidc.py": ("test/unit/rapi/test_rapi_oidc.py",),
    "ganeti/recovery/bounds.py": ("test/unit/recovery",),
    "ganeti/recovery/forecast.py": ("test/unit/recovery",),
    "ganeti/recovery/ladder.py": ("test/unit/recovery",),
    "ganeti/recovery/lease.py": ("test/unit/recovery",),
    "ganeti/recovery/master.py": ("test/unit/recovery",),
    "ganeti/recovery/node.py": ("test/unit/recovery",),
    "ganeti/recovery/standby.py": ("test/unit/recovery",),
    "ganeti/recovery/terms.py": ("test/unit/recovery",),
    "ganeti/storage/lvm/report.py": ("test/unit/storage/test_lvm_report.py",),
    "ganeti/config/verify.py": ("test/unit/config/test_config_verify.py",),
    "ganeti/storage/drbd/machine.py": ("test/unit/storage/test_drbd_machine.py",),
    "ganeti/filters/compile.py": ("test/unit/filters/test_filter_compile.py",),
    "ganeti/placement/score.py": ("test/unit/placement/test_score.py",),
    "ganeti/placement/moves.py": ("test/unit/placement/test_moves.py",),
    "ganeti/placement/rolling.py": ("test/unit/placement/test_rolling.py",),
    "ganeti/placement/seats.py": ("test/unit/placement/test_seats.py",),
    "ganeti/node/restricted.py": ("test/unit/node/test_node_restricted.py",),
    "ganeti/confd/messages.py": ("test/unit/confd",),
    "ganeti/confd/answers.py": ("test/unit/confd",),
}
#: Packages that the tests import; loaded once for all mutants.
_FOREIGN = ("pytest", "hypothesis", "msgspec", "simplejson", "pyparsing", "regex", "numpy")


@dataclass(frozen=True)
class Mutant:
    """One change of one module: the how-manieth place, and which of the changes of that place."""

    path: Path
    place: int
    variant: int
    line: int
    what: str


class _Places(ast.NodeVisitor):
    """Places that may be changed; annotations, docstrings and options of classes are none."""

    def __init__(self) -> None:
        self.found: list[ast.AST] = []

    def generic_visit(self, node: ast.AST) -> None:
        self.found.append(node)
        left_out = {"annotation", "returns", "decorator_list"}
        if isinstance(node, ast.ClassDef):
            left_out.add("keywords")
        for name, value in ast.iter_fields(node):
            if name in left_out:
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


def _is_type(node: ast.AST) -> bool:
    """Whether ``|`` beside it joins types."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            name = name.lstrip("_")
            return name in ("str", "int", "float", "bool", "bytes", "list", "tuple", "dict") or (
                name[:1].isupper() and not name.isupper()
            )
        case ast.Subscript(value=value):
            return _is_type(value)
    return False


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    return [
        Mutant(path, number, variant, getattr(place, "lineno", 0), what)
        for number, place in enumerate(_places(ast.parse(path.read_text())))
        for variant, (what, _node) in enumerate(_changes(place))
    ]


def changed_source(mutant: Mutant) -> str:
    """The source of the module with the change."""
    tree = ast.parse(mutant.path.read_text())
    place = _places(tree)[mutant.place]
    _what, node = list(_changes(copy.deepcopy(place)))[mutant.variant]
    _apply(tree, place, node)
    return ast.unparse(ast.fix_missing_locations(tree))


def _places(tree: ast.AST) -> list[ast.AST]:
    places = _Places()
    places.visit(tree)
    return places.found


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
        case ast.BinOp() if _is_type(node.left) or _is_type(node.right):
            return
        case ast.BinOp(op=ast.BitAnd()):
            yield "& -> |", ast.BinOp(node.left, ast.BitOr(), node.right)
        case ast.BinOp(op=ast.BitOr()):
            yield "| -> &", ast.BinOp(node.left, ast.BitAnd(), node.right)
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield "not left away", node.operand
        case ast.Constant(value=bool()):
            yield f"{node.value} -> {not node.value}", ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
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
from pathlib import Path
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != {name!r}:
            return None
        loader = importlib.machinery.SourceFileLoader(name, {file!r})
        loader.get_filename = lambda name=None: {original!r}
        loader.get_code = lambda name: compile(Path({file!r}).read_text(), {original!r}, "exec")
        return importlib.machinery.ModuleSpec(name, loader, origin={original!r})
sys.meta_path.insert(0, Finder())
"""


class Run:
    """The tests of a module in a process of their own, against a mutant or none."""

    def __init__(self, tests: Sequence[str], mutant: Mutant | None = None) -> None:
        self._tests = tests
        self._mutant = mutant
        self._directory = tempfile.TemporaryDirectory(prefix="mutant-")
        self._begun = time.monotonic()
        self.lasted = 0.0
        self._pid = os.fork()
        if self._pid == 0:
            code = 70
            with contextlib.suppress(BaseException):
                code = self._child()
            os._exit(code)

    def _child(self) -> int:
        os.setsid()
        where = Path(self._directory.name)
        output = os.open(where / "output", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # Examples that a mutant failed on must not be tried on the next one.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(where / "hypothesis")
        if self._mutant is not None:
            self._load(self._mutant, where)
        quick = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
        known = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        import pytest

        return int(pytest.main([*quick, *known, *self._tests]))

    @staticmethod
    def _load(mutant: Mutant, where: Path) -> None:
        """Let this process and those that it starts load the changed source."""
        changed = where / "changed.txt"
        changed.write_text(changed_source(mutant))
        name = ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts)
        hook = _HOOK.format(name=name, file=str(changed), original=str(mutant.path))
        (where / "sitecustomize.py").write_text(hook)
        os.environ["PYTHONPATH"] = str(where)
        exec(hook, {})

    def await_end(self, limit: float | None) -> int | None:
        """The exit code; None while the tests run. Those that run too long are killed: 1."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        self.lasted = time.monotonic() - self._begun
        late = limit is not None and self.lasted > limit
        if pid == 0 and not late:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        if pid == 0:
            os.waitpid(self._pid, 0)
        code = 1 if pid == 0 or not os.WIFEXITED(status) else os.WEXITSTATUS(status)
        output = Path(self._directory.name, "output")
        text = output.read_text(errors="replace") if output.exists() else ""
        self._directory.cleanup()
        # Of a mutant that breaks an import the tests cannot be collected: 2 or 4.
        if code not in ((0, 1) if self._mutant is None else (0, 1, 2, 4)):
            raise SystemExit(f"{' '.join(self._tests)}: the tests do not run ({code}):\n{text}")
        return code


def notice(
    sample: Sequence[Mutant], tests: Sequence[str], limit: float, workers: int
) -> list[bool]:
    """Run the tests against each mutant, ``workers`` at a time; which of them a test noticed."""
    noticed: dict[int, bool] = {}
    running: dict[int, Run] = {}
    waiting = list(enumerate(sample))
    while waiting or running:
        while waiting and len(running) < workers:
            index, mutant = waiting.pop(0)
            running[index] = Run(tests, mutant)
        for index, run in list(running.items()):
            code = run.await_end(limit)
            if code is not None:
                noticed[index] = code != 0
                del running[index]
        time.sleep(0.02)
    return [noticed[index] for index in range(len(sample))]


@dataclass(frozen=True)
class Figures:
    """What was measured of one module."""

    module: str
    noticed: int
    sampled: int
    all: int
    #: of the tests without a mutant
    seconds: float

    @property
    def percent(self) -> float:
        return 100 * self.noticed / self.sampled

    def __str__(self) -> str:
        share = f"{self.percent:5.1f} %  {self.noticed:3} of {self.sampled:3} ({self.all:3} in all)"
        return f"{share}  {self.seconds:5.1f} s  {self.module}"


def measure(
    module: str, tests: Sequence[str], count: int, seed: int, workers: int, lines: range
) -> Figures:
    """Print what survives of ``count`` mutants on these lines; how many were noticed."""
    path = ROOT / module
    unchanged = Run(tests)
    while (code := unchanged.await_end(None)) is None:
        time.sleep(0.02)
    if code:
        raise SystemExit(f"{' '.join(tests)} fails without a mutant")
    possible = [mutant for mutant in mutants(path) if mutant.line in lines]
    sample = random.Random(seed).sample(possible, min(count, len(possible)))
    sample.sort(key=lambda mutant: (mutant.line, mutant.place))
    limit = max(_LEAST_LIMIT, _PATIENCE * unchanged.lasted)
    noticed = notice(sample, tests, limit, workers)
    found = Figures(module, sum(noticed), len(sample), len(possible), unchanged.lasted)
    print(found, flush=True)
    for mutant, seen in zip(sample, noticed, strict=True):
        if not seen:
            print(f"         {module}:{mutant.line}: {mutant.what}", flush=True)
    return found


def _lines(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Sampled mutants: how many do tests notice?")
    parser.add_argument("module", nargs="?", help="a file below ganeti/; default: the whole table")
    parser.add_argument("tests", nargs="*", help="its tests; default: those of the table")
    parser.add_argument("--count", type=int, default=40, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are chosen")
    parser.add_argument("--lines", type=_lines, default=range(1 << 30), help="such as 10-20")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="side by side")
    parser.add_argument("--least", type=float, default=90, help="percentage for exit code 0")
    given = parser.parse_args()
    table = TABLE
    if given.module is not None:
        table = {given.module: tuple(given.tests) or TABLE[given.module]}
    os.chdir(ROOT)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in _FOREIGN:
        importlib.import_module(name)
    found = [
        measure(module, tests, given.count, given.seed, given.workers, given.lines)
        for module, tests in table.items()
    ]
    if len(found) > 1:
        total = sum(each.noticed for each in found), sum(each.sampled for each in found)
        print(f"\nseed {given.seed}: {total[0]} of {total[1]} noticed\n", *found, sep="\n")
    return 0 if min(each.percent for each in found) >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
