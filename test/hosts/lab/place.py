"""Where the lab keeps things: a cache that stays, and a directory for each run that goes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The variable that moves the cache.
VARIABLE = "GANETI_LAB"
REPOSITORY = Path(__file__).resolve().parents[3]
SOURCES = Path(__file__).resolve().parent


class LabError(Exception):
    """The lab itself cannot go on; the text tells what to do."""


class Unavailable(LabError):
    """This machine cannot run the lab (not root, no QEMU, no network)."""


def cache() -> Path:
    """The directory of downloads and of what is made of them."""
    default = Path(os.environ.get("TMPDIR") or "/tmp") / "ganeti-lab"
    path = Path(os.environ.get(VARIABLE) or default)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def run_directory() -> Iterator[Path]:
    """A directory for one run, with disks, logs and sockets; removed at the end.

    Directories of runs that were killed are removed, too.
    """
    runs = cache() / "run"
    runs.mkdir(exist_ok=True)
    for old in runs.iterdir():
        if not Path(f"/proc/{old.name.partition('-')[0]}").exists():
            shutil.rmtree(old, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=runs))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def lock(what: str, directory: Path | None = None) -> Iterator[None]:
    """Keep other processes of the lab from doing the same; blocks until they are done.

    ``directory`` is known to those alone who shall wait for each other; the cache if not given.
    """
    with ((directory or cache()) / f".{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def being_made(target: Path) -> Iterator[Path]:
    """A new directory that becomes ``target`` if all goes well, and vanishes if not.

    Of several processes one makes it after the other; what the second one makes is thrown away.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock(target.name):
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        made.chmod(0o755)
        try:
            yield made
            if not target.exists():
                made.rename(target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
