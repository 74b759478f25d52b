"""Kills the master again and again, and looks what is left each time."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from disk_faults import Point, ways
from invariants import Checker
from load import FINAL, GONE, Acknowledged, Load
from master_process import MasterProcess

sys.path.append(str(Path(__file__).parents[1] / "cluster"))

from local_cluster import copy_cluster
from waiting import wait_for

from ganeti import constants
from ganeti.base import services
from ganeti.config.store import read_config
from ganeti.luxi.client import Client

#: Bytes of journal between two checkpoints: a few changes.
CHECKPOINT_AFTER = 6000


class CrashRun:
    """One cluster, one load, many crashes."""

    def __init__(self, directory: Path, nodes: int) -> None:
        directory.mkdir()
        self._resources = contextlib.ExitStack()
        self.cluster = self._resources.enter_context(copy_cluster(nodes))
        self.known = Acknowledged()
        self.paths = self.cluster.paths()
        services.stop(constants.MASTERD, self.paths)
        run_log = directory / "runs"
        self.checker = Checker(self.paths, self.known, run_log)
        self.log = directory / "master.log"
        self.master = MasterProcess(self.cluster.env(), run_log, self.log, CHECKPOINT_AFTER)
        self.round = 0
        self.kills: Counter[str] = Counter()
        self.begun = time.monotonic()
        self.chance = random.Random(1)
        self.checker.offline()

    def close(self) -> None:
        self.master.close()
        self._resources.close()

    # rounds --------------------------------------------------------------------------------

    def enumerate(self, rounds: int = 2) -> list[Point]:
        """Every point of a start after a crash, of a load, and of a stop."""
        counts: Counter[str] = Counter()
        for _ in range(rounds):
            self.start(trace=True)
            self.load()
            self.master.end(signal.SIGTERM)
            assert self.master.status == 0, self.problem()
            counts |= Counter(self.master.labels)
            self.check()
            self.kill_during_load()
            self.start(trace=True)
            self.master.end(signal.SIGKILL)
            counts |= Counter(self.master.labels)
            self.check()
        return [
            Point(label, number, way)
            for label, count in counts.items()
            for number in range(1, count + 1)
            for way in ways(label)
        ]

    @property
    def names(self) -> list[str]:
        return self.cluster.names

    def start(self, point: Point | None = None, *, trace: bool = False) -> None:
        assert self.master.start(point, trace=trace), self.problem()

    def load(self) -> None:
        """One round of the load, until it is done or the master is dead."""
        self.round += 1
        left = self.checker.leftovers()
        Load(self.paths.luxi_socket, self.round, self.known, self.names, left).run()

    def problem(self, point: Point | None = None) -> str:
        """What went wrong, with the end of the log."""
        tail = self.log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"round {self.round}, {point}", *self.checker.problems[:10], *tail])

    def kill_at(self, point: Point) -> bool:
        """Let the master end at a point, and check what it left; False if it was not met."""
        phase = point.label.partition(":")[0]
        if phase == "start" and "/queue/" in point.label:
            self.kill_during_load()  # such a start finds something to do
        ready = self.master.start(point)
        if ready and phase != "start":
            with contextlib.suppress(*GONE):
                self.checker.online()
                self.compare_copies()
            self.load()
        if ready:
            # What it still does is not of interest, unless it is the stop itself.
            self.master.kill(signal.SIGTERM if phase == "stop" else signal.SIGKILL)
            self.master.wait()
        if self.master.killed_at:
            assert self.master.killed_at == str(point)
            self.kills[phase] += 1
        else:
            assert ready, f"the master did not start: {self.problem(point)}"
        self.check(point)
        return bool(self.master.killed_at)

    def compare_copies(self) -> None:
        """What the other candidates have becomes what the master has."""
        for name in self.names[1:]:
            other = self.cluster.paths(name.partition(".")[0])
            wait_for(
                lambda other=other: self.master.died.is_set() or not self.checker.same_copy(other),
                f"{name} has the copy of the master's state",
                15,
            )

    def kill_during_load(self) -> None:
        """Kill the master at any time."""
        self.start()
        timer = threading.Timer(self.chance.uniform(0.01, 0.12), self.master.kill)
        timer.start()
        self.load()
        timer.join()
        self.master.wait()
        self.kills["any time"] += 1
        self.check()

    def check(self, point: Point | None = None, *, full: bool = False) -> None:
        """Check what the files say."""
        self.checker.offline(full=full)
        assert not self.checker.problems, self.problem(point)

    # the end -------------------------------------------------------------------------------

    def finish(self) -> None:
        """The real master comes back, all jobs end, and the leftovers can be removed."""
        self.start()
        self.checker.online()
        self.master.end(signal.SIGTERM)
        self.check(full=True)
        started = self.cluster.start_master()
        assert started.code == 0, started.err
        wait_for(self._all_ended, "the end of all jobs", 40)
        self.compare_copies()
        config = read_config(self.paths)
        told = self.cluster.gnt("cluster verify").out
        for instance in config.instances.values():
            assert instance.name in told or not instance.forthcoming
            self.cluster.ok("instance remove -f", instance.name)
        assert self.cluster.ok("cluster verify")
        assert self.cluster.disks() == []

    def _all_ended(self) -> bool:
        with Client(self.paths.luxi_socket) as client:
            return all(row[0] in FINAL for row in client.query_jobs(None, ["status"]))

    def summary(self) -> str:
        seconds = time.monotonic() - self.begun
        total = sum(self.kills.values())
        kinds = ", ".join(f"{count} in {phase}" for phase, count in sorted(self.kills.items()))
        checks = ", ".join(f"{count} {what}" for what, count in sorted(self.checker.checks.items()))
        return (
            f"{total} kills ({kinds}), {seconds / max(1, total):.2f} s each;"
            f" jobs: {len(self.known.jobs)}; checked: {checks}"
        )


def rank(points: list[Point]) -> list[Point]:
    """The points in another order: each label once before any twice; the same every time."""
    shuffled = list(points)
    random.Random(1).shuffle(shuffled)
    seen: Counter[str] = Counter()
    ranked = []
    for point in shuffled:
        seen[point.label] += 1
        ranked.append((seen[point.label], point))
    ranked.sort(key=lambda pair: pair[0])
    return [point for _rank, point in ranked]
