"""The state behind the stand-in storage tools: every node's volume groups and DRBD devices.

One JSON file below the state directory, read and written under a lock, so commands of different
nodes see each other as those of one kernel and one network would.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data: dict[str, Any] = {}
        self.now = 0.0

    @contextmanager
    def locked(self) -> Iterator[World]:
        """Hold the one lock, read the state, and write it back; on a ToolError, too."""
        self.directory.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            file = self.directory / "world.json"
            before = file.read_text() if file.exists() else "{}"
            self.data = json.loads(before)
            self.data.setdefault("nodes", {})
            self.data.setdefault("rules", [])
            self.data.setdefault("cuts", [])
            self.data.setdefault("sync_seconds", 0.0)
            self.now = time.time()
            try:
                yield self
            finally:
                after = json.dumps(self.data)
                if after != before:
                    fresh = file.with_suffix(".new")
                    fresh.write_text(after)
                    fresh.rename(file)
        finally:
            os.close(fd)

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


def place_link(link: Path, target: str) -> None:
    """Make or replace a symbolic link in one step."""
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.rename(link)
