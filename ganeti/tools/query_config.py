"""query-config: print a part of the configuration of this node."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import json_pointer, jsonio
from ganeti.config import redaction
from ganeti.tools import entry
from ganeti.tools.sanitize_config import read

PROGRAM = "query-config"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when it was printed; 1 when there is no such value, or no configuration."""
    options = parser().parse_args(argv)
    return entry.run(
        PROGRAM, lambda: _print(options.path, options.pointer, secrets=options.with_secrets)
    )


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Print a part of the configuration as JSON, as this node has it. The part is"
        " named by a JSON pointer such as /cluster/cluster_name. It reads files only, so it works"
        " without the master daemon, on each master candidate.",
        epilog="Exit codes: 0 done; 1 there is no such value, or no configuration; 2 wrong"
        " options.",
    )
    made.add_argument(
        "pointer", nargs="?", default="", metavar="POINTER", help="what to print (default: all)"
    )
    made.add_argument(
        "--path",
        type=Path,
        metavar="FILE",
        help="config.data of any version to read (default: the configuration of this node)",
    )
    made.add_argument(
        "--with-secrets", action="store_true", help="print secrets, too, instead of <redacted>"
    )
    return made


def _print(path: Path | None, pointer: str, *, secrets: bool) -> int:
    data = read(path)
    try:
        found = json_pointer.find(data if secrets else redaction.redact(data), pointer)
    except (LookupError, ValueError) as err:
        raise errors.make_invalid_error(str(err.args[0])) from None
    print(jsonio.format_pretty(found))
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
