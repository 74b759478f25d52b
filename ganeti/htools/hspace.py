"""hspace: how many instances still fit, of one size and of smaller and smaller sizes."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from ganeti.htools import hbal, program, sources, tables, text
from ganeti.htools.options import UsageError, Values
from ganeti.htools.program import Program, say, warn
from ganeti.htools.simulate import size
from ganeti.placement import capacity
from ganeti.placement.board import Board
from ganeti.placement.capacity import Filling, Rules, model_instance
from ganeti.placement.facts import Cluster, Instance, Mirror, Policy, Spec
from ganeti.placement.layout import Layout
from ganeti.placement.score import score
from ganeti.placement.seats import Failure
from ganeti.placement.use import Use

# fmt: off
KNOWN = (
    "print-nodes", "text-data", "disk-template", "spindle-use", "simulate", "master", "luxi",
    "ialloc-src", "verbose", "quiet", "independent-groups", "accept-existing-errors", "offline",
    "no-capacity-checks", "machine-readable", "max-cpu", "max-length", "min-disk",
    "standard-alloc", "tiered-alloc", "save", "static-kvm-node-memory",
)
# fmt: on


def _spec(values: Values, key: str, usual: Spec) -> Spec:
    given = values.get(key)
    spindles = values.get("spindle_use")
    if given is None:
        memory, disk, cpus, turning = usual.memory, usual.disk, usual.cpus, usual.spindles
    else:
        parts = given.split(",")
        if len(parts) not in (3, 4):
            raise UsageError(
                f"--{key.replace('_', '-')}: '{given}' is not RAM,DISK,CPUS[,SPINDLES]"
            )
        try:
            memory, disk, cpus = size(parts[0]), size(parts[1]), int(parts[2])
            turning = int(parts[3]) if len(parts) == 4 else 1
        except ValueError as err:
            raise UsageError(f"--{key.replace('_', '-')}: '{given}': not a number") from err
    if spindles is not None:
        turning = int(spindles)
    return Spec(memory, cpus, disk, usual.disk_count, usual.nics, turning)


def _totals(layout: Layout) -> dict[str, float]:
    """Sums over all nodes."""
    board, used = layout.board, layout.used
    left = layout.memory_left
    free_disk = board.disk_room - used[Use.DISK]
    online = board.online
    available = left - layout.reserved
    own = board.own_spindle_room - used[Use.OWN_SPINDLES]
    return {
        "mem_free": left.sum(),
        "mem_reserved": layout.reserved.sum(),
        "mem_used": used[Use.MEMORY].sum(),
        "mem_overhead": (board.memory - board.memory_room_all).sum(),
        "disk_free": free_disk.sum(),
        "disk_used": (board.disk - free_disk).sum(),
        "cpus": (used[Use.CPU] + board.node_cpus).sum(),
        "spindles_free": own[board.exclusive].sum(),
        "most_mem": available[online].max(initial=0),
        "most_disk": free_disk[online].max(initial=0),
        "instances": layout.seats[0].sum(),
    }


class _Report:
    """The totals of all nodes, and the lines about a state of the cluster."""

    def __init__(self, layout: Layout) -> None:
        board = layout.board
        self.memory = int(board.memory.sum())
        self.disk = int(board.disk.sum())
        self.cpus = sum(node.cpus for node in board.nodes)
        self.vcpus = float(board.cpu_limit.sum())
        self.spindles = sum(node.spindles for node in board.nodes)

    def keys(self, prefix: str, layout: Layout) -> dict[str, str]:
        """The keys of one state."""
        now = _totals(layout)
        whole = {name: int(value) for name, value in now.items()}
        spindles = self.spindles - whole["spindles_free"]
        found = {
            "SCORE": f"{score(layout):.8f}",
            "INST_CNT": whole["instances"],
            "MEM_FREE": whole["mem_free"],
            "MEM_AVAIL": whole["mem_free"] - whole["mem_reserved"],
            "MEM_RESVD": whole["mem_reserved"],
            "MEM_INST": whole["mem_used"],
            "MEM_OVERHEAD": whole["mem_overhead"],
            "MEM_EFF": _share(now["mem_used"], self.memory),
            "DSK_FREE": whole["disk_free"],
            "DSK_AVAIL": whole["disk_free"],
            "DSK_RESVD": 0,
            "DSK_INST": whole["disk_used"],
            "DSK_EFF": _share(now["disk_used"], self.disk),
            "SPN_FREE": whole["spindles_free"],
            "SPN_INST": spindles,
            "SPN_EFF": _share(spindles, self.spindles),
            "CPU_INST": whole["cpus"],
            "CPU_EFF": _share(now["cpus"], self.vcpus),
            "MNODE_MEM_AVAIL": whole["most_mem"],
            "MNODE_DSK_AVAIL": whole["most_disk"],
        }
        return {f"{prefix}_{name}": str(value) for name, value in found.items()}


def _share(part: float, whole: float) -> str:
    return f"{part / whole if whole else 0:.8f}"


def _map(layout: Layout, done: Filling) -> str:
    names = tables.short_names([node.name for node in layout.board.nodes])
    width = len(f"new-{max(0, len(done.placed) - 1)}")
    nodes = layout.board.nodes
    lines = []
    for number, one in enumerate(done.placed):
        second = names[nodes[one.secondary].name] if one.secondary >= 0 else ""
        item = one.item
        lines.append(
            f" {f'new-{number}':<{width}} {names[nodes[one.primary].name]} {second} "
            f"{item.memory} {item.disk} {item.vcpus} "
        )
    return "\n".join(lines)


def run(values: Values) -> int:
    cluster = sources.read(values)
    layout = Layout.from_board(Board(cluster))
    hbal.report_inconsistencies(cluster, values)
    policy = _policy(cluster)
    template = values.get("disk_template") or (policy.templates[0] if policy.templates else "drbd")
    ratio = values.get("max_cpu")
    rules = Rules(
        survive="no_capacity_checks" not in values,
        accept_errors="accept_existing_errors" in values,
        independent="independent_groups" in values,
        policy=True,
        vcpu_ratio=None if ratio is None else float(ratio),
        disk_ratio=values.number("min_disk", 0.0),
        limit=int(values.get("max_length", -1)),
    )
    smallest, largest = policy.bounds[0] if policy.bounds else (policy.standard, policy.standard)
    tiered_spec = _spec(values, "tiered_alloc", largest)
    standard_spec = _spec(values, "standard_alloc", policy.standard)
    tiered_item = model_instance(tiered_spec, template)
    standard_item = model_instance(standard_spec, template)
    report = _Report(layout)
    keys = values.get("machine_readable", "no") == "yes"
    if keys:
        _print_start_keys(report, layout)
    else:
        _print_start(report, layout)
    if "print_nodes" in values:
        _print_nodes("Initial cluster", layout, values)
    _print_spec(keys, "Tiered (initial size)", "TSPEC_INI", tiered_spec, tiered_item)
    tiered = capacity.fill_tiered(layout, tiered_item, smallest, rules)
    _finish(values, cluster, layout, tiered, "Tiered", "tiered")
    if keys:
        _print_keys(report.keys("TRL", tiered.layout))
        _print_tiered_keys(report, layout, tiered, tiered_spec)
    else:
        say("Tiered allocation results:")
        if not tiered.sizes:
            say("  - no instances allocated")
        for item, count in tiered.sizes:
            say(
                f"  - {count:3d} instances of spec MEM {item.memory}, "
                f"DSK {_disk(item, tiered_spec)}, CPU {item.vcpus}"
            )
        _print_results(report, layout, tiered)
    _print_spec(keys, "Standard (fixed-size)", "SPEC", standard_spec, standard_item)
    standard = capacity.fill(layout, standard_item, rules)
    _finish(values, cluster, layout, standard, "Standard", "standard")
    if keys:
        _print_keys(report.keys("FIN", standard.layout))
        _print_final_keys(layout, standard)
    else:
        say("Normal (fixed-size) allocation results:")
        say(f"  - {len(standard.placed):3d} instances allocated")
        _print_results(report, layout, standard)
    return 0


def _policy(cluster: Cluster) -> Policy:
    return cluster.policy


def _disk(item: Instance, wanted: Spec) -> int:
    return item.disk if item.template != "diskless" else wanted.disk


def _finish(
    values: Values, cluster: Cluster, layout: Layout, done: Filling, title: str, suffix: str
) -> None:
    if values.verbosity > 1:
        warn(f"{title} allocation map\n{_map(layout, done)}")
    if "print_nodes" in values:
        _print_nodes(f"{title} allocation", done.layout, values)
    if "save" in values:
        path = f"{values.get('save')}.{suffix}"
        Path(path).write_text(text.dump(_add_placed(cluster, done)), encoding="utf-8")


def _add_placed(cluster: Cluster, done: Filling) -> Cluster:
    """The cluster with the instances that were placed, in the form of a text file."""
    nodes = done.layout.board.nodes
    made = hbal.apply_layout(cluster, done.layout)
    more = tuple(
        dataclasses.replace(
            one.item,
            name=f"new-{number}",
            primary=nodes[one.primary].name,
            secondary=nodes[one.secondary].name if one.secondary >= 0 else "",
        )
        for number, one in enumerate(done.placed)
    )
    return dataclasses.replace(made, instances=(*made.instances, *more))


def _print_nodes(title: str, layout: Layout, values: Values) -> None:
    warn(f"\n{title} status:\n{tables.nodes(layout, values.get('print_nodes'))}\n")


def _print_keys(keys: dict[str, str]) -> None:
    for name, value in keys.items():
        say(f"HTS_{name}={value}")


def _print_start_keys(report: _Report, layout: Layout) -> None:
    _print_keys(
        {
            "CLUSTER_MEM": str(report.memory),
            "CLUSTER_DSK": str(report.disk),
            "CLUSTER_CPU": str(report.cpus),
            "CLUSTER_VCPU": f"{report.vcpus:.0f}",
            "CLUSTER_SPN": str(report.spindles),
            "CLUSTER_NODES": str(len(layout.board.nodes)),
        }
        | report.keys("INI", layout)
    )


def _print_start(report: _Report, layout: Layout) -> None:
    count = int(layout.seats[0].sum())
    say(f"The cluster has {len(layout.board.nodes)} nodes and the following resources:")
    say(f"  MEM {report.memory}, DSK {report.disk}, CPU {report.cpus}, VCPU {report.vcpus:.0f}.")
    say(f"There are {count or 'no'} initial instances on the cluster.")


def _print_spec(keys: bool, title: str, prefix: str, spec: Spec, item: Instance) -> None:
    if not keys:
        say(f"{title} instance spec is:")
        say(
            f"  MEM {spec.memory}, DSK {spec.disk}, CPU {spec.cpus}, "
            f"using disk template '{item.template}'."
        )
        return
    _print_keys(
        {
            f"{prefix}_MEM": str(spec.memory),
            f"{prefix}_DSK": str(spec.disk),
            f"{prefix}_CPU": str(spec.cpus),
            f"{prefix}_SPN": str(spec.spindles),
            f"{prefix}_RQN": "2" if item.mirror is Mirror.SECONDARY else "1",
            f"{prefix}_DISK_TEMPLATE": item.template,
        }
    )


def _print_results(report: _Report, layout: Layout, done: Filling) -> None:
    after = _totals(done.layout)
    used = (
        ("memory usage efficiency: ", after["mem_used"], report.memory),
        ("  disk usage efficiency: ", after["disk_used"], report.disk),
        ("  vcpu usage efficiency: ", after["cpus"], report.vcpus),
    )
    say(f"  - most likely failure reason: {done.worst_failure}")
    say(f"  - initial cluster score: {score(layout):.8f}")
    say(f"  -   final cluster score: {score(done.layout):.8f}")
    for title, part, whole in used:
        say(f"  - {title}{100 * part / whole if whole else 0:5.2f}%")


def _print_tiered_keys(report: _Report, layout: Layout, done: Filling, spec: Spec) -> None:
    sizes = " ".join(
        f"{item.memory},{_disk(item, spec)},{item.vcpus},{item.spindle_use}={count}"
        for item, count in done.sizes
    )
    before, after = _totals(layout), _totals(done.layout)
    ratio = report.vcpus / report.cpus if report.cpus else 1.0
    spindles = [report.spindles - now["spindles_free"] for now in (before, after)]
    parts = {
        "USED": (before["cpus"], before["mem_used"], before["disk_used"], spindles[0]),
        "POOL": (
            after["cpus"] - before["cpus"],
            after["mem_used"] - before["mem_used"],
            after["disk_used"] - before["disk_used"],
            spindles[1] - spindles[0],
        ),
        "UNAV": (
            report.vcpus - after["cpus"],
            report.memory - after["mem_used"],
            report.disk - after["disk_used"],
            report.spindles - spindles[1],
        ),
    }
    keys = {"TSPEC": f"'{sizes}'"}
    for name, (cpus, memory, disk, turning) in parts.items():
        keys |= {
            f"KM_{name}_CPU": f"{cpus:.0f}",
            f"KM_{name}_NPU": str(cpus / ratio if ratio else 0.0),
            f"KM_{name}_MEM": f"{memory:.0f}",
            f"KM_{name}_DSK": f"{disk:.0f}",
            f"KM_{name}_SPN": f"{turning:.0f}",
        }
    _print_keys(keys)


def _print_final_keys(layout: Layout, done: Filling) -> None:
    before, after = int(layout.seats[0].sum()), int(done.layout.seats[0].sum())
    keys = {
        "ALLOC_USAGE": _share(before, after),
        "ALLOC_INSTANCES": str(len(done.placed)),
        "ALLOC_FAIL_REASON": done.worst_failure.upper(),
    }
    keys |= {f"ALLOC_{name.upper()}_CNT": str(done.failures[name]) for name in Failure}
    _print_keys(keys | {"OK": "1"})


PROGRAM = Program("hspace", "Show how many instances still fit.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
