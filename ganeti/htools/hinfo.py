"""hinfo: show what the model knows about a cluster."""

from __future__ import annotations

import sys

from ganeti.base import text
from ganeti.htools import program, sources, tables
from ganeti.htools.hbal import print_metrics, report_inconsistencies
from ganeti.htools.options import Values
from ganeti.htools.program import Program, say
from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.score import score

# fmt: off
KNOWN = (
    "print-nodes", "print-instances", "text-data", "master", "luxi", "ialloc-src", "verbose",
    "quiet", "offline", "ignore-dynu", "mond", "mond-data", "static-kvm-node-memory",
)
# fmt: on


def run(values: Values) -> int:
    cluster = sources.read(values)
    verbosity = values.verbosity
    layout = Layout.from_board(Board(cluster))
    report_inconsistencies(cluster, values)
    if verbosity > 0:
        say(f"Loaded cluster tags: {','.join(cluster.tags)}")
        say(
            f"Loaded {len(cluster.nodes)} nodes, {len(cluster.instances)} instances, "
            f"{text.plural(len(cluster.groups), 'node group')}"
        )
        bad = int((layout.fails & layout.board.online).sum())
        say("Cluster is N+1 happy" if not bad else "Cluster is N+1 unhappy")
        say("Cluster coefficients:")
        print_metrics(layout)
        say(f"Cluster score: {score(layout):.8f}")
    if "print_instances" in values:
        program.warn(f"\nInstances instance map:\n{tables.instances(layout)}")
    if "print_nodes" in values:
        shown = tables.nodes(layout, values.get("print_nodes"))
        program.warn(f"\nCluster status:\n{shown}\n")
    return 0


PROGRAM = Program("hinfo", "Show the nodes, instances and score of a cluster.", KNOWN, run)


def main() -> int:
    """Entry point of the program."""
    return program.run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
