"""This project as the machines see it: a copy that holds still, compiled, where the original is.

The copy hides the original inside a machine, so the programs of ``.venv/bin`` work there as they
are, and work on the tree while a run goes on does no harm to the run.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import sys
from pathlib import Path

from lab.machine import Machine
from lab.place import REPOSITORY, LabError

PARTS = ("ganeti", "daemons", "os", "tools", "test/contract", "test/support")
VENV = Path(sys.prefix)


def shares(directory: Path) -> dict[Path, Path]:
    """Make the copy below ``directory``; what is to be shared, and where it belongs inside."""
    if sys.prefix == sys.base_prefix:
        raise LabError("run the lab with the interpreter of .venv (make .venv/dev.stamp)")
    copy = directory / "code"
    for part in PARTS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / part, copy / part, symlinks=True, ignore=ignore)
    shutil.copy(REPOSITORY / "pyproject.toml", copy)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for part in ("ganeti", "daemons"):
        if not compileall.compile_dir(
            copy / part, quiet=2, invalidation_mode=mode, workers=os.cpu_count() or 1,
            stripdir=str(copy), prependdir=str(REPOSITORY),
        ):  # fmt: skip
            raise LabError(f"{part} cannot be compiled")
    if VENV.is_relative_to(REPOSITORY):
        (copy / VENV.relative_to(REPOSITORY)).mkdir(parents=True)
    return {copy: REPOSITORY, VENV: VENV}


def run_tests(machine: Machine, directory: str, chosen: str, env: dict[str, str]) -> None:
    """Run tests of this project inside a machine, those that ``chosen`` (pytest's ``-k``) tells.

    Raises:
        LabError: one failed, or none was chosen.
    """
    machine.ok(
        "env", "-C", str(REPOSITORY), f"{VENV}/bin/python", "-m", "pytest", "-k", chosen,
        "-p", "no:cacheprovider", "-p", "no:hypothesispytest", directory,
        env=env, limit=400.0,
    )  # fmt: skip
