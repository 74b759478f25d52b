"""How the programs of this package refuse, and say why."""

from __future__ import annotations

import sys


class Refused(Exception):
    """The program cannot do what was asked; the exit code says why to programs."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def warn(program: str, text: str) -> None:
    """A line on standard error, after all that was printed before."""
    sys.stdout.flush()
    print(f"{program}: {text}", file=sys.stderr)
