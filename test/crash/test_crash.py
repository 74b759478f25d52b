"""The master daemon is killed at every place where it writes something durable.

``CRASH_POINTS`` says at how many: a number, or ``all``; without it, a sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_run import CrashRun, rank

pytestmark = pytest.mark.long

#: Number of nodes -> places to kill at: in a sample, and when all are requested (None: each one).
SAMPLE = {1: 12, 3: 4}
ALL = {1: None, 3: 80}
#: So many of all places are met, at least; what threads do in which order is not the same twice.
MET = 0.6
#: A sample replaces a place that is not met by another one. It tries this many times its size.
TRIES = 3


@pytest.fixture(params=[1, 3], ids=["one-node", "three-nodes"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CrashRun]:
    made = CrashRun(tmp_path / "crash", request.param)
    try:
        yield made
    finally:
        made.close()


def count_points(nodes: int) -> int | None:
    asked = os.environ.get("CRASH_POINTS", "")
    return ALL[nodes] if asked == "all" else int(asked or SAMPLE[nodes])


@pytest.mark.timeout(3600)
def test_nothing_acknowledged_is_lost(run: CrashRun, capsys: pytest.CaptureFixture[str]) -> None:
    points = rank(run.enumerate())
    wanted = count_points(len(run.names)) or len(points)
    met = tried = 0
    for point in points[: TRIES * wanted]:
        if met == wanted:
            break
        tried += 1
        met += run.kill_at(point) or run.kill_at(point)
    run.finish()
    with capsys.disabled():
        print(f"\n{run.summary()}, {tried - met} of {tried} points not met")
    assert met == wanted or met >= MET * len(points)
