"""Finding, reading and judging OS definitions.

A definition is a directory on the search path; the first directory that has the name wins. The
rules for its files are those of the OS interface, versions 10, 15 and 20. Reads files only; blocks
as long as the file system does.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ganeti import errors
from ganeti.base.text import join_names, nearest
from ganeti.constants import OS_API_VERSIONS
from ganeti.errors import ErrorCode
from ganeti.rpc.objects import OsInfo

_log = logging.getLogger(__name__)

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

_NAME = re.compile(r"[^\s/+.\x00-\x1f\x7f][^\s/+\x00-\x1f\x7f]*")
_PARAMETER = re.compile(r"[!-<>-~]+")


@dataclass(frozen=True)
class OsDefinition:
    """A usable OS definition, with the variant that was asked for.

    ``api_versions`` is what the definition says; ``api_version`` the highest one both sides know.
    ``variant`` is empty for a definition without variants.
    """

    name: str
    path: Path
    api_versions: tuple[int, ...]
    api_version: int
    variants: tuple[str, ...] = ()
    variant: str = ""
    #: (name, description)
    parameters: tuple[tuple[str, str], ...] = ()
    #: the only ones that it is made for; empty: all
    hypervisors: tuple[str, ...] = ()
    #: False when only the script for a helper machine exists
    trusted: bool = True

    @property
    def full_name(self) -> str:
        """Name with the variant, ``debian+minimal``."""
        return f"{self.name}{SEPARATOR}{self.variant}" if self.variant else self.name

    def script(self, action: str) -> Path:
        """Full path of a script (``create``, ``rename``, ...)."""
        return self.path / action

    def check_variant_named(self, full_name: str) -> None:
        """Refuse a name without a variant when there are several to choose from.

        Raises:
            OpPrereqError: (INVAL) the error lists the complete names.
        """
        if self.variants and not split_name(full_name)[1]:
            names = [f"{self.name}{SEPARATOR}{variant}" for variant in self.variants]
            raise errors.OpPrereqError(
                f"OS '{self.name}' has variants; choose one: {join_names(names, 30)}",
                ErrorCode.INVAL,
            )

    def check_hypervisor(self, hypervisor: str) -> None:
        """Refuse a hypervisor that the definition does not list; without a list all are good.

        Raises:
            OpPrereqError: (INVAL) it is not listed.
        """
        if self.hypervisors and hypervisor not in self.hypervisors:
            raise errors.OpPrereqError(
                f"OS '{self.name}' does not support hypervisor {hypervisor}, only"
                f" {join_names(self.hypervisors)} ({self.path / HYPERVISORS_FILE})",
                ErrorCode.INVAL,
            )

    def check_parameters(self, values: Mapping[str, object]) -> None:
        """Refuse names that the definition does not list; older definitions list none.

        Raises:
            OpPrereqError: (INVAL) an unknown name; values are never shown.
        """
        known = [name for name, _ in self.parameters]
        for name in values:
            if name not in known:
                raise errors.OpPrereqError(
                    f"OS '{self.name}' has no parameter '{name}'{nearest(name, known)};"
                    f" it has {join_names(known, 30) or 'none'}",
                    ErrorCode.INVAL,
                )


@dataclass
class _Reading:
    """What was found in one directory, and everything that is wrong with it."""

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
            self.defects.append(f"script {name} cannot be looked at: {err.strerror}")
        else:
            if not stat.S_ISREG(mode):
                self.defects.append(f"script {name} is not a regular file")
            elif not mode & stat.S_IXUSR:
                self.defects.append(
                    f"script {name} is not executable for its owner"
                    f" (mode {stat.S_IMODE(mode):04o}): chmod u+x {path}"
                )


def split_name(full: str) -> tuple[str, str]:
    """``(name, variant)`` of ``name+variant``; the variant is empty without a plus sign.

    Raises:
        OpPrereqError: (INVAL) a name that no definition or variant can have.
    """
    name, plus, variant = full.partition(SEPARATOR)
    if not _NAME.fullmatch(name) or (plus and not _NAME.fullmatch(variant)):
        raise errors.OpPrereqError(
            f"{full!r} is not a name of an OS: expected <os> or <os>+<variant>", ErrorCode.INVAL
        )
    return name, variant


def find(name: str, search_path: Iterable[Path]) -> Path | None:
    """Directory of a definition (name without variant): the first on the search path."""
    for directory in search_path:
        path = directory / name
        if os.path.isdir(path):
            return path
    return None


def load(
    full_name: str, search_path: Sequence[Path], *, force_variant: bool = False
) -> OsDefinition:
    """A definition that can be used, by its name with or without variant.

    Without a variant the first one of the definition is taken. ``force_variant`` lets a variant
    pass that the definition does not list (its scripts then have to know it).

    Raises:
        OpPrereqError: not found (NOENT), with defects (STATE), or no such variant (INVAL).
    """
    name, variant = split_name(full_name)
    path = find(name, search_path)
    if path is None:
        raise errors.OpPrereqError(
            f"OS '{name}' is not installed on this node: no directory of that name in"
            f" {join_names(str(entry) for entry in search_path)}",
            ErrorCode.NOENT,
        )
    reading = _read(path)
    if reading.defects:
        raise errors.OpPrereqError(
            f"OS '{name}' in {path} cannot be used: {'; '.join(reading.defects)}", ErrorCode.STATE
        )
    found = OsDefinition(
        name=name,
        path=path,
        api_versions=reading.api_versions,
        api_version=max(set(reading.api_versions) & set(OS_API_VERSIONS)),
        variants=reading.variants,
        parameters=reading.parameters,
        hypervisors=reading.hypervisors,
        trusted=reading.trusted,
    )
    return replace(found, variant=_choose_variant(found, variant, force=force_variant))


def diagnose(search_path: Iterable[Path]) -> list[OsInfo]:
    """Every definition in every directory of the search path, in its order, then by name.

    A name that occurs again further on is listed again; only the first is ever used. Hidden names
    and plain files are skipped. ``diagnose`` of an entry is empty when it is valid.
    """
    return [_info(directory / name) for directory in search_path for name in _names_in(directory)]


def _names_in(directory: Path) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as err:
        _log.warning("cannot list OS definitions in %s: %s", directory, err.strerror)
        return []
    return [
        name
        for name in names
        if not name.startswith(".")
        and (os.path.isdir(directory / name) or not os.path.exists(directory / name))
    ]


def _info(path: Path) -> OsInfo:
    reading = _read(path)
    return OsInfo(
        name=path.name,
        path=str(path),
        valid=not reading.defects,
        diagnose="; ".join(reading.defects),
        variants=list(reading.variants),
        parameters=list(reading.parameters),
        api_versions=list(reading.api_versions),
        hypervisors=list(reading.hypervisors),
        trusted=reading.trusted,
    )


def _choose_variant(found: OsDefinition, variant: str, *, force: bool) -> str:
    if not variant:
        return found.variants[0] if found.variants else ""
    if variant in found.variants or force:
        return variant
    if not found.variants:
        raise errors.OpPrereqError(
            f"OS '{found.name}' has no variants, so '{variant}' cannot be one", ErrorCode.INVAL
        )
    raise errors.OpPrereqError(
        f"OS '{found.name}' has no variant '{variant}'{nearest(variant, found.variants)};"
        f" it has {join_names(found.variants, 30)}",
        ErrorCode.INVAL,
    )


def _read(path: Path) -> _Reading:
    """All facts and all defects of one directory; never raises."""
    reading = _Reading(path)
    if not _NAME.fullmatch(path.name):
        reading.defects.append(
            f"its name {path.name!r} has a plus sign or a character that no OS name may have"
        )
    if not os.path.isdir(path):
        reading.defects.append("it is a link that leads to no directory")
        return reading
    _read_api(reading)
    newest = max(reading.api_versions, default=0)
    for name in (IMPORT, EXPORT, RENAME):
        reading.script(name)
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
        if not _NAME.fullmatch(name):
            reading.defects.append(f"file {VARIANTS_FILE}: {name[:40]!r} cannot be a variant")
            return
    twice = _twice(lines)
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
    twice = _twice([variable_of(name) for name, _ in found])
    if twice:
        reading.defects.append(f"file {PARAMETERS_FILE}: two parameters become {twice}")
    reading.parameters = tuple(found)


def variable_of(parameter: str) -> str:
    """Environment variable that carries a parameter: ``disk-label`` becomes ``OSP_DISK_LABEL``."""
    return f"OSP_{parameter.upper().replace('-', '_')}"


def _twice(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _numbers(versions: Iterable[int]) -> str:
    return ", ".join(str(version) for version in versions)
