"""Entry point of gnt-network."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ganeti.cli import program, programs


def main(argv: Sequence[str] | None = None) -> int:
    """Run gnt-network with these words (default: those of the process); the exit code."""
    return program.main(programs.NETWORK, argv)


if __name__ == "__main__":
    sys.exit(main())
