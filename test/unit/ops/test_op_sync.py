"""What a node says of mirrored disks, how long to wait for more, and when to give up."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ganeti import errors
from ganeti.ops.steps.storage import sync
from ganeti.rpc.objects import BlockDevStatus

FINE = BlockDevStatus(dev_path="/dev/drbd0")


def syncing(percent: float, left: int | None = None) -> BlockDevStatus:
    return BlockDevStatus(
        dev_path="/dev/drbd0",
        sync_percent=percent,
        estimated_time=left,
        is_degraded=True,
        ldisk_status=3,
    )


DEGRADED = BlockDevStatus(dev_path="/dev/drbd0", is_degraded=True)
FAULTY = BlockDevStatus(dev_path="/dev/drbd0", is_degraded=True, ldisk_status=2)


def test_states():
    assert sync.judge(["disk/0"], [FINE]).done
    state = sync.judge(["disk/0", "disk/1", "disk/2"], [syncing(10, 7), syncing(50, 3), FAULTY])
    assert state.running == {"disk/0": 10, "disk/1": 50}
    assert (state.degraded, state.faulty, state.left) == (("disk/2",), ("disk/2",), 7)
    assert not state.done


@pytest.mark.parametrize(
    ("found", "seconds"),
    [(syncing(1), 0.5), (syncing(1, 1), 0.5), (syncing(1, 40), 10), (syncing(1, 9999), 30)],
)
def test_the_pause_follows_the_estimate(found, seconds):
    assert sync.pause(sync.judge(["disk/0"], [found])) == seconds


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time


class Cancel(threading.Event):
    """Waits by moving the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.time += timeout or 0
        return self.is_set()


@pytest.fixture
def watch(monkeypatch):
    """Runs a wait over a list of answers; the last one repeats."""

    def run(answers: list[Any], **options: Any) -> tuple[Any, list[str], float]:
        clock = Clock()
        said: list[str] = []
        job = SimpleNamespace(cancel_asked=Cancel(clock), stop_requested=lambda: False)
        ctx = SimpleNamespace(clock=clock, log=said.append, warn=said.append, job=job)
        left = list(answers)

        def read_state(_ctx: Any, _instance: Any, _disks: Any) -> sync.State:
            found = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(found, Exception):
                raise found
            return sync.judge(["disk/0"], [found])

        monkeypatch.setattr(sync, "query_state", read_state)
        disk = SimpleNamespace(iv_name="disk/0", size=1000)
        watch = sync._Watch(
            ctx,
            SimpleNamespace(name="web1"),
            [disk],  # type: ignore[arg-type, list-item]
            only_begin=options.get("only_begin", False),
        )
        return watch.run(), said, clock.time - 1000

    return run


def test_progress_has_percent_time_and_rate(watch):
    outcome, said, _time = watch([syncing(10, 40), syncing(60, 4), FINE])
    assert outcome is sync.Outcome.SYNCED
    assert said == [
        "- device disk/0: 10.00% done, 40s remaining (estimated)",
        "- device disk/0: 60.00% done, 4s remaining (estimated), 50.0 MiB/s",
    ]


def test_what_hardly_moves_is_not_repeated(watch):
    slow = [syncing(10 + n / 100, 2) for n in range(20)]
    _outcome, said, _time = watch([*slow, FINE])
    assert len(said) == 1


def test_two_sides_get_a_moment_to_find_each_other(watch):
    assert watch([DEGRADED, DEGRADED, syncing(1, 1), FINE])[0] is sync.Outcome.SYNCED
    outcome, said, time = watch([DEGRADED])
    assert outcome is sync.Outcome.DEGRADED
    assert sync.SETTLE <= time < sync.SETTLE + 2
    assert said == ["disk/0 of web1 are degraded"]


def test_a_sync_that_stands_still_ends_the_wait(watch):
    outcome, _said, time = watch([syncing(10, 99999)])
    assert outcome is sync.Outcome.DEGRADED
    assert sync.STALLED <= time < sync.STALLED + sync.LONGEST + 1


def test_only_the_beginning(watch):
    assert watch([syncing(0, 99)], only_begin=True)[0] is sync.Outcome.LEFT


def test_a_node_may_be_silent_for_a_while(watch):
    silent = errors.RpcError("node node1: no answer")
    outcome, _said, time = watch([silent, silent, FINE])
    assert outcome is sync.Outcome.SYNCED
    assert time == 10
    with pytest.raises(errors.OpExecError, match="cannot be watched any more"):
        watch([silent])
