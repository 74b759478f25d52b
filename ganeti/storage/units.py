"""Storage units of a node: volume groups, physical volumes, directories. Sizes in MiB."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ganeti import errors
from ganeti.storage import space
from ganeti.storage.interface import Environment
from ganeti.storage.lvm import repair, report, tool

MIB = 1024 * 1024

#: The operation that drops lost parts of a unit.
FIX_CONSISTENCY = "fix-consistency"

#: A unit by its fields.
Unit = Mapping[str, Any]

FIELDS: Final = ("allocatable", "free", "name", "size", "used")


def list_units(
    kind: str, args: Sequence[object], name: str | None, fields: Sequence[str], env: Environment
) -> list[list[object]]:
    """The units of one type: the asked fields of each. With ``name`` only that one, if any.

    ``args`` of a type of directories is ``[directories]``. Blocks for the LVM tools, or for a
    walk through the directories.

    Raises:
        StorageError: a type without units, an unknown field.
        BlockDeviceError: LVM cannot tell.
    """
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise errors.StorageError(
            f"storage units have no field {', '.join(unknown)}; they have {', '.join(FIELDS)}"
        )
    lister = _LISTERS.get(kind)
    if lister is None:
        raise errors.StorageError(
            f"storage of type '{kind}' has no units; {', '.join(sorted(_LISTERS))} have"
        )
    units = [unit for unit in lister(args, env) if name is None or unit["name"] == name]
    return [[unit[field] for field in fields] for unit in units]


def modify(kind: str, name: str, changes: Mapping[str, object]) -> None:
    """Change a unit: of type ``lvm-pv`` whether new volumes may be put there (``allocatable``).

    Raises:
        StorageError: something that cannot be changed, or no such unit.
        BlockDeviceError: LVM refuses.
    """
    if kind != "lvm-pv":
        raise errors.StorageError(f"nothing can be changed in storage of type '{kind}'")
    unknown = sorted(set(changes) - {"allocatable"})
    if unknown:
        raise errors.StorageError(
            f"of a physical volume only 'allocatable' can be changed, not {', '.join(unknown)}"
        )
    if not changes:
        return
    wanted = changes["allocatable"]
    if not isinstance(wanted, bool):
        raise errors.StorageError(f"'allocatable' is true or false, not {wanted!r}")
    found = next((item for item in report.physicals() if item.pv_name == name), None)
    if found is None:
        raise errors.StorageError(f"there is no physical volume {name!r} on this node")
    if found.is_allocatable is not wanted:
        tool.run(["pvchange", "--allocatable", "y" if wanted else "n", name])


def execute(kind: str, name: str, operation: str) -> None:
    """Run an operation on a unit: ``fix-consistency`` of a volume group (type ``lvm-vg``).

    Raises:
        StorageError: an operation that the type does not have, or no such unit.
        BlockDeviceError: it failed.
    """
    if (kind, operation) != ("lvm-vg", FIX_CONSISTENCY):
        raise errors.StorageError(
            f"storage of type '{kind}' has no operation '{operation}'; lvm-vg has {FIX_CONSISTENCY}"
        )
    if all(group.vg_name != name for group in report.groups()):
        raise errors.StorageError(f"there is no volume group {name!r} on this node")
    repair.fix_consistency(name)


def _groups(_args: Sequence[object], _env: Environment) -> list[Unit]:
    return [
        {
            "name": group.vg_name,
            "size": group.vg_size // MIB,
            "free": group.vg_free // MIB,
            "used": (group.vg_size - group.vg_free) // MIB,
            "allocatable": True,
        }
        for group in report.groups()
    ]


def _physicals(_args: Sequence[object], _env: Environment) -> list[Unit]:
    return [
        {
            "name": item.pv_name,
            "size": item.pv_size // MIB,
            "free": item.pv_free // MIB,
            "used": item.pv_used // MIB,
            "allocatable": item.is_allocatable,
        }
        for item in report.physicals()
    ]


def _directories(args: Sequence[Any], env: Environment) -> list[Unit]:
    found: list[Unit] = []
    for directory in args[0] if args else ():
        local = env.paths.local(str(directory))
        size, free = space.report("file", local)
        found.append(
            {
                "name": directory,
                "size": size,
                "free": free,
                "used": _measure_used(local),
                "allocatable": True,
            }
        )
    return found


def _measure_used(directory: str) -> int:
    """Measure the MiB that the files below a directory really take."""
    total = 0
    for parent, _directories, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:
                continue  # removed meanwhile
    return -(-total // MIB)


_LISTERS: Final[Mapping[str, Callable[[Sequence[object], Environment], list[Unit]]]] = {
    "file": _directories,
    "gluster": _directories,
    "lvm-pv": _physicals,
    "lvm-vg": _groups,
    "sharedfile": _directories,
}
#: Types of storage that have units which can be listed.
LISTED: Final = tuple(sorted(_LISTERS))
