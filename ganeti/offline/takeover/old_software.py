"""The other software on a node: stop it, keep it from starting, and the reverse."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process, retry
from ganeti.offline import data_directory
from ganeti.offline.takeover import look
from ganeti.paths import Paths

#: Seconds for all daemons to stop; jobs have ended by then.
_STOP_TIMEOUT = 120.0
_START_TIMEOUT = 180.0
#: Files that start it: cron table of the watcher, script at boot, links to the version in use.
#: Without those links Debian removes its packages without a question.
STARTERS = (
    "/etc/cron.d/ganeti",
    "/etc/init.d/ganeti",
    "/etc/ganeti/lib",
    "/etc/ganeti/share",
)
_SCRIPT = "/etc/init.d/ganeti"
_UTIL = "/usr/lib/ganeti/daemon-util"


def stop(where: Paths) -> None:
    """Stop its daemons; guests run on. Blocks two minutes at most.

    Raises:
        OpExecError: a daemon does not stop; the text names its process.
    """
    if _running(where):
        for argv in _commands(where, "stop", "stop-all"):
            process.run(argv, timeout=_STOP_TIMEOUT)
            break
    left = retry.retry_until(lambda: not _running(where) or None, timeout=10.0, largest=0.5)
    if left is None:
        named = ", ".join(f"{name} (process {pid})" for name, pid in _running(where).items())
        raise errors.OpExecError(
            f"{named} cannot be stopped; end it with kill, then run this command again"
        )


def start(where: Paths) -> bool:
    """Start its daemons; False when it is not installed.

    Raises:
        OpExecError: the script failed; the text is its own.
    """
    for argv in _commands(where, "start", "start-all"):
        result = process.run(argv, timeout=_START_TIMEOUT)
        if not result.ok:
            raise errors.OpExecError(result.explain())
        return True
    return False


def is_installed(where: Paths) -> bool:
    """Whether its programs are here; ours has no directory for each version."""
    return any(where.under("/usr/share/ganeti").glob("[23].*/ganeti-noded"))


def _commands(where: Paths, verb: str, action: str) -> Iterator[list[str]]:
    if not is_installed(where):
        return
    script, util = where.under(_SCRIPT), where.under(_UTIL)
    if os.access(script, os.X_OK):
        yield [str(script), verb]
    if os.access(util, os.X_OK):
        yield [str(util), action]


def _running(where: Paths) -> dict[str, int]:
    found = {}
    for name in look.OLD_DAEMONS:
        pid = data_directory.daemon_pid(name, where.pid_file(name))
        if pid is not None and not look.is_ours(pid):
            found[name] = pid
    return found


def move_away(where: Paths, names: Iterable[str], target: Path) -> None:
    """Move files into a directory. Those that are gone are skipped, so it can be done again."""
    files.ensure_dir(target, 0o700)
    for name in names:
        path, new = where.under(name), _place(target, name)
        if os.path.lexists(path) and not os.path.lexists(new):
            shutil.move(path, new)
    files.fsync_dir(target)


def move_back(where: Paths, names: Iterable[str], source: Path) -> None:
    """The reverse. A file that lies there by now stays; a link is that of our version, and goes."""
    for name in names:
        path, kept = where.under(name), _place(source, name)
        if not os.path.lexists(kept):
            continue
        if path.is_symlink():
            path.unlink()
        if not os.path.lexists(path):
            files.ensure_dir(path.parent, 0o755)
            shutil.move(kept, path)


def _place(directory: Path, name: str) -> Path:
    return directory / name.strip("/").replace("/", "-")
