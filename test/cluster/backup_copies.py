"""What copies of backups leave on a node while they are used."""

from __future__ import annotations

import contextlib
from pathlib import Path

from local_cluster import Cluster


def find_left(cluster: Cluster, node: str) -> list[str]:
    """Files and processes of copies on a node."""
    work = cluster.paths(node).backup_work
    found = [str(path) for path in work.glob("*")]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode()
            if str(work) in words:
                found.append(words)
    return found
