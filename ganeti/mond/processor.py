"""The load of processors: of this node, and of each Xen domain.

Averages are those of the last minute. A load of 1 is one processor that was busy all the time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

from ganeti.hypervisor.xen import xl
from ganeti.mond.collector import Node, NothingMeasured, SamplingCollector

#: Seconds over which is averaged.
WINDOW = 60.0
#: Columns of /proc/stat in which a processor had nothing to do: idle, and waiting for disks.
_IDLE = (3, 4)
#: Columns to read; the use by guests is in these already.
_COLUMNS = 8

#: Name of a processor or domain -> how long it was busy, in seconds or ticks.
_Busy = Mapping[str, float]


class _Average(SamplingCollector):
    """Keeps measurements of busy time, and their moments."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._lock = threading.Lock()
        self._kept: deque[tuple[_Busy, _Busy]] = deque()
        self._moments: deque[float] = deque()

    def keep(self, busy: _Busy, passed: _Busy) -> None:
        """Remember how long each was busy, and how much time had passed for it."""
        now = self._node.clock.monotonic()
        with self._lock:
            self._kept.append((busy, passed))
            self._moments.append(now)
            while len(self._moments) > 2 and self._moments[1] <= now - WINDOW:
                self._kept.popleft()
                self._moments.popleft()

    def loads(self) -> dict[str, float]:
        """Load of each that was there at the begin and at the end of the time."""
        with self._lock:
            if len(self._kept) < 2:
                raise NothingMeasured("there are no two measurements yet")
            (busy0, passed0), (busy1, passed1) = self._kept[0], self._kept[-1]
        found = {}
        for name in busy1:
            if name in busy0 and (time := passed1[name] - passed0[name]) > 0:
                found[name] = max(0.0, busy1[name] - busy0[name]) / time
        return found


class CpuAverageLoad(_Average):
    """Load of each processor of this node, and their sum."""

    name = "cpu-avg-load"

    def sample(self) -> None:
        self.keep(*parse_stat((self._node.proc / "stat").read_text(encoding="ascii")))

    def data(self) -> object:
        cpus = list(self.loads().values())
        return {"cpu_number": len(cpus), "cpus": cpus, "cpu_total": sum(cpus)}


def parse_stat(text: str) -> tuple[dict[str, float], dict[str, float]]:
    """Ticks that each processor was busy, and those that have passed, in ``/proc/stat``. Pure."""
    busy: dict[str, float] = {}
    passed: dict[str, float] = {}
    for line in text.splitlines():
        name, *rest = line.split()
        if not (name.startswith("cpu") and name[3:].isdigit()):
            continue
        ticks = [int(word) for word in rest[:_COLUMNS]]
        passed[name] = float(sum(ticks))
        busy[name] = passed[name] - sum(ticks[index] for index in _IDLE if index < len(ticks))
    return busy, passed


class XenCpuAverageLoad(_Average):
    """Load of each domain."""

    name = "xen-cpu-avg-load"

    def is_useful(self) -> bool:
        return has_xen(self._node)

    def sample(self) -> None:
        busy = {domain.name: domain.time for domain in xl.parse_list(xl.run(["list"]))}
        self.keep(busy, dict.fromkeys(busy, self._node.clock.monotonic()))

    def data(self) -> object:
        return self.loads()


def has_xen(node: Node) -> bool:
    """Whether this node is the first domain of a Xen."""
    try:
        return "control_d" in (node.proc / "xen" / "capabilities").read_text(encoding="ascii")
    except OSError:
        return False
