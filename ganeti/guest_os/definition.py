"""Finding, reading and judging OS definitions.

A definition is a directory on the search path; the first directory that has the name wins. The
rules for its files are those of the OS interface, versions 10, 15 and 20. Reads files only; blocks
as long as the file system does.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganeti import errors
from ganeti.base.text import join_names, nearest
from ganeti.constants import OS_API_VERSIONS, OS_IMAGE
from ganeti.errors import ErrorCode
from ganeti.guest_os.definition_files import HYPERVISORS_FILE, OS_NAME, SEPARATOR, read_files
from ganeti.rpc.objects import OsInfo

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OsDefinition:
    """A usable OS definition, with the variant that was requested.

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
    #: False when only the script for a helper guest exists
    trusted: bool = True

    @property
    def full_name(self) -> str:
        """Name with the variant, ``debian+minimal``."""
        return f"{self.name}{SEPARATOR}{self.variant}" if self.variant else self.name

    def script(self, action: str) -> Path:
        """Full path of a script (``create``, ``rename``, ...)."""
        return self.path / action

    def has_script(self, action: str) -> bool:
        """Whether it has a script; ``export``, ``import`` and ``rename`` may be missing."""
        return os.path.lexists(self.script(action))

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
            if name not in known and name != OS_IMAGE:
                raise errors.OpPrereqError(
                    f"OS '{self.name}' has no parameter '{name}'{nearest(name, known)};"
                    f" it has {join_names(known, 30) or 'none'}",
                    ErrorCode.INVAL,
                )


def split_name(full: str) -> tuple[str, str]:
    """``(name, variant)`` of ``name+variant``; the variant is empty without a plus sign.

    Raises:
        OpPrereqError: (INVAL) a name that no definition or variant can have.
    """
    name, plus, variant = full.partition(SEPARATOR)
    if not OS_NAME.fullmatch(name) or (plus and not OS_NAME.fullmatch(variant)):
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
    reading = read_files(path)
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
    reading = read_files(path)
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
