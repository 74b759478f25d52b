"""cleaner: remove old files; a timer or cron starts it once a day."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files
from ganeti.base.clock import SYSTEM, Clock
from ganeti.net import certs
from ganeti.paths import Paths

PROGRAM = "ganeti-cleaner"
#: Days after which something is removed, and how many logs of earlier runs stay.
MAX_AGE_DAYS = 21
KEEP_LOGS = 50
_DAY = 86400.0


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all is clean, or this node belongs to no cluster; 1 when something stays."""
    what = parser().parse_args(argv).what
    where = paths.current()
    if not where.ssconf("master_node").exists():
        return constants.EXIT_SUCCESS
    problems = clean(what, where, SYSTEM)
    for problem in problems:
        print(f"{PROGRAM}: {problem}", file=sys.stderr)
    return constants.EXIT_FAILURE if problems else constants.EXIT_SUCCESS


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Remove old files. Run it once a day on each node, first with master, then with"
        " node. With master it removes the files of archived jobs that ended more than"
        f" {MAX_AGE_DAYS} days ago. With node it removes expired keys of transfers, and state files"
        " of the watcher that have not changed for that time.",
        epilog=f"The last {KEEP_LOGS} logs are in master-cleaner and cleaner below the directory of"
        " logs. Exit codes: 0 done, or this node belongs to no cluster; 1 something could not be"
        " removed; 2 wrong options.",
    )
    made.add_argument("what", choices=tuple(_WORK), help="what is cleaned")
    return made


def clean(what: str, where: Paths, clock: Clock) -> list[str]:
    """Remove what is old, and write a log of it; returns what could not be removed."""
    log, find = _WORK[what]
    directory = where.log / log
    now = clock.now()
    removed: list[str] = []
    problems: list[str] = []
    for path in find(where, now):
        try:
            _remove(path)
        except OSError as err:
            problems.append(f"cannot remove {path}: {err.strerror}")
        else:
            removed.append(str(path))
    lines = [f"removed {path}\n" for path in removed] + [f"{text}\n" for text in problems]
    try:
        _write_log(directory, now, lines)
    except OSError as err:
        problems.append(f"cannot write a log: {files.failure(err)}")
    return problems


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        files.remove(path)


def _write_log(directory: Path, now: float, lines: Sequence[str]) -> None:
    """One file for each run; only the newest stay."""
    files.ensure_dir(directory, 0o750)
    stamp = time.strftime("%Y-%m-%dT%H_%M_%S", time.gmtime(now))
    files.write_atomic(directory / f"cleaner-{stamp}.log", "".join(lines), mode=0o600)
    for old in sorted(directory.glob("cleaner-*.log"))[:-KEEP_LOGS]:
        files.remove(old)


# what is old -------------------------------------------------------------------------------------


def _find_master_files(where: Paths, now: float) -> Iterator[Path]:
    """Archived jobs; each master candidate has their files."""
    yield from _select_unchanged(where.queue.glob("archive/*/job-*"), now)


def _find_node_files(where: Paths, now: float) -> Iterator[Path]:
    yield from _select_unchanged(where.data.glob("watcher.*.data"), now)
    yield from _select_unchanged(where.data.glob("watcher.*.instance-status"), now)
    for directory in sorted((where.run / "crypto").glob("*")):
        if _has_expired(directory / "cert", now):
            yield directory


def _select_unchanged(found: Iterator[Path], now: float) -> Iterator[Path]:
    """Files that have not changed for long; a file that no longer exists is left out."""
    for path in sorted(found):
        try:
            changed = path.lstat().st_mtime
        except FileNotFoundError:
            continue
        if changed < now - MAX_AGE_DAYS * _DAY:
            yield path


def _has_expired(cert: Path, now: float) -> bool:
    try:
        return certs.inspect(cert).not_after <= now
    except errors.X509CertError:
        return False


#: Word of the command line -> name of the directory of logs, and what finds old files.
_WORK: Mapping[str, tuple[str, Callable[[Paths, float], Iterator[Path]]]] = {
    "master": ("master-cleaner", _find_master_files),
    "node": ("cleaner", _find_node_files),
}


if __name__ == "__main__":
    sys.exit(main())
