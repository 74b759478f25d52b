"""The memory of the watcher about a node group: attempts, and boots of nodes.

``watcher.<group>.data`` is JSON: ``{"instance": {name: {restart_count, restart_when, cleanup_count,
cleanup_when}}, "node": {name: {bootid}}}``, as in Ganeti: the file stays valid over an upgrade.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject

_LOG = logging.getLogger(__name__)

#: So often the watcher tries to bring an instance to its wanted state.
MAX_ATTEMPTS = 5
#: Seconds after an attempt when the next one may come.
RETRY_AFTER = 60
#: Seconds after the last attempt when it may try again.
FORGET_AFTER = 8 * 3600
#: Seconds after the last attempt when an instance that runs counts as well. One that ends at once
#: is seen running between two ends, and that must not give it five attempts more.
WELL_AFTER = 600


class Kind(StrEnum):
    """Kinds of attempts; part of the keys in the file."""

    RESTART = "restart"
    CLEANUP = "cleanup"


@dataclass(frozen=True)
class Attempts:
    """How often something was tried, and when last (Unix time)."""

    count: int = 0
    when: float = 0.0


@dataclass
class Memory:
    """Attempts by kind and instance, and boots by node; changed in place, then saved."""

    attempts: dict[tuple[Kind, str], Attempts] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)

    def count(self, kind: Kind, name: str) -> int:
        return self.attempts.get((kind, name), Attempts()).count

    def find_last(self, kind: Kind, name: str) -> float:
        """When it was tried last (Unix time); 0 for never."""
        return self.attempts.get((kind, name), Attempts()).when

    def note(self, kind: Kind, name: str, now: float) -> None:
        """One attempt more."""
        self.attempts[kind, name] = Attempts(self.count(kind, name) + 1, now)

    def copy(self) -> Memory:
        return Memory(dict(self.attempts), dict(self.boots))

    def forget(self, kind: Kind, name: str, now: float) -> bool:
        """It is as it should be: forget attempts unless they are new; whether there were some."""
        if 0 <= now - self.find_last(kind, name) < WELL_AFTER:
            return False
        return self.attempts.pop((kind, name), None) is not None

    def drop_old(self, now: float) -> None:
        """Forget attempts of long ago."""
        self.attempts = {
            key: item for key, item in self.attempts.items() if 0 <= now - item.when < FORGET_AFTER
        }

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget instances that do not exist any more."""
        known = set(names)
        self.attempts = {key: item for key, item in self.attempts.items() if key[1] in known}


@dataclass
class Stored:
    """The memory of a group and its file, which only one process reads and writes at a time."""

    path: Path
    memory: Memory
    _written: Memory | None = None

    def save(self) -> None:
        """Write what changed since the last time; OSError when that fails."""
        if self.memory != self._written:
            save(self.path, self.memory)
            self._written = self.memory.copy()


def load(path: Path) -> Memory:
    """The memory of a group; empty if there is no file. A broken one is reported and ignored."""
    try:
        return _parse(jsonio.loads(path.read_bytes()))
    except FileNotFoundError:
        return Memory()
    except (OSError, errors.ParseError, TypeError, ValueError, AttributeError) as err:
        _LOG.error("%s cannot be read, so earlier attempts do not count: %s", path, err)
        return Memory()


def save(path: Path, memory: Memory) -> None:
    """Write the memory of a group; OSError when that fails."""
    instances: dict[str, JsonObject] = {}
    for (kind, name), item in sorted(memory.attempts.items()):
        record = instances.setdefault(name, {})
        record[f"{kind}_count"], record[f"{kind}_when"] = item.count, item.when
    nodes = {name: {"bootid": boot} for name, boot in sorted(memory.boots.items())}
    data = jsonio.dumps_bytes({"instance": instances, "node": nodes})
    if not path.exists() or path.read_bytes() != data:
        files.write_atomic(path, data, mode=0o600)


def _parse(raw: Mapping[str, Any]) -> Memory:
    memory = Memory()
    for name, record in raw.get("instance", {}).items():
        for kind in Kind:
            if f"{kind}_count" in record:
                count, when = int(record[f"{kind}_count"]), float(record[f"{kind}_when"])
                memory.attempts[kind, name] = Attempts(count, when)
    for name, record in raw.get("node", {}).items():
        memory.boots[name] = str(record["bootid"])
    return memory
