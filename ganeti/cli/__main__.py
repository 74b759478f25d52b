"""Entry point of all gnt-* programs.

The program is the one whose name this process has, else the first word:
``python -m ganeti.cli gnt-instance list``.
"""

from __future__ import annotations

import sys
from pathlib import PurePath

from ganeti.cli import program
from ganeti.cli.programs import PROGRAMS


def main() -> int:
    """Run the program with the words of this process; the exit code."""
    name, words = PurePath(sys.argv[0]).name, sys.argv[1:]
    if name not in PROGRAMS:
        name, words = (words or [""])[0], words[1:]
    if name not in PROGRAMS:
        print(f"usage: python -m ganeti.cli {{{'|'.join(PROGRAMS)}}} ...", file=sys.stderr)
        return 2
    return program.main(PROGRAMS[name], words)


if __name__ == "__main__":
    sys.exit(main())
