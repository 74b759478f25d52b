"""mon-collector: print one report of this node, as ganeti-mond would serve it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ganeti import constants, paths
from ganeti.base import jsonio
from ganeti.base.clock import SYSTEM
from ganeti.mond import registry
from ganeti.mond.cluster import ClusterFacts
from ganeti.mond.collector import Node, SamplingCollector
from ganeti.tools import entry

PROGRAM = "mon-collector"
#: Seconds between the two measurements of an average.
_PAUSE = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the report was printed; 1 when there is nothing to report on this node."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _print(options.collector))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Print one report of this node as JSON. ganeti-mond need not run.",
        epilog="Exit codes: 0 printed; 1 there is nothing to report on this node; 2 wrong options.",
    )
    names = sorted(kind.name for kind in registry.COLLECTORS)
    made.add_argument("collector", choices=names, help="what to report")
    return made


def _print(name: str) -> int:
    where = paths.current()
    facts = ClusterFacts(where, paths.hostname())
    facts.refresh()
    collector = registry.create(Node(where, facts))[name]
    if isinstance(collector, SamplingCollector):
        collector.sample()
        SYSTEM.sleep(_PAUSE)
        collector.sample()
    print(jsonio.dumps(collector.report()))
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
