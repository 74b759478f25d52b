"""hscan: write text files of clusters, and a line about each."""

from __future__ import annotations

import sys
from pathlib import Path

from ganeti import errors
from ganeti.htools import luxi, program, rapi, tables, text
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say, warn
from ganeti.htools.sources import KVM_NODE_MEMORY
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster
from ganeti.placement.layout import Layout
from ganeti.placement.score import score

# fmt: off
KNOWN = ("print-nodes", "output-dir", "luxi", "verbose", "no-headers", "static-kvm-node-memory")
# fmt: on


def run(values: Values) -> int:
    memory = int(values.get("static_kvm_node_memory", KVM_NODE_MEMORY))
    directory = Path(values.get("output_dir", "."))
    names = list(values.arguments)
    width = max([len(name) for name in names] + [len("LOCAL")])
    if "no_headers" not in values:
        say(
            f"{'Name':<{width}} {'Nodes':>5} {'Inst':>5} {'BNode':>5} {'BInst':>5} "
            f"{'t_mem':>6} {'f_mem':>6} {'t_disk':>6} {'f_disk':>6}      Score"
        )
    failed = False
    if not names:
        _scan("LOCAL", luxi.read(values.get("luxi", ""), memory), directory, values, width)
    for name in names:
        try:
            cluster = rapi.read(rapi.Remote.from_values(values, name), memory)
        except errors.GanetiError as err:
            warn(f"{name}: {errors.text(err)}")
            failed = True
            continue
        _scan(name, cluster, directory, values, width)
    return int(failed)


def _sums(cluster: Cluster) -> str:
    """Memory in MiB and disk in GiB, total and free."""
    nodes = cluster.nodes
    memory = sum(n.memory for n in nodes), sum(n.free_memory for n in nodes)
    disk = sum(n.disk for n in nodes) // 1024, sum(n.free_disk for n in nodes) // 1024
    return " ".join(f"{value:6d}" for value in (*memory, *disk))


def _scan(name: str, cluster: Cluster, directory: Path, values: Values, width: int) -> None:
    layout = Layout.from_board(Board(cluster))
    board = layout.board
    bad = layout.fails & board.online
    hit = bad[layout.primary] | ((layout.secondary >= 0) & bad[layout.secondary])
    say(
        f"{name:<{width}} {len(board.nodes):5d} {len(board.instances):5d} {int(bad.sum()):5d} "
        f"{int(hit.sum()):5d} {_sums(cluster)} {score(layout):.8f}"
    )
    if "print_nodes" in values:
        say(tables.nodes(layout, values.get("print_nodes")))
    file = name.replace("/", "_")
    (directory / f"{file}.data").write_text(text.dump(cluster), encoding="utf-8")


PROGRAM = Program(
    "hscan", "Write text files of clusters.", KNOWN, run, " [CLUSTER...]", "", (0, 1000)
)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
