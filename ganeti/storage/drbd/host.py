"""The DRBD module of this node: its version, its helper, what is set up in it."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.paths import Paths
from ganeti.storage.drbd import dialect, proc
from ganeti.storage.drbd.dialect import Dialect
from ganeti.storage.drbd.v84 import Version84

#: Where the module shows the program that it calls on events.
_HELPER = "/sys/module/drbd/parameters/usermode_helper"


def helper(paths: Paths) -> str:
    """The program that the module calls on events, such as ``/bin/true``.

    It must not be DRBD's own ``/sbin/drbdadm``, which looks for devices in files that a cluster
    manager does not write, and could so make the kernel drop a connection.

    Raises:
        BlockDeviceError: the module is not loaded, or names none.
    """
    try:
        found = Path(paths.local(_HELPER)).read_text().strip()
    except OSError as err:
        raise errors.BlockDeviceError(
            f"the DRBD module is not loaded on this node ({_HELPER}: {err.strerror})"
        ) from err
    if not found:
        raise errors.BlockDeviceError(f"the DRBD module has no helper ({_HELPER} is empty)")
    return found


def version_text(paths: Paths) -> str:
    """Version of the module, as ``8.4.11``; BlockDeviceError when it is not loaded."""
    return ".".join(map(str, dialect.version(paths)))


def minors(paths: Paths) -> list[int]:
    """Minors that are set up; BlockDeviceError when the module is not loaded."""
    return current(paths).minors()


def current(paths: Paths) -> Dialect:
    """The dialect of the loaded module.

    Raises:
        BlockDeviceError: no module, or a version that is not handled.
    """
    proc.check_version(dialect.version(paths))
    return Version84(paths)
