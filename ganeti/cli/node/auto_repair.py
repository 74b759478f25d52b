"""gnt-node auto-repair-storage: a lost disk is removed from its volume group automatically.

Run it from cron on the master. It acts only when a state that was known to be good turns bad on
exactly one node; anything else is left to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganeti import errors, paths
from ganeti.base import files, jsonio
from ganeti.base.record import Record
from ganeti.cli import jobs
from ganeti.cli import options as o
from ganeti.cli.command import Call
from ganeti.cli.programs import NODE

#: Name in LVM for a physical volume that it cannot find.
_LOST = "[unknown]"
#: File below the data directory with the state of the last run.
_STATE = "lvm-self-repair.json"


class Decision(Record):
    """Result of a run: the node to repair, if any, and the state to record for the next run."""

    text: str
    repair: str | None = None
    #: None: leave what is on record
    record: bool | None = None


def decide(last: bool | None, lost: Mapping[str, bool | None]) -> Decision:
    """Whether to repair. Pure.

    ``last`` is whether everything was consistent at the last run (None: there was none); ``lost``
    whether each node lost a disk (None: it did not say).
    """
    silent = sorted(node for node, state in lost.items() if state is None)
    broken = sorted(node for node, state in lost.items() if state)
    if silent:
        return Decision(f"nothing is done: no answer from {', '.join(silent)}")
    if not broken:
        return Decision("all volume groups are consistent", record=True)
    names = ", ".join(broken)
    if not last:
        return Decision(f"nothing is done: {names} was not known to be consistent", record=False)
    if len(broken) > 1:
        return Decision(f"nothing is done: more than one node lost a disk ({names})")
    return Decision(f"node {names} lost a disk", repair=broken[0], record=False)


@NODE.command("auto-repair-storage", options=(o.PRIORITY,))
def auto_repair_storage(call: Call) -> None:
    """Remove a lost physical volume from its volume group, if nothing else is wrong. For cron.

    It acts only if the last run found all volume groups complete, and now exactly one node has
    lost a physical volume. It refuses while a mirrored disk has its last good copy there.
    Volumes that were not mirrored are lost; gnt-instance replace-disks repairs mirrored ones.
    """
    state = paths.current().data / _STATE
    decision = decide(_read_state(state), _find_lost_disks(call))
    if decision.record is not None:
        # First, so that a repair that fails is not tried again and again.
        text = jsonio.dumps({"consistent": decision.record})
        files.write_atomic(state, f"{text}\n", mode=0o640)
    print(f"lvm-self-repair: {decision.text}")
    if decision.repair is None:
        return
    group = str(call.client.query_cluster_info()["volume_group_name"])
    print(f"lvm-self-repair: node={decision.repair} vg={group} action=vgreduce")
    jobs.run_op(
        call,
        "OP_REPAIR_NODE_STORAGE",
        node_name=decision.repair,
        storage_type="lvm-vg",
        name=group,
    )
    print(f"lvm-self-repair: node={decision.repair} vg={group} result=consistent")


def _find_lost_disks(call: Call) -> dict[str, bool | None]:
    """Whether each node that should have a volume group lost a physical volume."""
    nodes = call.client.query_nodes([], ["name", "offline", "vm_capable"])
    found: dict[str, bool | None] = {
        name: None for name, offline, capable in nodes if capable and not offline
    }
    rows: list[list[Any]] = jobs.run_op(
        call,
        "OP_NODE_QUERY_STORAGE",
        output_fields=["node", "name"],
        nodes=[],
        storage_type="lvm-pv",
    )
    for node, name in rows:
        found[node] = bool(found.get(node)) or name == _LOST
    return found


def _read_state(state: Path) -> bool | None:
    try:
        return bool(jsonio.loads(files.read_text(state))["consistent"])
    except FileNotFoundError:
        return None
    except (errors.ParseError, KeyError, TypeError):
        return None  # unreadable is as good as unknown: nothing is repaired
