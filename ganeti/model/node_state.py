"""Resources that administrators set aside on nodes, by hypervisor and volume group. Pure.

A node reports what it has. Places are chosen with less: no more than ``..._total``, and what the
node keeps for itself, even while it does not use it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ganeti.base.json_types import JsonObject
from ganeti.model.params import fill

#: Keys of the state of a hypervisor on a node: memory in MiB, processors.
HV_STATE_KEYS = ("cpu_node", "cpu_total", "mem_hv", "mem_node", "mem_total")
#: Keys of the state of a volume group, in MiB.
DISK_STATE_KEYS = ("disk_overhead", "disk_reserved", "disk_total")
#: The disk template under which states of volume groups are kept, also for mirrored volumes.
VOLUMES = "plain"
#: Ganeti records this where nobody said how many processors there are.
_NOT_SAID = 1


def fill_states(*levels: Mapping[str, Mapping[str, object]] | None) -> JsonObject:
    """States by name, from the most general to the most special level; single keys win."""
    names = dict.fromkeys(name for level in levels for name in level or ())
    return {name: fill(*((level or {}).get(name, {}) for level in levels)) for name in names}


def limit_resources(reported: Mapping[str, object], state: Mapping[str, int]) -> JsonObject:
    """Resources of a node, by their names on the wire, within the state of its hypervisor.

    A value that the node did not report stays missing.
    """
    result = dict(reported)
    total, own, free = (_count(reported, f"memory_{part}") for part in ("total", "dom0", "free"))
    above = max(0, total - (state.get("mem_total") or total))
    kept = state.get("mem_node", 0) + state.get("mem_hv", 0)
    more = max(0, kept - own - _count(reported, "memory_hv"))
    changed = {
        "memory_total": total - above,
        "memory_dom0": own + more,
        "memory_free": max(0, free - above - more),
        "cpu_dom0": max(_count(reported, "cpu_dom0"), state.get("cpu_node", 0)),
    }
    if state.get("cpu_total", 0) > _NOT_SAID:
        changed["cpu_total"] = min(_count(reported, "cpu_total"), state["cpu_total"])
    result.update({key: value for key, value in changed.items() if key in reported})
    return result


def limit_room(room: tuple[int, int], state: Mapping[str, int]) -> tuple[int, int]:
    """(size, free) of a volume group in MiB within its state."""
    size, free = room
    above = max(0, size - (state.get("disk_total") or size))
    kept = state.get("disk_reserved", 0) + state.get("disk_overhead", 0)
    return size - above, max(0, free - above - kept)


def _count(reported: Mapping[str, object], name: str) -> int:
    value = reported.get(name)
    return int(value) if isinstance(value, int | float) else 0
