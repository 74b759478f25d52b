"""How new the copy of the master's state on this node is, and whether it was made here.

The file ``<data>/position`` has the form ``<term> <number>``, with a third word on the node whose
master made the state.
"""

from __future__ import annotations

import os

from ganeti.base import files
from ganeti.paths import Paths

#: How new a copy of the state is: the term of the master that wrote it, and a number that grows
#: with every write of that master. Of two copies the one with the larger has all of the other.
Position = tuple[int, int]

#: Third word of the file on the node whose master made the state.
_OWN = "own"


def read(paths: Paths) -> Position:
    """Position of the state on this node; (0, 0) when it is not known."""
    return _read_stored(paths)[0]


def is_made_here(paths: Paths) -> bool:
    """Whether the state was made by a master on this node.

    Then no copy has more of that term, whatever the numbers say: they are not flushed.
    """
    return _read_stored(paths)[1]


def _read_stored(paths: Paths) -> tuple[Position, bool]:
    try:
        words = files.read_text(paths.position_file).split()
    except FileNotFoundError:
        return (0, 0), False
    if len(words) < 2 or not all(word.isdigit() for word in words[:2]):
        return (0, 0), False
    return (int(words[0]), int(words[1])), words[2:] == [_OWN]


def text_of(position: Position, *, own: bool) -> str:
    """Content of the file; always as long for the same owner, so that it can be overwritten."""
    return f"{position[0]:020d} {position[1]:020d}{f' {_OWN}' if own else ''}\n"


def write(paths: Paths, position: Position, *, own: bool = False) -> None:
    """Note how new the state is; call it when the state is on disk.

    Only a new term is flushed: a number lost in a power cut makes the copy look older than it is,
    which is safe.
    """
    old, was_own = _read_stored(paths)
    if position <= old:
        return
    text = text_of(position, own=own)
    if position[0] != old[0] or own != was_own:
        files.write_atomic(paths.position_file, text, mode=0o644)
        return
    fd = os.open(paths.position_file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, text.encode("ascii"), 0)
    finally:
        os.close(fd)
