"""Run the programs of htools, ours and Debian's, against a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import command_server
from local_cluster import Cluster, Ran

#: Debian's program, which is one for all names; the newest when there are several.
COMPILED = sorted(Path("/usr/lib/ganeti").glob("*/usr/bin/htools"))
#: Why a test that needs it does not run.
MISSING = "Debian's htools are not installed (apt-get install ganeti-htools-3.0)"


def argv(program: str, *words: str) -> list[str]:
    return [sys.executable, "-m", f"ganeti.htools.{program}", *words]


def run(cluster: Cluster, program: str, *words: str, timeout: float = 120) -> Ran:
    """Run one of our programs on the master."""
    command = [f"ganeti.htools.{program}", *words]
    return _ran(command_server.find_shared().run(command, cluster.env(), timeout))


def run_debian(program: str, *words: str, timeout: float = 120) -> Ran:
    """Run one of Debian's programs."""
    command = [str(COMPILED[-1]), *words]
    env = {**os.environ, "HTOOLS": program}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=timeout, check=False
    )
    return _ran(done)


def _ran(done: subprocess.CompletedProcess[str]) -> Ran:
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def steps(ran: Ran) -> list[str]:
    """The moves that hbal printed."""
    return [line.strip() for line in ran.lines if " a=" in line]


def places(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Instances with their primary nodes."""
    for name, node in cluster.cells("instance list -o name,pnode"):
        yield name.partition(".")[0], node.partition(".")[0]
