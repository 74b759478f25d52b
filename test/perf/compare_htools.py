"""Compare our programs with Debian's on the same text files, and print a table.

Usage: compare_htools.py [NUMBER...]; numbers choose clusters. Debian's program is found below
/usr/lib/ganeti, or named by HTOOLS; LIMIT is what one run may take in seconds. The table has
processor time of one process, which the load of the machine does not change. Exit code 1 when a
deviation is for the worse. What Debian's program did not answer within the limit, or ended with an
error, is "not compared": neither well nor worse.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from clusters import cluster

from ganeti.htools import text
from ganeti.placement.facts import Cluster

#: seed, nodes, instances, arguments, most moves, most allocations (-1: to the end). Debian's
#: programs need minutes for more moves and allocations of the large ones.
CASES: list[tuple[int, int, int, dict[str, Any], int, int]] = [
    (1, 5, 50, {}, -1, -1),
    (2, 8, 90, {"tags": True}, -1, -1),
    (3, 10, 100, {"templates": ("ext",)}, -1, 40),
    (4, 12, 110, {"templates": ("plain",)}, -1, 40),
    (5, 12, 140, {"reserved": 0.2}, -1, 40),
    (6, 16, 200, {"tags": True, "reserved": 0.1, "spare": 2048}, 20, 20),
    (7, 20, 220, {"templates": ("drbd", "plain", "ext"), "down": 0.2}, 20, 20),
    (8, 40, 1000, {"memory": 131072}, 20, 10),
    (9, 80, 2000, {"memory": 131072, "reserved": 0.1}, 4, 5),
    (10, 150, 5000, {"memory": 131072, "templates": ("ext",)}, 4, 2),
    (11, 16, 200, {"tags": True, "spare": 2048}, -1, 1),
    (12, 40, 1000, {"memory": 131072}, -1, 1),
]
#: What hspace fills from nothing: nodes, disk template.
EMPTY = [(5, "drbd"), (20, "ext"), (80, "ext")]
#: How hcheck is asked about a cluster as it is.
CHECK = ("--machine-readable", "--no-simulation")
#: Seconds for one run.
LIMIT = int(os.environ.get("LIMIT", "300"))


@dataclass
class Run:
    """What a program printed, its exit code (None: it did not end) and its processor seconds."""

    text: str
    code: int | None
    seconds: float

    @property
    def cost(self) -> str:
        return "too long" if self.code is None else f"{self.seconds:.1f}"

    def key(self, name: str) -> str:
        found = re.search(rf"^{name}=(.*)$", self.text, re.MULTILINE)
        return found.group(1) if found else "-"

    def number(self, pattern: str) -> float:
        found = re.findall(pattern, self.text, re.MULTILINE)
        return float(found[-1]) if found else float("nan")


def run(argv: list[str]) -> Run:
    with tempfile.TemporaryFile("w+") as out:
        program = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL, text=True)
        watch = threading.Timer(LIMIT, program.kill)
        watch.start()
        _, status, used = os.wait4(program.pid, 0)
        watch.cancel()
        program.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        code = None if program.returncode == -signal.SIGKILL else program.returncode
        return Run(out.read(), code, used.ru_utime + used.ru_stime)


def run_both(
    directory: Path, program: str, *arguments: str, ours: tuple[str, ...] = ()
) -> tuple[Run, Run]:
    """The same run of our program and of Debian's; ``ours`` are further arguments of our own."""
    argv = [sys.executable, "-m", f"ganeti.htools.{program}", *arguments, *ours]
    return run(argv), run([str(directory / program), *arguments])


def verdict(run_: Run) -> list[str]:
    names = ("N1_FAIL", "CONFLICT_TAGS", "OFFLINE_PRI", "OFFLINE_SEC", "GN1_FAIL")
    return [run_.key(f"HCHECK_INIT_CLUSTER_{name}") for name in (*names, "NEED_REBALANCE")]


