"""harep: repair instances whose nodes are offline, as far as tags allow it."""

from __future__ import annotations

import dataclasses
import sys
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import text
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.htools import execute, hbal, luxi, program, repair, sources
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say, warn
from ganeti.htools.repair import Repair, Result
from ganeti.luxi.client import Client
from ganeti.model import repair_tags
from ganeti.model.job_status import JOBS_FINALIZED
from ganeti.model.repair_tags import Type
from ganeti.placement.board import Board
from ganeti.placement.choose import Wish, choose
from ganeti.placement.facts import Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.secondary import choose_secondary

# fmt: off
KNOWN = ("luxi", "job-delay", "reason", "dry-run")
# fmt: on

#: Seconds between the submission of a repair and its start, when nobody says otherwise.
_DELAY = 10.0


class RepairError(errors.GenericError):
    """A repair cannot be done or noted; the text says why."""


@dataclass(slots=True)
class State:
    """Facts and options; repairs change ``cluster`` so that the next ones see them."""

    client: Client
    cluster: Cluster
    offline: frozenset[str]
    values: Values
    now: float
    count: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def dry(self) -> bool:
        return "dry_run" in self.values

    def levels(self, item: Instance) -> list[tuple[str, ...]]:
        """Tags of an instance, its group and the cluster."""
        group = next((n.group for n in self.cluster.nodes if n.name == item.primary), "")
        tags = next((g.tags for g in self.cluster.groups if g.uuid == group), ())
        return [item.tags, tags, self.cluster.tags]

    def submit(self, opcodes: list[JsonObject], reason: str, key: str | None = None) -> int:
        common = execute.add_reason(self.values, "harep", reason)
        return self.client.submit_job([op | common for op in opcodes], key)

    def retag(self, item: Instance, old: Repair | None, new: Repair | None) -> None:
        """Put the tag of a repair in the place of another one."""
        where = {"kind": "instance", "name": item.name}
        opcodes: list[JsonObject] = []
        if new is not None:
            opcodes.append({"OP_ID": "OP_TAGS_SET", **where, "tags": [new.tag]})
        if old is not None and (new is None or old.tag != new.tag):
            opcodes.append({"OP_ID": "OP_TAGS_DEL", **where, "tags": [old.tag]})
        job = self.submit(opcodes, "note the state of a repair")
        if self.client.wait_until_ended(job) != "success":
            raise RepairError(
                f"job {job} did not change the tags of {item.name}; see: gnt-job info {job}"
            )


def run(values: Values) -> int:
    with execute.client_of(values) as client:
        rows = client.query("node", ["name", "offline"]).data
        state = State(
            client=client,
            cluster=luxi.read(values.get("luxi", ""), sources.KVM_NODE_MEMORY),
            offline=frozenset(name for (_, name), (_, offline) in rows if offline),
            values=values,
            now=SYSTEM.now(),
        )
        for item in state.cluster.instances:
            _treat(state, item)
    total = len(state.cluster.instances)
    found = ", ".join(f"{count} {word}" for word, count in state.count.items())
    say(f"{text.plural(total, 'instance')}: {found}" if total else "No instances.")
    return int(bool(state.count["not repaired"]))


def _treat(state: State, item: Instance) -> None:
    """Finish or begin the repair of one instance, and count it."""
    found = repair.repairs(item.tags)
    begun = None
    for one in repair.find_unfinished(found):
        if one.jobs:
            # What is known of the instance may be older than the end of the repair: look again
            # next time.
            _finish(state, item, one)
            return
        begun = one
    if any(one.result is Result.FAILURE for one in found):
        _say(item, "an earlier repair failed; remove its tag when you have mended it")
        state.count["failed"] += 1
        return
    kind = repair.find_needed_repair(item, state.offline)
    if kind is None:
        if begun is not None and not state.dry:
            state.retag(item, begun, None)
        state.count["healthy"] += 1
        return
    if any(repair_tags.is_suspended(tags, state.now) for tags in state.levels(item)):
        _say(item, f"needs {kind.word}, repairs are suspended")
        state.count["suspended"] += 1
        return
    most = repair_tags.find_allowed(state.levels(item))
    if most is None:
        state.count["not under repair"] += 1
    elif kind > most:
        _refuse(state, item, kind, most, found)
    else:
        _repair(state, item, kind, begun)


def _say(item: Instance, what: str) -> None:
    say(f"{item.name}: {what}")


