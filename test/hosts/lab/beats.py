"""What a guest counts on its console, heard outside of all machines, with the moment of each beat.

The console goes to a file that a node shares with this machine. So the cut of a network silences
nobody, and all moments are those of one clock.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.channel import wait_for
from lab.cluster import Node

_PAUSE = 0.05
_FILE = "beats"
#: What daemons log, in the share of each node.
LOGS = "logs"
_BEAT = re.compile(rb"BEAT (\d+)\r?\n")


@dataclass(frozen=True)
class Beat:
    at: float
    node: str
    number: int


class Ear:
    """A context manager: a thread that listens to all nodes."""

    def __init__(self, nodes: list[Node], guest: str) -> None:
        self._guest = guest
        self._files = {node.name: node.machine.share / _FILE for node in nodes}
        self._read = dict.fromkeys(self._files, 0)
        self._beats: list[Beat] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="ear")

    def attach(self, node: Node) -> None:
        """To be called after each boot of a node."""
        log = f"/var/log/ganeti/kvm/{self._guest}-serial.log"
        node.sh(
            f"mkdir -p {Path(log).parent}; touch {log};"
            f" setsid tail -n 0 -F {log} </dev/null >>/run/lab/{_FILE} 2>/dev/null &"
            # A reset takes what the logs have not on their disk.
            " setsid tail -q -n 20 -F /var/log/ganeti/{node,master}-daemon.log"
            f" </dev/null >>/run/lab/{LOGS} 2>/dev/null &"
        )

    @property
    def beats(self) -> list[Beat]:
        """All that were heard so far, in the order of time."""
        return list(self._beats)

    def find_last(self) -> Beat:
        return self._beats[-1]

    def list_after(self, moment: float, *, but: str = "") -> list[Beat]:
        """Those after a moment, of all nodes ``but`` one."""
        return [beat for beat in self.beats if beat.at > moment and beat.node != but]

    def wait(self, moment: float, limit: float, *, but: str = "") -> Beat:
        """The first beat after a moment on a node ``but`` this one."""
        what = f"a beat elsewhere than on {but}" if but else "a beat"
        wait_for(what, lambda: self.list_after(moment, but=but), limit, _PAUSE)
        return self.list_after(moment, but=but)[0]

    def find_gap(self, since: float, longest: float) -> list[Beat]:
        """The beats before and after the first silence that was too long."""
        heard = self.list_after(since)
        for before, after in itertools.pairwise(heard):
            if after.at - before.at > longest:
                return [before, after]
        return [] if heard else [self.find_last()]

    def _listen(self) -> None:
        while not self._stop.wait(_PAUSE):
            for name, path in self._files.items():
                if path.exists():
                    self._take(name, path)

    def _take(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._read[name])
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read[name] += len(whole)
        now = time.monotonic()
        self._beats += [Beat(now, name, int(number)) for number in _BEAT.findall(whole)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
