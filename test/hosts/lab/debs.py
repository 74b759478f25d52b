"""The Debian packages of this project, built from the tree and kept by what is in it."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import version_trees

from lab import build_root, image
from lab.place import REPOSITORY, LabError, Unavailable, being_made, cache

#: The version of the tree, X.Y, and the next one.
NOW, NEXT = "3.2", "3.3"
#: What the package ``ganeti`` is made of.
_SOURCES = (
    "README.md",
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


def package(suite: str = image.SUITE, version: str = NOW) -> Path:
    """The file of the package ``ganeti`` for a release of Debian; the first build takes minutes.

    Version ``NEXT`` has the code of the tree, under another number.

    Raises:
        Unavailable: the tools of Debian are missing, or the build failed.
    """
    target = cache() / f"package-{suite}-{version}-{_digest()}"
    if not target.exists():
        with being_made(target) as made, tempfile.TemporaryDirectory() as tree:
            _copy_tree(Path(tree))
            if version != NOW:
                _renumber(Path(tree), version)
            ran = _build(suite, Path(tree), made)
            if ran.returncode:
                raise Unavailable(f"the package cannot be built: {ran.stderr.strip()[-1000:]}")
    return next(target.glob("ganeti_*.deb"))


def _build(suite: str, tree: Path, made: Path) -> subprocess.CompletedProcess[str]:
    if platform.freedesktop_os_release().get("VERSION_CODENAME") != suite:
        return build_root.make_deb(suite, tree, made)
    words = [str(tree / "tools/make-deb"), str(made)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def _copy_tree(tree: Path) -> None:
    for source in _SOURCES:
        path = REPOSITORY / source
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, tree / source, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, tree / source)


def _renumber(tree: Path, version: str) -> None:
    version_trees.renumber(tree / "ganeti", version)
    for name, old in (("pyproject.toml", '\nversion = "{}.'), ("debian/changelog", "ganeti ({}.")):
        version_trees.replace(tree / name, old.format(NOW), old.format(version))


def make_newer(package: Path, directory: Path) -> Path:
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
