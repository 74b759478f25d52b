"""The Debian packages of this project, built from the tree and kept by what is in it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

from lab.place import REPOSITORY, LabError, Unavailable, being_made, cache

#: What the package ``ganeti`` is made of.
_SOURCES = (
    "completion",
    "daemons",
    "debian",
    "doc/reference/man",
    "ganeti",
    "iallocators",
    "os",
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "tools",
)


def package() -> Path:
    """The file of the package ``ganeti``; built on first use, which takes minutes.

    Raises:
        Unavailable: the tools of Debian are missing, or the build failed.
    """
    target = cache() / f"package-{_digest()}"
    if not target.exists():
        with being_made(target) as made:
            words = [str(REPOSITORY / "tools/make-deb"), str(made)]
            ran = subprocess.run(words, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Unavailable(f"the package cannot be built: {ran.stderr.strip()[-1000:]}")
    return next(target.glob("ganeti_*.deb"))


def newer(package: Path, directory: Path) -> Path:
    """The same package with a higher version, in ``directory``."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        _dpkg("--raw-extract", str(package), place)
        control = Path(place, "DEBIAN/control")
        text, count = re.subn(r"(?m)^(Version: .*)$", r"\1+next1", control.read_text())
        if count != 1:
            raise LabError(f"{package} has no version")
        control.write_text(text)
        made = directory / re.sub(r"_(\d[^_]*)_", r"_\1+next1_", package.name)
        # Compressed quickly: it is used once.
        _dpkg("--root-owner-group", "-Zgzip", "-z1", "--build", place, str(made))
    return made


def _dpkg(*words: str) -> None:
    ran = subprocess.run(["dpkg-deb", *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(f"dpkg-deb: {ran.stderr.strip()}")


def _digest() -> str:
    seen = hashlib.sha256()
    for source in _SOURCES:
        root = REPOSITORY / source
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                seen.update(f"{file.relative_to(REPOSITORY)}\0".encode())
                seen.update(file.read_bytes())
    return seen.hexdigest()[:10]
