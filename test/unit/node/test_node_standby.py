"""The wait for a silent master on a candidate."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ganeti import constants
from ganeti.base import daemon
from ganeti.model import ssconf_keys
from ganeti.node.standby import Standby


class Bench:
    """A standby whose candidate is due at once, on a clock that stands still."""

    def __init__(self, tmp_path: Path, pause: str | None = None, master: str = "node1") -> None:
        self.attempts = 0
        self.done = threading.Event()
        config = tmp_path / "config.data"
        config.touch()
        context: Any = SimpleNamespace(
            paths=SimpleNamespace(
                config_file=config,
                pid_file=lambda name: tmp_path / name,
                master_stopped_file=tmp_path / "stopped",
            ),
            name="node2",
            read_master=lambda: master,
            term=SimpleNamespace(read_highest=lambda: (1, master)),
            ssconf=lambda key: pause if key == ssconf_keys.RECOVERY_PAUSED_UNTIL else None,
        )
        clock: Any = SimpleNamespace(monotonic=lambda: 1000.0, now=lambda: 5000.0)
        self.standby = Standby(context, attempt=self._attempt, clock=clock, chance=lambda: 0.0)
        candidate = self.standby._candidate
        candidate.tries_at = 900.0
        end = candidate.end_attempt

        def note(now: float, *, counts: bool) -> None:
            end(now, counts=counts)
            self.done.set()

        candidate.end_attempt = note  # type: ignore[method-assign]

    def _attempt(self) -> None:
        self.attempts += 1

    def run(self) -> int:
        self.standby.start()
        assert self.done.wait(20)
        self.standby.stop()
        return self.attempts


@pytest.mark.parametrize(
    ("pause", "attempts"),
    [(None, 1), ("", 1), ("4999.0", 1), ("garbage", 1), ("5001.5", 0)],
)
def test_the_place_of_a_silent_master_is_taken_unless_recovery_pauses(
    tmp_path: Path, pause: str | None, attempts: int
) -> None:
    assert Bench(tmp_path, pause).run() == attempts


def test_the_node_of_a_master_that_has_died_tries_too(tmp_path: Path) -> None:
    assert Bench(tmp_path, master="node2").run() == 1


def test_the_node_of_a_master_that_runs_or_was_stopped_does_not_try(tmp_path: Path) -> None:
    pid_file = daemon.PidFile(tmp_path / constants.MASTERD)
    pid_file.acquire()
    assert Bench(tmp_path, master="node2").run() == 0
    pid_file.release()
    (tmp_path / "stopped").touch()
    assert Bench(tmp_path, master="node2").run() == 0
