"""Standard output of a program."""

from __future__ import annotations

import os
import sys


def drop() -> None:
    """Write no more: its reader has enough, as after ``| head``.

    Without this the interpreter complains at its end that it cannot flush.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
