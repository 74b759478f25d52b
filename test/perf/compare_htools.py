"""Compare our programs with Debian's on the same text files, and print a table.

Usage: compare_htools.py [NUMBER...]; numbers choose clusters. Debian's program is found below
/usr/lib/ganeti, or named by HTOOLS. Exit code 1 when a deviation is for the worse.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from clusters import cluster

from ganeti.htools import text

#: seed, nodes, instances, arguments, most moves, most allocations. Debian's hbal needs minutes for
#: more moves of the large ones.
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
]
LIMIT = 300


@dataclass
class Run:
    """What a program printed, its exit code and its seconds."""

    text: str
    code: int
    seconds: float

    def key(self, name: str) -> str:
        found = re.search(rf"^{name}=(.*)$", self.text, re.MULTILINE)
        return found.group(1) if found else "-"

    def number(self, pattern: str) -> float:
        found = re.findall(pattern, self.text, re.MULTILINE)
        return float(found[-1]) if found else float("nan")


def run(argv: list[str]) -> Run:
    start = time.monotonic()
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Run("", -1, LIMIT)
    return Run(done.stdout, done.returncode, time.monotonic() - start)


def both(directory: Path, program: str, *arguments: str) -> tuple[Run, Run]:
    """The same run of our program and of Debian's."""
    ours = [sys.executable, "-m", f"ganeti.htools.{program}", *arguments]
    return run(ours), run([str(directory / program), *arguments])


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
    ours, theirs = both(directory, "hbal", *source, "-l", str(moves))
    starts = [r.number(r"^Initial score: ([\d.]+)") for r in (ours, theirs)]
    ends = [r.number(r"^ +\d+\. .* ([\d.]+) a=") for r in (ours, theirs)]
    lengths = [r.number(r"^Solution length=(\d+)") for r in (ours, theirs)]
    keys = ["--machine-readable", "-l", str(allocations)]
    space = both(directory, "hspace", *source, *keys)
    normal = [r.key("HTS_ALLOC_INSTANCES") for r in space]
    tiered = [r.key("HTS_TRL_INST_CNT") for r in space]
    check = both(directory, "hcheck", *source, "--machine-readable", "--no-simulation")
    roll = [len(r.text.splitlines()) - 1 for r in both(directory, "hroller", *source)]
    same = verdict(check[0]) == verdict(check[1])
    fine = (
        abs(starts[0] - starts[1]) <= 1e-6
        and not ends[0] > ends[1] + 1e-6
        and (lengths[0] <= lengths[1] or ends[0] < ends[1] - 1e-6)
        and (normal[0] == normal[1] or normal[1] == "-")
        and same
        and (roll[0] <= roll[1] or theirs.code != 0)
    )
    kind = ",".join(arguments.get("templates", ("drbd",)))
    extra = "".join(f" {n}" for n in ("tags", "reserved", "spare") if n in arguments)
    print(
        f"| {seed} | {len(made.nodes)}/{len(made.instances)} {kind}{extra} "
        f"| {starts[0]:.6f} {'=' if abs(starts[0] - starts[1]) <= 1e-6 else starts[1]} "
        f"| {ends[0]:.6f} / {ends[1]:.6f} | {lengths[0]:.0f} / {lengths[1]:.0f} "
        f"| {ours.seconds:.1f} / {theirs.seconds:.1f} "
        f"| {normal[0]} / {normal[1]} | {tiered[0]} / {tiered[1]} "
        f"| {space[0].seconds:.1f} / {space[1].seconds:.1f} "
        f"| {'equal' if same else f'{verdict(check[0])} {verdict(check[1])}'} "
        f"| {roll[0]} / {roll[1]} | {'ok' if fine else 'WORSE'} |",
        flush=True,
    )
    return fine


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
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
