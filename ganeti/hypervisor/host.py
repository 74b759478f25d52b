"""Memory and processors of a Linux node, read from /proc and /sys.

Shared by the drivers whose guests are processes of the node.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.interface import NodeInfo

_CPU = re.compile(r"cpu[0-9]+")
_NODE = re.compile(r"node[0-9]+")
_SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Memory:
    """MiB."""

    total: int
    #: what programs can still get without swapping
    available: int


@dataclass(frozen=True)
class Processors:
    """Processors that are on line, NUMA nodes and sockets; never less than one of each."""

    cpus: int
    nodes: int
    sockets: int


def memory(meminfo: Path = Path("/proc/meminfo")) -> Memory:
    """Memory of the node.

    Raises:
        HypervisorError: the file cannot be read or a line is missing.
    """
    try:
        return parse_meminfo(meminfo.read_text(encoding="ascii"))
    except OSError as err:
        raise errors.HypervisorError(f"cannot read {meminfo}: {err.strerror}") from err


def parse_meminfo(text: str) -> Memory:
    """Memory by the text of /proc/meminfo; kernels before 3.14 lack ``MemAvailable``."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            values[key] = int(words[0])
    if "MemTotal" not in values:
        raise errors.HypervisorError("/proc/meminfo has no line MemTotal; is /proc mounted?")
    available = values.get("MemAvailable")
    if available is None:
        available = sum(values.get(key, 0) for key in ("MemFree", "Buffers", "Cached"))
    return Memory(values["MemTotal"] // 1024, available // 1024)


def processors(system: Path = _SYSTEM) -> Processors:
    """Processors of the node; a file that /sys does not have counts as one."""
    packages: set[str] = set()
    for entry in _entries(system / "cpu", _CPU):
        try:
            packages.add((entry / "topology/physical_package_id").read_text().strip())
        except OSError:
            # A processor that is off line has no topology.
            continue
    return Processors(
        cpus=os.cpu_count() or 1,
        nodes=len(_entries(system / "node", _NODE)) or 1,
        sockets=len(packages) or 1,
    )


def node_info(*, hv_version: tuple[int, ...] | None = None) -> NodeInfo:
    """Resources of a node whose guests are not told from its other processes.

    Raises:
        HypervisorError: /proc cannot be read.
    """
    known, cpus = memory(), processors()
    return NodeInfo(
        memory_total=known.total,
        memory_free=known.available,
        memory_dom0=known.total - known.available,
        cpu_total=cpus.cpus,
        cpu_nodes=cpus.nodes,
        cpu_sockets=cpus.sockets,
        hv_version=hv_version,
    )


def describe_missing_programs(programs: Sequence[str]) -> str | None:
    """A text about programs that are missing on the node, None when none is."""
    path = process.search_path()
    missing = [name for name in programs if shutil.which(name, path=path) is None]
    return f"not found on this node: {', '.join(missing)}" if missing else None


def _entries(directory: Path, pattern: re.Pattern[str]) -> list[Path]:
    try:
        return [entry for entry in directory.iterdir() if pattern.fullmatch(entry.name)]
    except OSError:
        return []


def check_instance_name(name: str) -> None:
    """Refuse a name that cannot be a file name; names become parts of paths.

    Raises:
        HypervisorError: empty, too long, a leading dot or a slash.
    """
    if not name or len(name) > 255 or name.startswith(".") or "/" in name or "\0" in name:
        raise errors.HypervisorError(
            f"{name[:60]!r} cannot be the name of an instance: it must be a host name"
        )
