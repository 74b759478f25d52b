"""Volume group, and room for configuration, jobs and logs."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti.base import units
from ganeti.base.text import join_names
from ganeti.doctor.facts import Storage, Wish
from ganeti.doctor.findings import Finding, fail, ok, warn

_MIB = 1024 * 1024
#: Less than this is full: the next jobs and logs do not fit.
_FULL = 32 * _MIB
#: From here on it is time to make room.
_LITTLE = 512 * _MIB
_FEW_FILES = 1000


def check(facts: Storage, wish: Wish) -> Iterator[Finding]:
    yield from volume_group(facts, wish)
    yield from space(facts)


def volume_group(facts: Storage, wish: Wish) -> Iterator[Finding]:
    """A volume group that this server does not have."""
    name = wish.volume_group
    if not name:
        return
    if facts.groups is None:
        yield fail(
            "lvm",
            f"the volume groups of this node cannot be listed ({facts.problem})",
            "apt-get install lvm2",
        )
    elif name not in facts.groups:
        yield fail(
            "lvm",
            f"there is no volume group '{name}' on this node; it has"
            f" {join_names(facts.groups) or 'none'}",
            f"ganeti-lvmstrap create --vg-name {name} --devices DISK",
        )
    else:
        yield ok("lvm", f"{name}, {_size(facts.groups[name])} free")


def space(facts: Storage) -> Iterator[Finding]:
    """File systems that are full, nearly full, or cannot be written."""
    good = []
    for each in facts.spaces:
        remedy = f"make room there; du -x -h -d 1 {each.path} shows what is large"
        too_few_inodes = each.files is not None and each.files < _FEW_FILES
        if each.read_only:
            yield fail(
                "space", f"{each.path} is mounted read-only", f"mount -o remount,rw {each.path}"
            )
        elif each.free < _FULL or each.files == 0:
            left = "no inode is free" if each.files == 0 else f"{_size(each.free)} free"
            yield fail("space", f"{each.path} is full: {left}", remedy)
        elif each.free < _LITTLE or too_few_inodes:
            left = f"{each.files} inodes" if too_few_inodes else _size(each.free)
            yield warn("space", f"{each.path} has only {left} free", remedy)
        else:
            good.append(f"{each.path} {_size(each.free)}")
    if good:
        yield ok("space", f"free: {', '.join(good)}")


def _size(count: int) -> str:
    return units.format_size(count // _MIB)
