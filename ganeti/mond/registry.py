"""All collectors. To add one, write a class in a module here and a line in this table."""

from __future__ import annotations

from ganeti.mond.collector import Collector, Node
from ganeti.mond.disks import DiskStatistics, Drbd, LogicalVolumes
from ganeti.mond.guests import XenInstances
from ganeti.mond.processor import CpuAverageLoad, XenCpuAverageLoad

COLLECTORS: tuple[type[Collector], ...] = (
    CpuAverageLoad,
    DiskStatistics,
    Drbd,
    XenInstances,
    LogicalVolumes,
    XenCpuAverageLoad,
)


def create(node: Node) -> dict[str, Collector]:
    """One of each, by name."""
    return {kind.name: kind(node) for kind in COLLECTORS}
