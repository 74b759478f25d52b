"""Repositories of borg: each item is an archive with one file of the same name."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from ganeti.backup.programs import LOCK_WAIT, Item
from ganeti.base import jsonio

_WAIT = f"--lock-wait={LOCK_WAIT}"
#: No archive is made of a part of an item.
_NO_PARTS = f"--checkpoint-interval={10**9}"


class Borg:
    """See :class:`ganeti.backup.programs.Program`."""

    name = "borg"
    package = "borgbackup"
    # at an interrupt borg would keep what it has so far
    stop = signal.SIGTERM

    def build_list(self, *, wait: bool) -> list[str]:
        lock = _WAIT if wait else "--bypass-lock"
        return ["borg", "list", lock, "--json", "--format={comment}"]

    def parse_list(self, text: str) -> list[Item]:
        return [
            Item(archive["name"], archive["name"], archive.get("comment") or "")
            for archive in jsonio.loads(text)["archives"]
        ]

    def build_put(self, name: str, note: str) -> list[str]:
        comment = ["--comment", note] if note else []
        return [
            "borg",
            "create",
            _WAIT,
            _NO_PARTS,
            *comment,
            "--stdin-name",
            name,
            f"::{name}",
            "-",
        ]

    def build_get(self, item: Item) -> list[str]:
        return ["borg", "extract", _WAIT, "--stdout", f"::{item.handle}", item.name]

    def build_remove(self, items: Sequence[Item]) -> list[list[str]]:
        first, *others = (item.handle for item in items)
        return [["borg", "delete", _WAIT, f"::{first}", *others], ["borg", "compact", _WAIT]]

    def build_unlock(self) -> list[str] | None:
        return None
