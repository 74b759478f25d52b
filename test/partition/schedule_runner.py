"""Plays schedules side by side, each on a new cluster, and says what became of them."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

#: Plays the schedule of a seed in a directory; returns what to print of it.
Play = Callable[[Path, int], str]


class _Runner(threading.Thread):
    """Plays schedules until there are none left."""

    def __init__(
        self, directory: Path, play: Play, seeds: Iterator[int], lock: threading.Lock
    ) -> None:
        super().__init__(name=directory.name, daemon=True)
        self._directory = directory
        self._play = play
        self._seeds = seeds
        self._lock = lock
        self.failures: list[str] = []

    def run(self) -> None:
        while (seed := self._take_seed()) is not None:
            self._directory.mkdir()
            began = time.monotonic()
            try:
                said = self._play(self._directory, seed)
                print(f"seed {seed}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
            except Exception as err:
                self.failures.append(str(err) or repr(err))
                print(f"seed {seed} failed", flush=True)
            shutil.rmtree(self._directory, ignore_errors=True)

    def _take_seed(self) -> int | None:
        with self._lock:
            return next(self._seeds, None)


def play_all(directory: Path, play: Play, seeds: Iterable[int], side_by_side: int) -> list[str]:
    """Play the schedules of all seeds; what went wrong, a text for each that failed."""
    left, lock = iter(seeds), threading.Lock()
    runners = [_Runner(directory / f"c{n}", play, left, lock) for n in range(side_by_side)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    return [text for runner in runners for text in runner.failures]


def keep_logs(directory: Path, patterns: Iterable[str], target: str | None, seed: int) -> None:
    """Copy the logs of a schedule that failed to ``target``, if that is set."""
    if not target:
        return
    for pattern in patterns:
        for path in directory.glob(pattern):
            copy = Path(target) / str(seed) / path.relative_to(directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
