"""What the user is told while a disk is copied."""

from __future__ import annotations

import itertools

from ganeti.ops.steps.storage.copy_progress import MIB, Progress


def test_lines_come_every_five_seconds_and_later_every_minute() -> None:
    progress, size = Progress("disk/0", 0.0), 100_000 * MIB
    told = [
        second for second in range(1, 1000) if progress.make_line(second * MIB, size, float(second))
    ]
    assert told[:3] == [5, 10, 15]
    assert len(told) < 50
    assert max(after - before for before, after in itertools.pairwise(told)) == 60


def test_percent_rate_and_time_left() -> None:
    progress = Progress("disk/0", 0.0)
    assert progress.make_line(0, 0, 7.0) is None, "the size is not known yet"
    assert progress.make_line(0, 400 * MIB, 8.0) == " - disk/0: 0%, 0.0 MiB/s"
    assert (
        progress.make_line(100 * MIB, 400 * MIB, 20.0)
        == " - disk/0: 25%, 8.3 MiB/s, 1 min 0 s left"
    )
    assert progress.make_line(400 * MIB, 400 * MIB, 90.0) is None, "the end has a line of its own"
    assert progress.end(400 * MIB, 0, 90.0) == " - disk/0: 400 MiB in 1 min 30 s, 4.4 MiB/s"
    assert progress.end(400 * MIB, 40 * MIB, 90.0).endswith(", 4.0 MiB/s, 40 MiB of zeros skipped")
    assert "MiB/s" not in progress.end(400 * MIB, 400 * MIB, 0.0)
