"""A package ``ganeti`` of a test's own, to which the test adds something as ``doc/adding.md`` says.

Every file is a link to the real one until the test writes it, and the test may write only files
that its rows of the table name. :attr:`OwnPackage.touched` are the files that the addition needed;
:meth:`OwnPackage.run` runs Python with this package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import adding_table

REPOSITORY = Path(__file__).parents[2]
#: How names of files begin that are beside the package.
OUTSIDE = ("daemons/", "doc/", "pyproject.toml", "test/")


class OwnPackage:
    """Below ``directory``, which must not exist, for a thing of each of some rows of the table."""

    def __init__(self, directory: Path, *rows: str) -> None:
        self.directory = directory
        self.rows = rows
        self.touched: set[str] = set()
        real = REPOSITORY / "ganeti"
        shutil.copytree(real, directory / "ganeti", copy_function=os.symlink)

    def path(self, name: str) -> Path:
        """Where a file is; what is not outside begins below ``ganeti/``."""
        return self.directory / ("" if name.startswith(OUTSIDE) else "ganeti") / name

    def write(self, name: str, text: str) -> None:
        """Make or replace a file of the package, or one of ``OUTSIDE``."""
        named = any(adding_table.names(row, name) for row in self.rows)
        assert named, f"{name} is not in the rows {', '.join(self.rows)} of {adding_table.PAGE}"
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        self.touched.add(name)

    def insert(self, name: str, text: str, *, before: str | None = None) -> None:
        """Insert text before the only line that begins like this, or at the end of a file."""
        path = self.path(name)
        old = (path if path.exists() else REPOSITORY / name).read_text()
        if before is None:
            self.write(name, f"{old}{text}")
            return
        assert f"\n{old}".count(f"\n{before}") == 1, f"{before!r} is not one line of {name}"
        start = f"\n{old}".index(f"\n{before}")
        self.write(name, f"{old[:start]}{text}{old[start:]}")

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace text that a file has once."""
        path = self.path(name)
        text = (path if path.exists() else REPOSITORY / name).read_text()
        assert text.count(old) == 1, f"{old!r} is not once in {name}"
        self.write(name, text.replace(old, new))

    def run(self, code: str, root: Path) -> subprocess.CompletedProcess[str]:
        """Run Python code with this package and a root directory of its own."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.directory),
            "GANETI_ROOTDIR": str(root),
            "GANETI_HOSTNAME": "node1.example.com",
        }
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def output(self, code: str, root: Path) -> list[str]:
        """Lines that Python code prints; it must succeed."""
        done = self.run(code, root)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()
