"""Progress of a migration: what its user is told, and when it is given up."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.model.enums import MigrationState
from ganeti.ops.steps.relocation.migration import STALLED_AFTER, Progress, summary
from ganeti.rpc.objects import MigrationStatus


def status(sent: int | None) -> MigrationStatus:
    total = None if sent is None else 1000
    return MigrationStatus(status=MigrationState.ACTIVE, transferred_ram=sent, total_ram=total)


def test_progress_is_told_every_ten_seconds() -> None:
    progress = Progress(0.0)
    assert progress.make_line(status(100), 5.0) is None
    assert progress.make_line(status(250), 10.0) == "* memory transfer progress: 25.00 %"
    assert progress.make_line(status(300), 15.0) is None


def test_silence_is_told_and_then_ends_it() -> None:
    progress = Progress(0.0)
    progress.make_line(status(100), 1.0)
    assert progress.make_line(status(100), 13.0) == "* nothing was sent for 12 s"
    with pytest.raises(errors.OpExecError, match="nothing was sent"):
        progress.make_line(status(100), 2.0 + STALLED_AFTER)


def test_a_hypervisor_without_figures_is_not_silent() -> None:
    progress = Progress(0.0)
    told = [progress.make_line(status(None), 100.0 * number) for number in range(1, 20)]
    assert set(told) == {"* memory transfer is going on"}


def test_the_end_tells_what_it_took() -> None:
    found = MigrationStatus(
        status=MigrationState.COMPLETED, transferred_ram=132 << 20, total_time=5120, downtime=317
    )
    assert summary(found) == ("* memory transferred: 132 MiB in 5.1 s, paused for 317 ms of that")
