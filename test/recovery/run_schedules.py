"""Play many schedules on all processors and print what happened.

``run_schedules.py COUNT [nodes|store|witness]``: the nodes vote, a store holds the role of the
master, or the nodes vote and one of them is a witness.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from schedules import (
    BLACKOUT,
    FAULTS,
    LATE_RELEASE,
    PAUSE,
    STOP,
    STORE_FAULTS,
    STRIKE,
    Outcome,
    play,
)

_CHUNK = 50


def main(count: int, deciders: str) -> int:
    """Exit code 1 when a schedule broke a promise; its seed is printed."""
    begin = time.monotonic()
    kinds: Counter[str] = Counter()
    events: Counter[str] = Counter()
    bad: list[Outcome] = []
    slowest = 0.0
    with ProcessPoolExecutor() as pool:
        for outcome in pool.map(partial(play, deciders=deciders), range(count), chunksize=_CHUNK):
            kinds.update(set(outcome.kinds))
            events.update(outcome.counts)
            slowest = max(slowest, outcome.recovered)
            if outcome.problem:
                bad.append(outcome)
                print(f"seed {outcome.seed}, {outcome.nodes} nodes: {outcome.problem}")
    taken = time.monotonic() - begin
    print(f"{count} schedules, {len(bad)} broke a promise")
    print(f"{taken:.0f} s, {1000 * taken / count:.1f} ms each; slowest recovery {slowest:.0f} s")
    of_store = STORE_FAULTS if deciders == "store" else ()
    for kind in (*FAULTS, STRIKE, PAUSE, LATE_RELEASE, STOP, BLACKOUT, *of_store):
        print(f"{kinds[kind]:8d} schedules with: {kind}")
    for what, number in sorted(events.items()):
        print(f"{number:8d} {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *(sys.argv[2:] or ["nodes"])))