def compare(directory: Path, case: tuple[int, int, int, dict[str, Any], int, int]) -> bool:
    """Compare one cluster; prints its row, and returns whether nothing is worse."""
    seed, nodes, instances, arguments, moves, allocations = case
    file = directory / "cluster.data"
    made = cluster(seed, nodes, instances, **arguments)
    file.write_text(text.dump(made), encoding="utf-8")
    source = ["-t", str(file)]
    ours, theirs = run_both(directory, "hbal", *source, "-l", str(moves))
    starts = [r.number(r"^Initial score: ([\d.]+)") for r in (ours, theirs)]
    ends = [r.number(r"^ +\d+\. .* ([\d.]+) a=") for r in (ours, theirs)]
    lengths = [r.number(r"^Solution length=(\d+)") for r in (ours, theirs)]
    saved = directory / "saved"
    keys = ["--machine-readable", "-l", str(allocations)]
    space = run_both(directory, "hspace", *source, *keys, ours=("-S", str(saved)))
    normal = [r.key("HTS_ALLOC_INSTANCES") for r in space]
    tiered = [r.key("HTS_TRL_INST_CNT") for r in space]
    check = run_both(directory, "hcheck", *source, *CHECK)
    rolled = run_both(directory, "hroller", *source)
    roll = [len(r.text.splitlines()) - 1 for r in rolled]
    findings = Findings()
    findings.numbers("score of the start", *starts, lower=None)
    findings.plans((ends[0], lengths[0]), (ends[1], lengths[1]))
    for what, suffix, counts in (("normal", "standard", normal), ("tiered", "tiered", tiered)):
        # More than Debian's is better when Debian's hcheck finds nothing that was not there before.
        after = [str(directory / "hcheck"), "-t", f"{saved}.{suffix}", *CHECK]
        harmless = verdict(run(after))[:-1] == verdict(check[1])[:-1]
        findings.counts(what, *counts, harmless=harmless)
    findings.equal("hcheck", *map(verdict, check))
    if space[1].code != 0:
        findings.missing.append("hspace")
    if rolled[1].code != 0:
        findings.missing.append("hroller")
    elif roll[0] > roll[1]:
        findings.worse.append("hroller groups")
    kind = ",".join(arguments.get("templates", ("drbd",)))
    same = "equal" if verdict(check[0]) == verdict(check[1]) else "differs"
    if check[1].code is None:
        same = "-"
    extra = "".join(f" {n}" for n in ("tags", "reserved", "spare") if n in arguments)
    print(
        f"| {seed} | {len(made.nodes)}/{len(made.instances)} {kind}{extra} "
        f"| {starts[0]:.6f} {'=' if abs(starts[0] - starts[1]) <= 1e-6 else starts[1]} "
        f"| {ends[0]:.6f} / {ends[1]:.6f} | {lengths[0]:.0f} / {lengths[1]:.0f} "
        f"| {ours.cost} / {theirs.cost} "
        f"| {normal[0]} / {normal[1]} | {tiered[0]} / {tiered[1]} "
        f"| {space[0].cost} / {space[1].cost} "
        f"| {same} "
        f"| {roll[0]} / {roll[1] if rolled[1].code == 0 else '-'} | {findings.text} |",
        flush=True,
    )
    return not findings.worse


