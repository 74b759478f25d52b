"""This project as the machines see it: a copy that holds still, compiled, where the original is.

The copy hides the original inside a machine, so the programs of ``.venv/bin`` work there as they
are, and work on the tree while a run continues does no harm to the run. The interpreter behind them
is Debian's if it is of the same version: others are slower, and emulation makes much of that.
"""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from lab.machine import Machine
from lab.place import REPOSITORY, LabError, lock

PARTS = ("ganeti", "daemons", "os", "tools", "test/contract", "test/support")
VENV = Path(sys.prefix)
SYSTEM_PYTHON = Path("/usr/bin/python3")
#: Where packages are in a machine: on the path, without what pip makes every start do.
PACKAGES = Path("/opt/packages")


def shares(directory: Path) -> dict[Path, Path]:
    """Make the copy below ``directory``; what is to be shared, and where it belongs inside."""
    if sys.prefix == sys.base_prefix:
        raise LabError("run the lab with the interpreter of .venv (make .venv/dev.stamp)")
    copy = directory / "code"
    # One process at a time: two that compile the same module may use the same temporary file.
    with lock("compile"):
        for part in ("ganeti", "daemons"):
            # What is compiled already stays so.
            if not compileall.compile_dir(REPOSITORY / part, quiet=2, workers=os.cpu_count() or 1):
                raise LabError(f"{part} cannot be compiled")
        for part in PARTS:
            shutil.copytree(REPOSITORY / part, copy / part, symlinks=True)
    shutil.copy(REPOSITORY / "pyproject.toml", copy)
    if VENV.is_relative_to(REPOSITORY):
        (copy / VENV.relative_to(REPOSITORY)).mkdir(parents=True)
    return {copy: REPOSITORY, **_environment(directory / "venv")}


def _environment(copy: Path) -> dict[Path, Path]:
    """The virtual environment, as a copy without its packages where that gets Debian's Python."""
    packages = Path(sysconfig.get_path("purelib"))
    if _version_of(SYSTEM_PYTHON) != sys.version_info[:2]:
        return {VENV: VENV}
    shutil.copytree(VENV / "bin", copy / "bin", symlinks=True)
    for link in (copy / "bin").glob("python*"):
        link.unlink()
    for name in ("python", "python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        (copy / "bin" / name).symlink_to(SYSTEM_PYTHON)
    (copy / "pyvenv.cfg").write_text(
        f"home = {SYSTEM_PYTHON.parent}\ninclude-system-site-packages = false\n"
    )
    empty = copy / packages.relative_to(VENV)
    empty.mkdir(parents=True)
    (empty / "lab.pth").write_text(f"{PACKAGES}\n{REPOSITORY}\n")
    return {copy: VENV, packages: PACKAGES}


def _version_of(python: Path) -> tuple[int, ...]:
    """Empty when there is no such interpreter."""
    words = [str(python), "-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(map(int, ran.stdout.split()))


def run_tests(machine: Machine, directory: str, chosen: str, env: dict[str, str]) -> None:
    """Run tests of this project inside a machine, those that ``chosen`` (pytest's ``-k``) tells.

    Raises:
        LabError: one failed, or none was chosen.
    """
    machine.ok(
        "env",
        "-C",
        str(REPOSITORY),
        f"{VENV}/bin/python",
        "-m",
        "pytest",
        "-k",
        chosen,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        directory,
        env=env,
        limit=400.0,
    )
