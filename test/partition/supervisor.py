"""Starts daemons that have died on the nodes of a cluster in namespaces, as systemd does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from net_cluster import NetNode

from ganeti import constants


@dataclass(frozen=True)
class _Unit:
    """What the unit of a daemon says (``daemons/systemd``)."""

    daemon: str
    #: seconds from its end to its start
    restart_after: float
    options: tuple[str, ...]


_UNITS = (
    _Unit(constants.NODED, 1.0, ("--tell-master",)),
    _Unit(constants.MASTERD, 5.0, ("--vote-patience", "60")),
)
#: Exit codes after which systemd starts nothing again, and seconds until the watcher does.
_DONE = (constants.EXIT_NOTCLUSTER, constants.EXIT_NOTMASTER)
_WATCHER = 30.0
_PAUSE = 0.5


class Supervisor:
    """The systemd of one node: a thread for each daemon."""

    def __init__(self, node: NetNode, note: Callable[[str], None]) -> None:
        self._node = node
        self._note = note
        self._stop_asked = threading.Event()
        #: daemons that are not started, as a fault lasts; counted, as faults may overlap
        self._held: list[str] = []
        self._threads = [
            threading.Thread(target=self._tend, args=(unit,), daemon=True) for unit in _UNITS
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Blocks until starts in progress have ended."""
        self._stop_asked.set()
        for thread in self._threads:
            thread.join(90)

    def hold(self, daemon: str) -> None:
        """Do not start a daemon until :meth:`release`."""
        self._held.append(daemon)

    def release(self, daemon: str) -> None:
        self._held.remove(daemon)

    def _tend(self, unit: _Unit) -> None:
        ready_at: float | None = None
        while not self._stop_asked.wait(_PAUSE):
            now = time.monotonic()
            if not self._wants(unit.daemon):
                ready_at = None
            elif ready_at is None:
                ready_at = now + unit.restart_after
            elif now >= ready_at:
                done = self._start(unit)
                ready_at = time.monotonic() + (_WATCHER if done else unit.restart_after)

    def _wants(self, daemon: str) -> bool:
        node = self._node
        if not node.has_power or daemon in self._held or node.pid(daemon) is not None:
            return False
        if daemon == constants.NODED:
            return True
        stopped = node.paths.master_stopped_file.exists()
        return node.read_master() == node.name and not stopped and node.paths.config_file.exists()

    def _start(self, unit: _Unit) -> bool:
        """Start it; whether systemd leaves it alone after that."""
        ran = self._node.start(unit.daemon, options=unit.options)
        said = ran.err.strip().splitlines()[-1:] or ["started"]
        self._note(f"systemd of {self._node.short}: {unit.daemon}: {said[0][-200:]}")
        return ran.code in _DONE
