"""Control groups of the node (cgroups(7)): which there are, and what a container uses.

Each controller is in a hierarchy of version 1 of its own (or with a few others), or in the one of
version 2; a node may have some of both.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.mounts import Mount

#: Controllers that limits need on any node.
NEEDED = ("cpu", "cpuset", "devices", "memory")
#: Version 2 has them without a controller: one is done by BPF, one by the core.
_BUILT_IN = frozenset({"devices", "freezer"})
_MIB = 1 << 20


@dataclass(frozen=True)
class Layout:
    """The directories of the controllers."""

    #: controller -> mount of its hierarchy of version 1
    old: Mapping[str, Mount] = field(default_factory=dict)
    #: mount of version 2, and what it controls
    unified: Mount | None = None
    unified_controllers: frozenset[str] = frozenset()

    def version(self, controller: str) -> int | None:
        """1 or 2, None when the node does not have it."""
        if controller in self.old:
            return 1
        return 2 if controller in self.unified_controllers else None

    def find_missing(self, controllers: Iterable[str]) -> list[str]:
        """The controllers that the node does not have."""
        return [name for name in controllers if self.version(name) is None]


@dataclass(frozen=True)
class Usage:
    """The use and the limits of a container."""

    #: MiB, None: no limit
    limit: int | None
    #: MiB that cannot be returned without swapping
    anonymous: int
    cpu_seconds: float


def layout(mounts: Iterable[Mount], controllers: str) -> Layout:
    """By the list of mounts and ``cgroup.controllers`` of version 2; pure."""
    old: dict[str, Mount] = {}
    unified = None
    for mount in mounts:
        if mount.kind == "cgroup":
            for option in mount.options:
                old.setdefault(option, mount)
        elif mount.kind == "cgroup2" and unified is None:
            unified = mount
    known = frozenset(controllers.split()) | _BUILT_IN if unified else frozenset[str]()
    # Controllers that a hierarchy of version 1 has are not listed; devices would be twice.
    return Layout(old, unified, known - old.keys())


def find(mounts: Iterable[Mount]) -> Layout:
    """The control groups of this node."""
    known = list(mounts)
    unified = next((mount for mount in known if mount.kind == "cgroup2"), None)
    text = ""
    if unified is not None:
        with contextlib.suppress(OSError):
            text = files.read_text(Path(unified.point) / "cgroup.controllers")
    return layout(known, text)


def parse_groups(text: str) -> dict[str, str]:
    """``/proc/<pid>/cgroup``: controller (empty: version 2) -> group."""
    found = {}
    for line in text.splitlines():
        _, controllers, group = line.split(":", 2)
        for name in controllers.split(","):
            found[name] = group
    return found


def directory(known: Layout, groups: Mapping[str, str], controller: str) -> Path | None:
    """Return the directory of a process's group for one controller; None without one."""
    version = known.version(controller)
    mount = known.old[controller] if version == 1 else known.unified
    group = groups.get(controller if version == 1 else "")
    if version is None or mount is None or group is None:
        return None
    path = PurePosixPath(group)
    if path.is_relative_to(mount.root):
        path = path.relative_to(mount.root)
    return Path(mount.point) / str(path).lstrip("/")


def usage(known: Layout, pid: int) -> Usage | None:
    """The use of the group of a process, None when the process ended.

    Raises:
        HypervisorError: a file of the kernel has an unknown form.
    """
    try:
        groups = parse_groups(files.read_text(Path(f"/proc/{pid}/cgroup")))
        memory = directory(known, groups, "memory")
        return Usage(
            limit=_limit(memory, known.version("memory")),
            anonymous=_read_anonymous(memory, known.version("memory")),
            cpu_seconds=_cpu_seconds(known, groups),
        )
    except (FileNotFoundError, ProcessLookupError):
        return None
    except (OSError, ValueError) as err:
        raise errors.HypervisorError(f"control groups of process {pid}: {err}") from err


def _limit(memory: Path | None, version: int | None) -> int | None:
    if memory is None:
        return None
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    text = files.read_text(memory / name).strip()
    # Version 1 says "none" as a number beyond any memory.
    if text == "max" or int(text) >= 1 << 62:
        return None
    return int(text) // _MIB


def _read_anonymous(memory: Path | None, version: int | None) -> int:
    if memory is None:
        return 0
    facts = dict(_pairs(files.read_text(memory / "memory.stat")))
    return facts.get("total_rss" if version == 1 else "anon", 0) // _MIB


def _cpu_seconds(known: Layout, groups: Mapping[str, str]) -> float:
    old = directory(known, groups, "cpuacct") if known.version("cpuacct") == 1 else None
    if old is not None:
        return int(files.read_text(old / "cpuacct.usage")) / 1e9
    new = directory(known, groups, "cpu")
    if new is None:
        return 0.0
    return dict(_pairs(files.read_text(new / "cpu.stat"))).get("usage_usec", 0) / 1e6


def _pairs(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        yield key, int(value)


def remove_empty(known: Layout, name: str) -> None:
    """Remove groups of a container whose monitor was killed and so could not; no error.

    The kernel keeps those in which a process is.
    """
    hierarchies = [*known.old.values(), *([known.unified] if known.unified else [])]
    for point in {mount.point for mount in hierarchies}:
        for kind in ("payload", "monitor"):
            for group, _, _ in os.walk(f"{point}/lxc.{kind}.{name}", topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(group)


def has_file(known: Layout, controller: str, name: str) -> bool:
    """Whether groups have a file; the topmost of version 2 has none of those that limit."""
    version = known.version(controller)
    if version == 1:
        return (Path(known.old[controller].point) / name).exists()
    if version == 2 and known.unified is not None:
        top = Path(known.unified.point)
        return (top / name).exists() or any(top.glob(f"*/{name}"))
    return False
