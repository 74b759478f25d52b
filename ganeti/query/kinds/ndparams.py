"""Node parameters as fields, of nodes and of groups alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind

R = TypeVar("R")
#: Complete node parameters of a row.
ParamsOf = Callable[[Context], Callable[[R], Mapping[str, Any]]]

#: parameter -> title, kind, description
TABLE: Mapping[str, tuple[str, FieldKind, str]] = {
    "cpu_speed": ("ndp/cpu_speed", FieldKind.FLOAT, "Speed of the processors, 1.0 is normal"),
    "exclusive_storage": (
        "ExclusiveStorage",
        FieldKind.BOOL,
        "Whether instances do not share physical volumes",
    ),
    "fence_agent": (
        "FenceAgent",
        FieldKind.OTHER,
        "Program of fence-agents that switches the node off when it is silent",
    ),
    "oob_program": (
        "OutOfBandProgram",
        FieldKind.OTHER,
        "Program that switches the power of nodes",
    ),
    "ovs": ("OpenvSwitch", FieldKind.BOOL, "Whether nodes have an Open vSwitch"),
    "ovs_link": (
        "OpenvSwitchLink",
        FieldKind.OTHER,
        "Device that links the Open vSwitch to the network",
    ),
    "ovs_name": ("OpenvSwitchName", FieldKind.OTHER, "Name of the Open vSwitch"),
    "spindle_count": ("SpindleCount", FieldKind.NUMBER, "Number of disks that can work at once"),
    "watchdog": (
        "Watchdog",
        FieldKind.OTHER,
        "Watchdog device that resets the node when it has no lease of the master",
    ),
    "witness": (
        "Witness",
        FieldKind.BOOL,
        "Whether the node, as a master candidate, votes but does not become the master by itself",
    ),
    "ssh_port": ("ndp/ssh_port", FieldKind.NUMBER, "TCP port of the SSH server"),
}


def add_fields(kind: Kind[R], params_of: ParamsOf[R]) -> None:
    """Give a kind the field ``ndp/<name>`` for each node parameter."""
    for name, (title, value_kind, doc) in TABLE.items():
        kind.add(Field(f"ndp/{name}", title, value_kind, doc, _getter(params_of, name)))


def _getter(params_of: ParamsOf[R], name: str) -> Getter[R]:
    def getter(ctx: Context) -> Column[R]:
        params = params_of(ctx)

        def column(row: R) -> Cell:
            filled = params(row)
            return (0, filled[name]) if name in filled else UNAVAIL

        return column

    return getter
