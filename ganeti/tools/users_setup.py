"""users-setup: create the users and groups that daemons run as instead of root."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from ganeti import constants
from ganeti.base import process
from ganeti.doctor import users
from ganeti.tools import entry

PROGRAM = "users-setup"
_PATIENCE = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all users and groups exist; 1 when some are missing, or one cannot be created."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _set_up(yes=options.yes_do_it))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Create the users and groups that daemons can run as instead of root. The"
        " packages do the same. Without --yes-do-it it only prints the commands.",
        epilog="Exit codes: 0 all of them exist; 1 some are missing, or one could not be created;"
        " 2 wrong options.",
    )
    made.add_argument("--yes-do-it", action="store_true", help="create what is missing")
    return made


def _set_up(*, yes: bool) -> int:
    missing = users.find_missing()
    for command in missing:
        print(shlex.join(command), flush=True)
        if yes:
            process.run_checked(command, timeout=_PATIENCE)
    if missing and not yes:
        print("Nothing was created; --yes-do-it runs these commands", file=sys.stderr)
        return constants.EXIT_FAILURE
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
