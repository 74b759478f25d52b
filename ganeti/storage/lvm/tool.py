"""Running the LVM tools."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ganeti import errors, paths
from ganeti.base import process

#: Seconds a tool may take; it waits for the lock of the volume group as well.
TIMEOUT = 300.0

#: Variables of LVM itself that the administrator may have set for the daemon.
_OWN_VARIABLES = ("LVM_SYSTEM_DIR", "DM_DISABLE_UDEV")


def run(argv: Sequence[str]) -> str:
    """Standard output of an LVM tool. Blocks until the tool ends, at most five minutes.

    Raises:
        BlockDeviceError: it failed or is not installed; the text has its own words.
    """
    try:
        result = process.run(argv, timeout=TIMEOUT, env=_environment())
    except errors.CommandError as err:
        if shutil.which(argv[0], path=process.search_path()) is None:
            raise errors.BlockDeviceError(
                f"LVM is not installed on this node: there is no program {argv[0]}"
            ) from err
        raise errors.BlockDeviceError(errors.text(err)) from err
    if result.timed_out:
        raise errors.BlockDeviceError(result.explain())
    if result.code != 0:
        raise errors.BlockDeviceError(f"{argv[0]}: {reason(result.stderr, result.code)}")
    return result.stdout


def _environment() -> dict[str, str]:
    environment = {
        "PATH": process.search_path(),
        "LC_ALL": "C",
        # Descriptors of the daemon that the tool inherits need no warning.
        "LVM_SUPPRESS_FD_WARNINGS": "1",
    }
    environment.update((name, os.environ[name]) for name in _OWN_VARIABLES if name in os.environ)
    if paths.is_rooted() and "LVM_SYSTEM_DIR" not in environment:
        # A cluster inside a directory must not reach for the volume groups of the machine.
        directory = paths.current().under("/etc/lvm")
        if not (directory / "lvm.conf").is_file():
            raise errors.BlockDeviceError(
                f"this node lives below {paths.current().root} and has no LVM of its own there:"
                f" {directory}/lvm.conf does not exist"
            )
        environment["LVM_SYSTEM_DIR"] = str(directory)
    return environment


def reason(stderr: str, code: int) -> str:
    """The error message of a tool, without its warnings unless there is nothing else. Pure."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    plain = [line for line in lines if not line.startswith("WARNING:")]
    return "; ".join((plain or lines)[-3:]) or f"exit code {code}"
