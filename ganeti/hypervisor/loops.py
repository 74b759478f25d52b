"""Loop devices for disks that are files, for guests that can only be given devices."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.base import files, process

PROGRAM = "losetup"
_QUICK = 30.0


def attach(path: str, *, read_only: bool) -> str:
    """A new loop device on a file; HypervisorError in losetup's own words."""
    mode = ["--read-only"] if read_only else []
    result = process.run([PROGRAM, "--find", "--show", *mode, "--", path], timeout=_QUICK)
    if not result.ok:
        raise errors.HypervisorError(result.explain())
    return result.stdout.strip()


def detach(device: str, path: str) -> None:
    """Free a loop device if it still is on that file. Idempotent.

    Raises:
        HypervisorError: losetup's own words.
    """
    if backing(device) != str(Path(path).resolve()):
        return
    result = process.run([PROGRAM, "--detach", device], timeout=_QUICK)
    if not result.ok and backing(device) is not None:
        raise errors.HypervisorError(result.explain())


def backing(device: str) -> str | None:
    """The file behind a device, None when it is not a loop device in use."""
    path = Path("/sys/block") / Path(device).name / "loop/backing_file"
    try:
        return files.read_text(path).rstrip("\n").removesuffix(" (deleted)")
    except OSError:
        return None
