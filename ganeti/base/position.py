"""How new the copy of the master's state on this node is, and whether it was made here.

The file ``<data>/position`` has the form ``<term> <number>``. On the node whose master made the
state, ``own`` and the boot of the server follow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ganeti.base import boot, files
from ganeti.paths import Paths

#: How new a copy of the state is: the term of the master that wrote it, and a number that grows
#: with every write of that master. Of two copies the one with the larger has all of the other.
Position = tuple[int, int]

#: Third word of the file on the node whose master made the state.
_OWN = "own"


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that this node has about its own copy."""

    #: (0, 0): not known
    position: Position = (0, 0)
    #: a master on this node made the state: no copy has more of that term
    made_here: bool = False
    #: the server was booted since, and the last number may be lost: the state may be
    #: newer than ``position``
    may_be_newer: bool = False


def read(paths: Paths) -> Known:
    """Read the facts from the file; there are none without one, or in a damaged one."""
    try:
        words = files.read_text(paths.position_file).split()
    except FileNotFoundError:
        return Known()
    if len(words) < 2 or not all(word.isdigit() for word in words[:2]):
        return Known()
    position = (int(words[0]), int(words[1]))
    if words[2:3] != [_OWN]:
        return Known(position)
    return Known(position, made_here=True, may_be_newer=words[3:] != [boot.read_id()])


def make_own_text(position: Position) -> str:
    """Content of the file on the master's node; its length is always the same."""
    return f"{_format(position)} {_OWN} {boot.read_id()}\n"


def _format(position: Position) -> str:
    return f"{position[0]:020d} {position[1]:020d}"


def begin_own(paths: Paths, position: Position) -> None:
    """Note that a master on this node makes the state from now on, if it has a newer term."""
    if position > read(paths).position:
        files.write_atomic(paths.position_file, make_own_text(position), mode=0o644)


def write(paths: Paths, position: Position) -> None:
    """Note how new a copy that came from the master is, durably; when the copy is on disk.

    A lost number would make this copy look older than another one that has less.
    """
    known = read(paths)
    if position <= known.position:
        return
    text = f"{_format(position)}\n"
    if position[0] != known.position[0] or known.made_here:
        files.write_atomic(paths.position_file, text, mode=0o644)
        return
    fd = os.open(paths.position_file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, text.encode("ascii"), 0)
        os.fdatasync(fd)
    finally:
        os.close(fd)
