"""Random schedules after which nobody helps: the cluster must come back by itself.

Reigns of masters are read from their logs, and from what was done to their daemons.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import chaos
from net_cluster import NetCluster, NetNode

from ganeti import constants

#: Seconds in which somebody must be the master once nothing is broken any more.
LATEST = 240.0
#: Seconds between two starts of a daemon that has ended, as systemd makes them.
RESTART = 5.0
#: Seconds in which a daemon that goes on after a pause finds out that its lease is over.
NOTICE = 5.0

_MOMENT = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d+"
_LINE = re.compile(
    rf"^({_MOMENT}).*(master in term (\d+)|stepping down|stopping)",
    re.MULTILINE,
)
_KILL = re.compile(rf"^({_MOMENT}).*ganeti-masterd .* and is killed$", re.MULTILINE)


@dataclass
class Reign:
    """One term of a master, by its log and by what was done to it."""

    node: str
    term: int
    begin: float
    end: float | None = None


@dataclass
class Pause:
    """A time in which the master daemon of a node stood still; 0: it still does."""

    node: str
    begin: float
    end: float = 0.0


class UnaidedSchedule(chaos.Schedule):
    """One random course of events; the cluster must come back by itself."""

    def __init__(self, cluster: NetCluster, seed: int) -> None:
        super().__init__(cluster, seed)
        self._killed: list[tuple[str, float]] = []
        self._pauses: list[Pause] = []
        self._refused: set[str] = set()

    # what is done to master daemons ----------------------------------------------------------

    def _note_deaths(self, before: dict[str, int | None]) -> None:
        """Record which of these master daemons are gone now."""
        now = time.time()
        for node in self.cluster.nodes.values():
            if before.get(node.name) and node.pid(constants.MASTERD) != before[node.name]:
                self._killed.append((node.name, now))

    def _list_master_pids(self) -> dict[str, int | None]:
        return {node.name: node.pid(constants.MASTERD) for node in self._masters()}

    def _list_deaths(self) -> list[tuple[str, float]]:
        """Nodes whose master daemon was killed, and when."""
        return [
            *self._killed,
            *(each for n in self.cluster.nodes.values() for each in _list_kills(n)),
        ]

    # the end -------------------------------------------------------------------------------

    def _find_master(self) -> NetNode:
        """The master that came by itself."""
        end = time.monotonic() + LATEST
        while time.monotonic() < end:
            for node in self._masters():
                if self._commits(node):
                    return node
            self._restart_masters()
            time.sleep(RESTART)
        raise AssertionError(f"no master within {LATEST:.0f} s")

    def _restart_masters(self) -> None:
        """Start master daemons that have ended, as systemd does it."""
        for node in self.cluster.nodes.values():
            if node.read_master() == node.name and node.name not in self._refused:
                ran = node.start(constants.MASTERD, timeout=60)
                if ran.code:
                    self.note(f"masterd of {node.short}: {ran.err.strip()[-240:]}")
                if ran.code == constants.EXIT_NOTMASTER:
                    self._refused.add(node.name)

    # reigns --------------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        reigns = self.find_reigns()
        for before, after in pairwise(reigns):
            assert before.end is not None, f"{before} has no end, and {after} began"
            assert before.end <= after.begin, f"{before} and {after} acted at the same time"
        self.note(f"{len(reigns)} masters, one after the other")

    def find_reigns(self) -> list[Reign]:
        """All masters of this cluster, by their terms."""
        found = [reign for node in self.cluster.nodes.values() for reign in self._read_reigns(node)]
        return sorted(found, key=lambda reign: reign.term)

    def _read_reigns(self, node: NetNode) -> list[Reign]:
        log = node.paths.log / "master-daemon.log"
        if not log.exists():
            return []
        text = log.read_text(errors="replace")
        reigns: list[Reign] = []
        for stamp, _what, term in _LINE.findall(text):
            moment = _read_moment(stamp)
            if term:
                reigns.append(Reign(node.name, int(term), moment))
            elif reigns and reigns[-1].end is None:
                reigns[-1].end = self._find_end(node.name, moment)
        all_deaths = self._list_deaths()
        for reign, following in zip(reigns, [*reigns, None][1:], strict=False):
            deaths = [at for name, at in all_deaths if name == node.name and at >= reign.begin]
            if deaths and (reign.end is None or min(deaths) < reign.end):
                reign.end = self._find_end(node.name, min(deaths))
            if reign.end is None and following is not None:
                reign.end = following.begin
        return reigns

    def _find_end(self, node: str, moment: float) -> float:
        """When it acted for the last time: before a pause from which it did not come back."""
        for pause in self._pauses:
            if pause.node == node and pause.begin <= moment <= (pause.end or moment) + NOTICE:
                return pause.begin
        return moment


def _read_moment(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace(",", ".")).timestamp()


def _list_kills(node: NetNode) -> list[tuple[str, float]]:
    """When the node daemon has killed a master daemon that did not stop."""
    log = node.paths.log / "node-daemon.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    return [(node.name, _read_moment(stamp)) for stamp in _KILL.findall(text)]
