"""What the user is told while the disks of a running guest are sent, and when that is given up."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.model.ids import DiskUuid
from ganeti.ops.steps.storage.disk_progress import STALLED_AFTER, Progress
from ganeti.rpc.objects import DiskProgress

MIB = 1024 * 1024
ONE, TWO = DiskUuid("u1"), DiskUuid("u2")


def disk(done: int, left: int, uuid: DiskUuid = ONE, **facts: object) -> DiskProgress:
    return DiskProgress(uuid=uuid, done=done * MIB, left=left * MIB, **facts)  # type: ignore[arg-type]


def follow(limit: float = 600.0, size: int = 1000, **names: str) -> Progress:
    known = {DiskUuid(uuid): name for uuid, name in (names or {ONE: "disk/0"}).items()}
    return Progress(known, size, limit, 0.0)


def test_percent_rates_and_time_left() -> None:
    progress = follow()
    assert progress.make_lines([disk(0, 1000)], 1.0) == []
    [line] = progress.make_lines([disk(600, 450)], 6.0)
    assert line == " - disk/0: 55%, 100.0 MiB/s, 8.3 MiB/s of it again, 4.9 s left"
    assert progress.make_lines([disk(900, 160)], 9.0) == [], "the next one comes later"
    assert not progress.is_complete
    [line] = progress.make_lines([disk(1070, 0, ready=True)], 12.0)
    assert line == " - disk/0: 1000 MiB in 12 s, 70 MiB of that again"
    assert progress.is_complete


def test_all_disks_have_to_be_ready() -> None:
    progress = follow(size=150, u1="disk/0", u2="disk/1")
    progress.make_lines([disk(100, 0, ready=True), disk(0, 50, TWO)], 1.0)
    assert not progress.is_complete
    [line] = progress.make_lines([disk(100, 0, ready=True), disk(50, 0, TWO, ready=True)], 2.0)
    assert line == " - disk/0, disk/1: 150 MiB in 2.0 s"


def test_a_disk_that_failed_or_is_not_sent_any_more() -> None:
    with pytest.raises(errors.OpExecError, match="disk/0 was not sent: No space left"):
        follow().make_lines([disk(1, 1, error="No space left on device")], 1.0)
    with pytest.raises(errors.OpExecError, match="disk/0 is not being sent any more"):
        follow().make_lines([], 1.0)


def test_silence_ends_it() -> None:
    progress = follow()
    progress.make_lines([disk(10, 90)], 1.0)
    progress.make_lines([disk(10, 90)], STALLED_AFTER)
    with pytest.raises(errors.OpExecError, match="nothing was sent for 60 s"):
        progress.make_lines([disk(10, 91)], 2.0 + STALLED_AFTER)


def test_a_guest_that_writes_too_fast_is_named_then_given_up() -> None:
    progress = follow(100.0)
    lines = []
    for second in range(1, 101):
        lines += progress.make_lines([disk(100 * second, 500 + second % 3)], float(second))
    with pytest.raises(errors.OpExecError) as caught:
        progress.make_lines([disk(10400, 501)], 104.0)
    warned = [line for line in lines if line.startswith("*")]
    assert len(warned) == 1
    assert "given up in 1 min 15 s if it stays so" in warned[0]
    said = errors.text(caught.value)
    assert "the guest writes as fast as its disks are sent: 50" in said
    assert "100.0 MiB/s of it again" in said
    assert "a move without --live" in said


def test_a_slow_link_is_not_a_fast_guest() -> None:
    progress = follow(100.0)
    lines = []
    for second in range(1, 5000):
        lines += progress.make_lines([disk(second, 1_000_000 - second)], float(second))
    assert lines
    assert not [line for line in lines if line.startswith("*")]
