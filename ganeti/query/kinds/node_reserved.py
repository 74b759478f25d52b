"""Fields of nodes for the capacity that forthcoming instances and disks hold."""

from __future__ import annotations

from collections.abc import Callable

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Column
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.query.field import Context, Field, Getter, Kind
from ganeti.storage import held

_FIELDS: tuple[tuple[str, str, FieldKind, str, Callable[[Config, str], int]], ...] = (
    (
        "reserved.memory",
        "ReservedMem",
        FieldKind.UNIT,
        "Memory that is free but reserved for forthcoming instances",
        lambda config, node: held.memory(config, node).amount,
    ),
    (
        "reserved.disk",
        "ReservedDisk",
        FieldKind.UNIT,
        "Disk space that is free but reserved for forthcoming disks",
        lambda config, node: held.all_space(config, node).amount,
    ),
    (
        "reserved.vcpus",
        "ReservedVCPUs",
        FieldKind.NUMBER,
        "Virtual processors of forthcoming instances",
        lambda config, node: held.vcpus(config, node).amount,
    ),
    (
        "reserved.spindles",
        "ReservedSpindles",
        FieldKind.NUMBER,
        "Spindles of forthcoming disks",
        lambda config, node: held.spindles(config, node).amount,
    ),
    (
        "reserved.count",
        "Reserved",
        FieldKind.NUMBER,
        "Number of forthcoming instances that are to run here",
        lambda config, node: len(held.instances(config, node)),
    ),
)


def add_fields(kind: Kind[Node]) -> None:
    """Give a kind the fields of what is reserved."""
    for name, title, value_kind, doc, amount in _FIELDS:
        kind.add(Field(name, title, value_kind, doc, _getter(amount)))


def _getter(amount: Callable[[Config, str], int]) -> Getter[Node]:
    def getter(ctx: Context) -> Column[Node]:
        config = ctx.config
        return lambda node: (0, amount(config, node.uuid))

    return getter
