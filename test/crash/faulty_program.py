"""A program with a fault, run once: ``gnt-cluster init``, ``ganeti-node-setup``, ``gnt-node add``.

What it writes below the node's root, and the daemons it starts, are counted; it is killed at a
point, or tells the labels of all points.

Usage: faulty_program.py REPORT POINT PROGRAM [WORD...]

POINT is JSON: label, number, way; or null. Lines of REPORT: ``op LABEL``, ``killed POINT``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from disk_faults import DiskFaults, Point

from ganeti import paths
from ganeti.base import services

_write = os.write


def main() -> int:
    report = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    chosen = json.loads(sys.argv[2])
    where = paths.current()

    def say(text: str) -> None:
        _write(report, f"{text}\n".encode())

    faults = DiskFaults(
        where.root,
        [where.data, where.conf],
        None if chosen is None else Point(*chosen),
        trace=None if chosen is not None else lambda label: say(f"op {label}"),
        last_words=lambda point: say(f"killed {point}"),
    )
    faults.install()
    faults.count_calls(services, "start")
    faults.count_calls(services, "stop")
    sys.argv = sys.argv[3:]
    if sys.argv[0] == "ganeti-node-setup":
        from ganeti.bootstrap import node_setup

        return node_setup.main(sys.argv[1:])
    from ganeti.cli.__main__ import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
