"""Python, its libraries, packages of Debian and programs. Needs no library of others."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator

from ganeti import errors
from ganeti.base import process
from ganeti.doctor.facts import Library, Package, Software
from ganeti.paths import Paths

#: Name of this project in the metadata of Python.
_DISTRIBUTION = "ganeti"
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:>=\s*([\w.]+))?[^;]*(?:;(.*))?")
_PYTHON_MARKER = re.compile(r"""python_version\s*>=\s*['"](\d+)\.(\d+)['"]""")
#: Names of modules that differ from those of their libraries.
_MODULES = {"pyopenssl": "OpenSSL", "pyasyncore": "asyncore"}
#: Packages whose state counts.
_PACKAGES = (
    *("ganeti*", "python3-ganeti*", "python3", "lvm2", "drbd-utils", "socat", "lxc"),
    *("qemu-system-x86", "qemu-utils", "xen-tools", "openssh-server", "iproute2"),
)
_PROGRAMS = (
    *("ip", "ssh", "lvs", "drbdsetup", "drbdmeta", "rbd"),
    *("qemu-img", "socat", "lxc-start", "xl"),
)
_PATIENCE = 30.0


def read(where: Paths, *, imports: bool = True) -> Software:
    """Blocks for dpkg-query; with ``imports`` libraries are imported, else only looked for."""
    return Software(
        python=sys.version_info[:3],
        executable=sys.executable,
        libraries=tuple(_libraries(_import if imports else _find)),
        packages=tuple(read_packages(_ask_dpkg())),
        programs=frozenset(
            name for name in _PROGRAMS if shutil.which(name, path=process.search_path())
        ),
        configuration=_configuration(where),
        release=_release(where),
    )


def _libraries(try_out: Callable[[str], str]) -> Iterator[Library]:
    try:
        wanted = importlib.metadata.requires(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return  # run from a tree, whose environment make has made
    for name, lowest in read_requirements(wanted, sys.version_info[:2]):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Library(name, lowest, None)
            continue
        yield Library(name, lowest, version, try_out(_MODULES.get(name.lower(), name.lower())))


def read_requirements(lines: Iterable[str], python: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Name and lowest version of what this Python needs. Pure."""
    for line in lines:
        found = _REQUIREMENT.match(line)
        if found is None or "extra ==" in (found[3] or ""):
            continue
        marker = _PYTHON_MARKER.search(found[3] or "")
        if marker is None or python >= (int(marker[1]), int(marker[2])):
            yield found[1], found[2] or ""


def _find(module: str) -> str:
    """Why a module is not there; empty when it is."""
    return "" if importlib.util.find_spec(module) else f"there is no module {module}"


def _import(module: str) -> str:
    """Why a module cannot be imported, on one line; empty when it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(module)
    except Exception as err:  # noqa: BLE001 - code of others may raise anything
        return " ".join(f"{type(err).__name__}: {err}".split())[:200]
    return ""


def _ask_dpkg() -> str:
    fields = r"${Package}|${Version}|${db:Status-Abbrev}\n"
    try:
        # It fails when one of the packages is unknown, and lists the others.
        argv = ["dpkg-query", "--show", f"--showformat={fields}", *_PACKAGES]
        return process.run(argv, timeout=_PATIENCE).stdout
    except errors.CommandError:
        return ""  # not Debian


def read_packages(text: str) -> Iterator[Package]:
    """Yield the installed packages in the output of dpkg-query. Pure."""
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 3 and fields[2][1:2] not in ("", "n"):
            yield Package(*fields)


def _configuration(where: Paths) -> int | None:
    try:
        found = json.loads(where.config_file.read_bytes())
    except (OSError, ValueError):
        return None  # a damaged one is for the master daemon to name
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, int) else None


def _release(where: Paths) -> str | None:
    try:
        return where.ssconf("release_version").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
