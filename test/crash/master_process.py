"""The faulty master daemon, as a test drives it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

from disk_faults import Point

#: Seconds in which a master must be ready, or dead.
START_LIMIT = 30.0


class MasterProcess:
    """Starts one master after the other in ``env``; each can have a point where it ends."""

    def __init__(self, env: dict[str, str], run_log: Path, log: Path, checkpoint: int) -> None:
        program = Path(__file__).with_name("faulty_master.py")
        with log.open("ab") as errors:
            self._parent = subprocess.Popen(
                [sys.executable, str(program), str(checkpoint), str(run_log)],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="master-lines")
        self._reader.start()
        self.pid = 0
        self.died = threading.Event()
        self.died.set()
        #: of the last master
        self.status = 0
        self.killed_at = ""
        self.labels: list[str] = []

    def _read(self) -> None:
        assert self._parent.stdout is not None
        for line in self._parent.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "op":
                self.labels.append(rest)
                continue
            if word == "pid":
                self.pid = int(rest)
                continue
            if word == "killed":
                self.killed_at = rest
                continue
            if word == "exit":
                self.status = int(rest)
                self.died.set()
            self._lines.put(word)

    def start(
        self, point: Point | None = None, *, trace: bool = False, calls: bool = False
    ) -> bool:
        """Start a master; True when it is ready, False when it has ended before.

        With ``calls`` calls to nodes about disks and instances are points too.
        """
        assert self.died.is_set()
        self.died.clear()
        self.killed_at = ""
        self.labels = []
        order = {
            "point": [point.label, point.number, point.way] if point else None,
            "trace": trace,
            "calls": calls,
        }
        assert self._parent.stdin is not None
        self._parent.stdin.write(f"{json.dumps(order)}\n")
        self._parent.stdin.flush()
        return self._lines.get(timeout=START_LIMIT) == "ready"

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self, number: int) -> None:
        """Send a signal and wait for the end."""
        self.kill(number)
        self.wait()

    def wait(self, timeout: float = 30.0) -> None:
        """Wait for the end of the master."""
        while self._lines.get(timeout=timeout) != "exit":
            continue

    def close(self) -> None:
        """End the master, if any, and the program that starts them."""
        if not self.died.is_set() and self.pid:
            self.end(signal.SIGKILL)
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.close()
        self._parent.wait(10)
        self._reader.join(10)
        self._parent.stdout.close()
