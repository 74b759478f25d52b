"""The DRBD module of this node: its version, its helper, what is set up in it."""

from __future__ import annotations

import re
from pathlib import Path

from ganeti import errors
from ganeti.paths import Paths
from ganeti.storage.drbd import dialect, proc, tool
from ganeti.storage.drbd.dialect import Dialect
from ganeti.storage.drbd.v84 import Version84

#: Names of resources as this software gives them.
_OWN = re.compile(r"resource[0-9]+")
#: File in which the module shows the program that it calls on events.
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


def own_resources(paths: Paths) -> list[str]:
    """Resources that are set up and have a name as Ganeti gives it; none without the module.

    Raises:
        BlockDeviceError: the state of a device cannot be read, or the version is not handled.
    """
    if not Path(paths.local("/proc/drbd")).exists():
        return []
    found = current(paths)
    setups = [found.observe(minor)[0] for minor in found.minors()]
    return [each.resource for each in setups if each is not None and _OWN.fullmatch(each.resource)]


def take_down(resource: str) -> None:
    """End a resource; its data stay on the volumes. BlockDeviceError while it is open."""
    tool.run(["drbdsetup", "down", resource])
