"""ensure-dirs: make the directories of a node, and give files with secrets to their owner alone."""

from __future__ import annotations

import argparse
import grp
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ganeti import constants, paths
from ganeti.base import files
from ganeti.paths import Paths
from ganeti.tools import entry

PROGRAM = "ensure-dirs"


def main(argv: Sequence[str] | None = None) -> int:
    """0 all is as it should be; 1 something could not be changed."""
    options = parser().parse_args(argv)

    def say(text: str) -> None:
        if options.verbose or options.debug:
            print(f"{PROGRAM}: {text}", file=sys.stderr)

    return entry.run(PROGRAM, lambda: _work(paths.current(), full=options.full_run, say=say))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Make missing directories of a node and set their modes and groups, and the"
        " modes of files with keys and secrets. The daemons do the same when they start.",
        epilog="Exit codes: 0 done; 1 something could not be changed; 2 wrong options.",
    )
    made.add_argument("--full-run", action="store_true", help="also all files of the job queue")
    made.add_argument("-v", "--verbose", action="store_true", help="print each change")
    made.add_argument("-d", "--debug", action="store_true", help="like --verbose")
    return made


def _directories(where: Paths) -> Iterator[tuple[Path, int, bool]]:
    """Directories, their modes, and whether daemons without root need them."""
    yield where.data, 0o750, True
    yield where.queue, 0o750, False
    yield where.queue / "archive", 0o750, False
    yield where.rapi, 0o750, True
    yield where.run, 0o775, True
    yield where.socket_dir, 0o770, True
    yield where.log, 0o770, True
    yield where.os_log, 0o750, False
    yield where.conf, 0o755, False
    yield where.locks, 0o755, False


def _secrets(where: Paths) -> Iterator[tuple[Path, int]]:
    """Files with keys, and the most that others may do with them."""
    yield where.ca_key, 0o600
    for path in (where.server_cert, where.client_cert):
        yield path, 0o600
    for path in (where.hmac_key, where.domain_secret):
        yield path, 0o640


def _work(where: Paths, *, full: bool, say: Callable[[str], None]) -> int:
    group = _group()
    for directory, mode, shared in _directories(where):
        if not directory.exists():
            say(f"make {directory}")
            files.ensure_dir(directory, mode)
        if where.data == directory and directory.stat().st_mode & 0o007 == 0o005:
            mode = 0o755  # readable by all, as gnt-cluster init makes it
        _set(directory, mode, group if shared else -1, say)
    for path, most in _secrets(where):
        if path.exists():
            _set(path, path.stat().st_mode & most, -1, say)
    if full:
        for path in sorted(where.queue.rglob("*")):
            if not path.is_symlink():
                _set(path, 0o750 if path.is_dir() else 0o640, -1, say)
    return constants.EXIT_SUCCESS


def _group() -> int:
    try:
        return grp.getgrnam(constants.DAEMONS_GROUP).gr_gid
    except KeyError:
        return -1


def _set(path: Path, mode: int, group: int, say: Callable[[str], None]) -> None:
    found = path.stat()
    if found.st_mode & 0o7777 != mode:
        say(f"{path}: mode {found.st_mode & 0o7777:o} becomes {mode:o}")
        path.chmod(mode)
    if group not in (-1, found.st_gid):
        say(f"{path}: group becomes {constants.DAEMONS_GROUP}")
        os.chown(path, -1, group)


if __name__ == "__main__":
    sys.exit(main())
