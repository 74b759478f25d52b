"""Repositories of restic: each item is a snapshot with one file."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from ganeti.backup.programs import Item
from ganeti.base import jsonio

#: The tag of our snapshots, and how the one with a note begins.
_TAG, _NOTE = "ganeti", "note:"


class Restic:
    """See :class:`ganeti.backup.programs.Program`."""

    name = "restic"
    package = "restic"
    # restic removes its lock at an interrupt only
    stop = signal.SIGINT

    def build_list(self, *, wait: bool) -> list[str]:
        lock = [] if wait else ["--no-lock"]
        return ["restic", *lock, "snapshots", "--json", "--tag", _TAG]

    def parse_list(self, text: str) -> list[Item]:
        found = []
        for snapshot in jsonio.loads(text) or ():
            [path] = snapshot["paths"]
            notes = [tag for tag in snapshot.get("tags") or () if tag.startswith(_NOTE)]
            note = notes[0].removeprefix(_NOTE) if notes else ""
            found.append(Item(snapshot["id"], path.removeprefix("/"), note))
        return found

    def build_put(self, name: str, note: str) -> list[str]:
        tags = ["--tag", _TAG, *(["--tag", _NOTE + note] if note else [])]
        return [
            "restic",
            "-q",
            "backup",
            "--host",
            "ganeti",
            *tags,
            "--stdin",
            "--stdin-filename",
            name,
        ]

    def build_get(self, item: Item) -> list[str]:
        return ["restic", "-q", "dump", item.handle, f"/{item.name}"]

    def build_remove(self, items: Sequence[Item]) -> list[list[str]]:
        return [["restic", "-q", "forget", "--prune", *(item.handle for item in items)]]

    def build_unlock(self) -> list[str] | None:
        return ["restic", "-q", "unlock"]
