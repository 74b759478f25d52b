"""Versions of this software side by side, as ``make install`` lays them out: ``DIR/X.Y/venv``.

Each has the code of this tree under another version number, and libraries of this environment.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: File of the package -> text that is replaced, and by what.
Edits = Mapping[str, tuple[str, str]]


def make(directory: Path, version: str, edits: Edits | None = None) -> Path:
    """Install the code of this tree as another version (``3.3``); returns ``directory/3.3``."""
    root = directory / version
    venv = root / "venv"
    base = Path(os.path.realpath(sys.executable))
    library = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = venv / "lib" / library / "site-packages"
    (venv / "bin").mkdir(parents=True)
    packages.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    (venv / "bin" / "python").symlink_to(base)
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    shutil.copytree(REPOSITORY / "ganeti", packages / "ganeti", copy_function=_link)
    renumber(packages / "ganeti", version)
    for name, (old, new) in (edits or {}).items():
        change(root, name, old, new)
    for program, place in _programs().items():
        module, function = place.split(":")
        script = venv / "bin" / program
        script.write_text(
            f"#!{venv / 'bin' / 'python'}\nimport sys\nfrom {module} import {function}\n"
            f"sys.exit({function}())\n"
        )
        script.chmod(0o755)
    return root


def renumber(package: Path, version: str) -> None:
    """Give the code of this tree in a directory ``ganeti`` another version."""
    major, minor = version.split(".")
    for old, new in (
        ('RELEASE_VERSION: Final = "3.2.', f'RELEASE_VERSION: Final = "{version}.'),
        ("VERSION_MAJOR: Final = 3\n", f"VERSION_MAJOR: Final = {major}\n"),
        ("VERSION_MINOR: Final = 2\n", f"VERSION_MINOR: Final = {minor}\n"),
    ):
        replace(package / "constants.py", old, new)


def change(root: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a module of an installed version, which must be there once."""
    (path,) = root.glob(f"venv/lib/*/site-packages/ganeti/{name}")
    replace(path, old, new)


def replace(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must be there once."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path.name}"
    path.unlink()  # the other tree has the same file
    path.write_text(text.replace(old, new))


def _programs() -> Mapping[str, str]:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        scripts: dict[str, str] = tomllib.load(file)["project"]["scripts"]
    return scripts


def _link(source: str, target: str) -> None:
    """The same file under another name where that can be, with its time: what is compiled fits."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
