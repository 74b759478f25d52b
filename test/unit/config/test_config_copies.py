"""The copies of the configuration on the other candidates."""

from __future__ import annotations

from pathlib import Path

from small_config import make_config

from ganeti.base.copies import NoCopies, Round
from ganeti.config.changes import Author
from ganeti.config.store import Store, write_checkpoint
from ganeti.paths import Paths


class Watching(NoCopies):
    """Looks whether this node has what the copies are sent."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.sent: list[bool] = []

    def change(self, base: int, serial: int, lines: bytes) -> Round:
        self.sent.append(self._paths.journal_file.read_bytes().endswith(lines))
        return self


def test_copies_are_never_newer_than_this_node(tmp_path: Path) -> None:
    """A master that crashed in between would be refused as outdated."""
    paths = Paths(tmp_path)
    paths.data.mkdir(parents=True)
    write_checkpoint(make_config(), paths)
    copies = Watching(paths)
    store = Store(paths, copies=copies)
    for tag in ("a", "b"):
        store.change("tag", Author(), lambda draft, tag=tag: draft.update_cluster(tags=(tag,)))
    store.close()
    assert copies.sent == [True, True]
