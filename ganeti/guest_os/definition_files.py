"""The files of an OS definition."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganeti.constants import OS_API_VERSIONS

API_FILE = "ganeti_api_version"

VARIANTS_FILE = "variants.list"

PARAMETERS_FILE = "parameters.list"

HYPERVISORS_FILE = "hypervisors"

CREATE = "create"

CREATE_UNTRUSTED = "create_untrusted"

IMPORT = "import"

EXPORT = "export"

RENAME = "rename"

VERIFY = "verify"

#: From these versions on a definition may have variants, and must have parameters and verify.
VARIANTS_FROM = 15

PARAMETERS_FROM = 20

#: Between the name of a definition and that of a variant.
SEPARATOR = "+"

OS_NAME = re.compile(r"[^\s/+.\x00-\x1f\x7f][^\s/+\x00-\x1f\x7f]*")

_PARAMETER = re.compile(r"[!-<>-~]+")


@dataclass
class _Reading:
    """Content of the directory of a definition, and all its defects."""

    path: Path
    defects: list[str] = field(default_factory=list)
    api_versions: tuple[int, ...] = ()
    variants: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    hypervisors: tuple[str, ...] = ()
    trusted: bool = True

    def lines(self, name: str, *, comments: bool = True) -> list[str] | None:
        """Lines with content of a text file; None after noting why it cannot be read."""
        path = self.path / name
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                self.defects.append(f"{name} is not a regular file")
                return None
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self.defects.append(f"file {name} is missing")
            return None
        except OSError as err:
            self.defects.append(f"file {name} cannot be read: {err.strerror}")
            return None
        except UnicodeDecodeError as err:
            self.defects.append(f"file {name} is not UTF-8 text (byte {err.start})")
            return None
        stripped = (line.strip() for line in text.splitlines())
        return [line for line in stripped if line and not (comments and line.startswith("#"))]

    def has(self, name: str) -> bool:
        """Whether there is anything with this name, a dangling link too."""
        return os.path.lexists(self.path / name)

    def script(self, name: str) -> None:
        """Note what keeps a script from being run."""
        path = self.path / name
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            link = " (a link that leads nowhere)" if path.is_symlink() else ""
            self.defects.append(f"script {name} is missing{link}")
        except OSError as err:
            self.defects.append(f"script {name} cannot be accessed: {err.strerror}")
        else:
            if not stat.S_ISREG(mode):
                self.defects.append(f"script {name} is not a regular file")
            elif not mode & stat.S_IXUSR:
                self.defects.append(
                    f"script {name} is not executable for its owner"
                    f" (mode {stat.S_IMODE(mode):04o}): chmod u+x {path}"
                )


def read_files(path: Path) -> _Reading:
    """All facts and all defects of one directory; never raises."""
    reading = _Reading(path)
    if not OS_NAME.fullmatch(path.name):
        reading.defects.append(
            f"its name {path.name!r} has a plus sign or a character that no OS name may have"
        )
    if not os.path.isdir(path):
        reading.defects.append("it is a link that leads to no directory")
        return reading
    _read_api(reading)
    newest = max(reading.api_versions, default=0)
    for name in (IMPORT, EXPORT, RENAME):
        if reading.has(name):
            reading.script(name)
    if reading.has(IMPORT) != reading.has(EXPORT):
        here, missing = (IMPORT, EXPORT) if reading.has(IMPORT) else (EXPORT, IMPORT)
        reading.defects.append(
            f"script {missing} is missing, and {here} is there: one cannot read what the other"
            " writes; without both, disks are copied as they are"
        )
    _read_create(reading)
    if newest >= PARAMETERS_FROM:
        reading.script(VERIFY)
        _read_parameters(reading)
    if newest >= VARIANTS_FROM and reading.has(VARIANTS_FILE):
        _read_variants(reading)
    if reading.has(HYPERVISORS_FILE):
        _read_hypervisors(reading)
    return reading


def _read_api(reading: _Reading) -> None:
    lines = reading.lines(API_FILE, comments=False)
    if lines is None:
        return
    if not lines:
        reading.defects.append(f"file {API_FILE} is empty: write one version a line")
        return
    for line in lines:
        if not (line.isascii() and line.isdigit() and len(line) < 10):
            reading.defects.append(f"file {API_FILE}: {line[:40]!r} is not a version number")
            return
    reading.api_versions = tuple(int(line) for line in lines)
    if not set(reading.api_versions) & set(OS_API_VERSIONS):
        reading.defects.append(
            f"no common API version: it has {_numbers(reading.api_versions)},"
            f" this node knows {_numbers(OS_API_VERSIONS)}"
        )


def _read_create(reading: _Reading) -> None:
    trusted, untrusted = reading.has(CREATE), reading.has(CREATE_UNTRUSTED)
    if not trusted and not untrusted:
        reading.defects.append(f"neither script {CREATE} nor {CREATE_UNTRUSTED} is there")
        return
    if trusted:
        reading.script(CREATE)
    if untrusted:
        reading.script(CREATE_UNTRUSTED)
    reading.trusted = trusted


def _read_variants(reading: _Reading) -> None:
    lines = reading.lines(VARIANTS_FILE)
    if lines is None:
        return
    for name in lines:
        if not OS_NAME.fullmatch(name):
            reading.defects.append(f"file {VARIANTS_FILE}: {name[:40]!r} cannot be a variant")
            return
    twice = _find_duplicate(lines)
    if twice:
        reading.defects.append(f"file {VARIANTS_FILE} has '{twice}' twice")
    reading.variants = tuple(dict.fromkeys(lines))


def _read_hypervisors(reading: _Reading) -> None:
    """The hypervisors that it is made for; names that we do not know may be those of others."""
    lines = reading.lines(HYPERVISORS_FILE)
    if lines is None:
        return
    if not lines:
        reading.defects.append(f"file {HYPERVISORS_FILE} is empty: write one name a line")
    reading.hypervisors = tuple(dict.fromkeys(lines))


def _read_parameters(reading: _Reading) -> None:
    lines = reading.lines(PARAMETERS_FILE)
    if lines is None:
        return
    found: list[tuple[str, str]] = []
    for line in lines:
        name, *rest = line.split(None, 1)
        if not _PARAMETER.fullmatch(name):
            reading.defects.append(
                f"file {PARAMETERS_FILE}: {name[:40]!r} cannot become an environment variable"
            )
            return
        found.append((name, rest[0] if rest else ""))
    twice = _find_duplicate([variable_of(name) for name, _ in found])
    if twice:
        reading.defects.append(f"file {PARAMETERS_FILE}: two parameters become {twice}")
    reading.parameters = tuple(found)


def variable_of(parameter: str) -> str:
    """Environment variable that carries a parameter: ``disk-label`` becomes ``OSP_DISK_LABEL``."""
    return f"OSP_{parameter.upper().replace('-', '_')}"


def _find_duplicate(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _numbers(versions: Iterable[int]) -> str:
    return ", ".join(str(version) for version in versions)
