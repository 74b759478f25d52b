"""Entry point of gnt-storage."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ganeti.cli import program, programs


def main(argv: Sequence[str] | None = None) -> int:
    """Run gnt-storage with these words (default: those of the process); the exit code."""
    return program.main(programs.STORAGE, argv)


if __name__ == "__main__":
    sys.exit(main())
