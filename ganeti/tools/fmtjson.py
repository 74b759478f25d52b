"""fmtjson: print JSON so that people can read it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.tools import entry

PROGRAM = "fmtjson"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all was printed; 1 when something is not JSON or cannot be read."""
    found = parser().parse_args(argv).files or ["-"]
    return entry.run(PROGRAM, lambda: _print(found))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Print JSON with one member on each line, in the order of the names, such as"
        " config.data or the file of a job.",
        epilog="Exit codes: 0 done; 1 something is not JSON or cannot be read; 2 wrong options.",
    )
    made.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="files with JSON; without, or for -, standard input",
    )
    return made


def _print(names: Sequence[str]) -> int:
    for name in names:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        try:
            value = jsonio.loads(data)
        except errors.ParseError as err:
            raise errors.ParseError(f"{name} is not JSON: {errors.text(err)}") from err
        print(jsonio.format_pretty(value))
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