@dataclass
class Findings:
    """What is worse or better than Debian's, and what could not be compared."""

    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def numbers(self, what: str, ours: float, theirs: float, *, lower: bool | None) -> None:
        """Compare two numbers that should be equal, or of which the lower is better."""
        if ours != ours or theirs != theirs:
            self.missing.append(what)
        elif abs(ours - theirs) > 1e-6:
            (self.better if lower and ours < theirs else self.worse).append(what)

    def plans(self, ours: tuple[float, float], theirs: tuple[float, float]) -> None:
        """Score and number of moves: a lower score may take more moves."""
        if ours[1] == theirs[1] == 0:
            return
        if theirs[0] != theirs[0]:
            self.missing.append("hbal")
        elif not ours[0] <= theirs[0] + 1e-6:
            self.worse.append("final score")
        elif ours[0] < theirs[0] - 1e-6:
            self.better.append("final score")
        elif ours[1] > theirs[1]:
            self.worse.append("number of moves")

    def counts(self, what: str, ours: str, theirs: str, *, harmless: bool) -> None:
        """Compare how many instances fit: more is better when it is ``harmless``."""
        if theirs == "-" or ours == "-" or ours == theirs:
            self.equal(what, ours, theirs)
        else:
            better = int(ours) > int(theirs) and harmless
            (self.better if better else self.worse).append(what)

    def equal(self, what: str, ours: Any, theirs: Any) -> None:
        if "-" in theirs:
            self.missing.append(what)
        elif ours != theirs:
            self.worse.append(what)

    @property
    def text(self) -> str:
        parts = [f"WORSE: {', '.join(self.worse)}"] * bool(self.worse)
        parts += [f"better: {', '.join(self.better)}"] * bool(self.better)
        parts += [f"not compared: {', '.join(self.missing)}"] * bool(self.missing)
        return "; ".join(parts) or "ok"


def any_node_may_fail(made: Cluster) -> bool:
    """Whether instances on shared storage have other nodes, found without the model.

    The largest goes first, each to the node with the most memory.
    """
    for lost in made.nodes:
        left = {node.name: node.free_memory for node in made.nodes if node is not lost}
        mine = [item.memory for item in made.instances if item.primary == lost.name]
        for memory in sorted(mine, reverse=True):
            best = max(left, key=lambda name: left[name])
            left[best] -= memory
            if left[best] <= 0:
                return False
    return True


def fill_empty(directory: Path, nodes: int, template: str) -> bool:
    """How many instances fit into empty nodes, and how long it takes to know."""
    spec = f"p,{nodes},1000000,65536,16"
    words = ["--simulate", spec, "--disk-template", template, "--machine-readable"]
    saved = directory / "saved"
    ours, theirs = run_both(directory, "hspace", *words, ours=("-S", str(saved)))
    findings = Findings()
    findings.equal("normal", *(r.key("HTS_ALLOC_INSTANCES") for r in (ours, theirs)))
    if theirs.key("HTS_TSPEC") != ours.key("HTS_TSPEC"):
        sums = [r.key("HTS_TRL_MEM_INST") for r in (ours, theirs)]
        full = text.load(Path(f"{saved}.tiered").read_text(encoding="utf-8"), "tiered")
        findings.counts("tiered", *sums, harmless=any_node_may_fail(full))
    if theirs.code == 0:
        slower = ours.seconds > theirs.seconds
        (findings.worse if slower else findings.better).append("processor time")
    fits = [r.key("HTS_ALLOC_INSTANCES") for r in (ours, theirs)]
    print(
        f"| {nodes} {template} | {fits[0]} / {fits[1]} | {ours.cost} / {theirs.cost} "
        f"| {findings.text} |",
        flush=True,
    )
    return not findings.worse


def main() -> int:
    named = os.environ.get("HTOOLS")
    found = [Path(named)] if named else sorted(Path("/usr/lib/ganeti").glob("*/usr/bin/htools"))
    if not found:
        print("Debian's htools are missing; run: apt-get install ganeti-htools-3.0")
        return 1
    chosen = {int(number) for number in sys.argv[1:]}
    print("Ours / Debian's; moves and allocations of large clusters are limited for both.\n")
    print(
        "| # | cluster | start | score after hbal | moves | hbal s | hspace normal | tiered "
        "| hspace s | hcheck | hroller groups | |"
    )
    print("|" + "---|" * 12)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for program in ("hbal", "hspace", "hcheck", "hroller"):
            (directory / program).symlink_to(found[-1])
        results = [compare(directory, c) for c in CASES if not chosen or c[0] in chosen]
        print(
            "\nEmpty nodes (`hspace --simulate`):\n\n| nodes | fit | hspace s | |\n"
            + "|---" * 4
            + "|"
        )
        results += [fill_empty(directory, *e) for e in EMPTY if not chosen or e[0] in chosen]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
