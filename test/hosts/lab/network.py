"""One network for the guests: a name space with a bridge, and a tap for each guest."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from types import TracebackType
from typing import Self

from lab.place import LabError, lock

PREFIX = "ganeti-lab-"
_count = itertools.count()


class Network:
    """A context manager; the end of the name space is the end of everything in it."""

    def __init__(self, address: str) -> None:
        """``address`` with its length is the bridge's own."""
        self.name = f"{PREFIX}{os.getpid()}-{next(_count)}"
        self._taps = 0
        remove_stale()
        _ip("netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0")
        self.ip("addr", "add", address, "dev", "br0")
        self.ip("link", "set", "br0", "up")

    def ip(self, *words: str) -> None:
        _ip("-n", self.name, *words)

    def tap(self) -> str:
        """Name of a new tap on the bridge."""
        name = f"tap{self._taps}"
        self._taps += 1
        self.ip("tuntap", "add", "dev", name, "mode", "tap")
        self.ip("link", "set", name, "master", "br0", "up")
        return name

    def plug(self, tap: str, up: bool) -> None:
        """Connect a tap with the bridge, or part them."""
        self.ip("link", "set", tap, *(("master", "br0") if up else ("nomaster",)))

    def wrap(self, argv: list[str]) -> list[str]:
        """The same command inside the name space."""
        return ["ip", "netns", "exec", self.name, *argv]

    def close(self) -> None:
        _ip("netns", "del", self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.close()


def remove_stale() -> None:
    """Remove name spaces of runs that were killed."""
    with lock("network"):
        words = ["ip", "netns", "list"]
        listed = subprocess.run(words, capture_output=True, text=True, check=False)
        for name, pid in re.findall(rf"^({PREFIX}(\d+)\S*)", listed.stdout, re.M):
            if not os.path.exists(f"/proc/{pid}"):
                _ip("netns", "del", name)


def _ip(*words: str) -> None:
    ran = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(f"ip {' '.join(words)}: {ran.stderr.strip()}")