def _finish(state: State, item: Instance, one: Repair) -> None:
    """Note how a repair ended, or that its jobs still run."""
    rows = state.client.query("job", ["id", "status"], _any("id", one.jobs)).data
    status: Mapping[int, str] = {number: word for (_, number), (_, word) in rows}
    ends = [status.get(job, "gone") for job in one.jobs]
    jobs = ", ".join(map(str, one.jobs))
    if any(word and word not in JOBS_FINALIZED for word in status.values()):
        _say(item, f"{one.kind.word} continues (job {jobs})")
        state.count["being repaired"] += 1
        return
    good = all(word == "success" for word in ends)
    result = Result.SUCCESS if good else Result.FAILURE
    _say(item, f"{one.kind.word} ended with {result} (job {jobs})")
    state.count["repaired" if good else "failed"] += 1
    if not state.dry:
        state.retag(item, one, dataclasses.replace(one, result=result, time=int(state.now)))


def _any(name: str, values: tuple[int, ...]) -> list[object]:
    return ["|", *(["=", name, value] for value in values)]


def _refuse(state: State, item: Instance, kind: Type, most: Type, found: list[Repair]) -> None:
    """Note once that tags do not allow what an instance needs."""
    _say(item, f"needs {kind.word}, its tags allow no more than {most.word}")
    state.count["not allowed"] += 1
    known = any(one.result is Result.ENOPERM and one.kind is kind for one in found)
    if known or state.dry:
        return
    state.retag(item, None, Repair(kind, str(uuid.uuid4()), int(state.now), (), Result.ENOPERM))


def _repair(state: State, item: Instance, kind: Type, begun: Repair | None) -> None:
    """Submit the jobs of a repair; its tag is there before them."""
    try:
        opcodes, what = _opcodes(state, item, kind)
    except RepairError as err:
        warn(f"{item.name}: needs {kind.word}, but {errors.text(err)}")
        state.count["not repaired"] += 1
        return
    state.count["begun"] += 1
    if state.dry:
        _say(item, f"would begin {kind.word}: {what}")
        return
    one = begun
    if one is None or one.kind is not kind:
        one = Repair(kind, str(uuid.uuid4()), int(state.now))
        state.retag(item, begun, one)
    delay = state.values.number("job_delay", _DELAY)
    if delay > 0:
        opcodes = [{"OP_ID": "OP_TEST_DELAY", "duration": delay}, *opcodes]
    # The key makes it one job, even when this program ends here and runs again.
    job = state.submit(opcodes, f"{kind.word} of {item.name}", f"harep-{one.uuid}")
    state.retag(item, one, dataclasses.replace(one, jobs=(job,)))
    _say(item, f"begins {kind.word}: {what} (job {job})")


def _opcodes(state: State, item: Instance, kind: Type) -> tuple[list[JsonObject], str]:
    """The opcodes of a repair, and what it does in words; raises :class:`RepairError`."""
    name: JsonObject = {"instance_name": item.name}
    if kind is Type.FAILOVER:
        return [{"OP_ID": "OP_INSTANCE_FAILOVER", **name}], f"starts on {item.secondary}"
    if kind is Type.FIX_STORAGE:
        node, reason = choose_secondary(state.cluster, item, frozenset({item.secondary}))
        if reason is not None:
            raise RepairError(reason.text)
        _take_place(state, item, (item.primary, node))
        change = {"mode": "replace_new_secondary", "disks": [], "remote_node": node}
        return [{"OP_ID": "OP_INSTANCE_REPLACE_DISKS", **name, **change}], f"mirrors to {node}"
    others = tuple(one for one in state.cluster.instances if one.name != item.name)
    group = next((n.group for n in state.cluster.nodes if n.name == item.primary), None)
    fresh = dataclasses.replace(item, primary="", secondary="", status="running")
    choice = choose(
        dataclasses.replace(state.cluster, instances=others), Wish(fresh, group, ignore_policy=True)
    )
    if not choice.nodes:
        raise RepairError(choice.reason)
    _take_place(state, item, (*choice.nodes, "")[:2])
    opcodes: list[JsonObject] = [
        {"OP_ID": "OP_INSTANCE_RECREATE_DISKS", **name, "nodes": list(choice.nodes)},
        {"OP_ID": "OP_INSTANCE_REINSTALL", **name},
    ]
    return opcodes, f"new disks on {' and '.join(choice.nodes)}, then installs"


def _take_place(state: State, item: Instance, nodes: tuple[str, ...]) -> None:
    """Count an instance where it will be, so that the next repair does not take the room."""
    group = next(
        g
        for g in state.cluster.groups
        for n in state.cluster.nodes
        if n.group == g.uuid and n.name == nodes[0]
    )
    board = Board(state.cluster, group)
    layout = Layout.from_board(board)
    first, second = (board.node_index.get(node, -1) for node in nodes)
    moved = layout.move(board.instance_index[item.name], first, second)
    state.cluster = hbal.apply_layout(state.cluster, moved)


PROGRAM = Program("harep", "Repair instances whose nodes are offline.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
