"""The state behind the stand-in storage tools: every node's volume groups and DRBD devices.

One file below the state directory, read and written under a lock, so commands of different nodes
see each other as those of one kernel and one network would.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIB = 1024 * 1024
#: Where a node keeps the data of its logical volumes, below its root.
STORE = "var/lib/stand-ins"


class ToolError(Exception):
    """A tool ends with this exit code and text, as the real one does."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class World:
    """All nodes' storage; ``data`` is only valid inside :meth:`locked`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._fd = -1
        self._before = b""
        self.data: dict[str, Any] = {}
        self.now = 0.0

    def lock(self) -> World:
        """Hold the one lock, read the state, and write it back; after a ToolError, too."""
        return self

    def __enter__(self) -> World:
        os.makedirs(self.directory, exist_ok=True)
        self._fd = os.open(f"{self.directory}/lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            with open(f"{self.directory}/world", "rb") as file:
                self._before = file.read()
            self.data = marshal.loads(self._before)
        except FileNotFoundError:
            self.data = {"nodes": {}, "rules": [], "cuts": [], "sync_seconds": 0.0}
        self.now = time.time()
        return self

    def __exit__(self, *_exc: object) -> None:
        after = marshal.dumps(self.data)
        if after != self._before:
            with open(f"{self.directory}/world.new", "wb") as file:
                file.write(after)
            os.rename(f"{self.directory}/world.new", f"{self.directory}/world")
        os.close(self._fd)

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.data["nodes"][name]
        return found

    def reachable(self, one: str, other: str) -> bool:
        """Whether packets get from one node to the other."""
        if not (self.node(one)["up"] and self.node(other)["up"]):
            return False
        return sorted((one, other)) not in self.data["cuts"]

    def rule(self, node: str, tool: str, words: list[str]) -> dict[str, Any] | None:
        """The first rule for a command; one with ``times`` is used up."""
        line = " ".join(words)
        for rule in self.data["rules"]:
            if rule["node"] in (None, node) and rule["tool"] == tool and rule["match"] in line:
                if rule["times"] is not None:
                    rule["times"] -= 1
                    if rule["times"] <= 0:
                        self.data["rules"].remove(rule)
                return dict(rule)
        return None


def copy_sparse(source: str, target: str) -> None:
    """Copy a file's data without its holes, in place of ``target``."""
    fresh = f"{target}.copying"
    with open(source, "rb") as src, open(fresh, "wb") as dst:
        size = os.fstat(src.fileno()).st_size
        dst.truncate(size)
        place = 0
        while place < size:
            try:
                start = os.lseek(src.fileno(), place, os.SEEK_DATA)
            except OSError:  # only a hole is left
                break
            place = os.lseek(src.fileno(), start, os.SEEK_HOLE)
            src.seek(start)
            dst.seek(start)
            left = place - start
            while left:
                block = src.read(min(left, MIB))
                dst.write(block)
                left -= len(block)
    os.chmod(fresh, 0o600)
    os.rename(fresh, target)


def place_link(link: str, target: str) -> None:
    """Make or replace a symbolic link in one step."""
    fresh = f"{link}.new"
    os.makedirs(os.path.dirname(link), exist_ok=True)
    remove(fresh)
    os.symlink(target, fresh)
    os.rename(fresh, link)


def remove(path: str) -> None:
    """Remove a file or link; fine when there is none."""
    if os.path.lexists(path):
        os.unlink(path)


def write_text(path: str, text: str) -> None:
    """Replace a file in one step if it differs."""
    try:
        with open(path) as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)
