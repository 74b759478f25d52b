"""A file system in memory for what tests write: no fsync waits, no disk is worn.

Where root may mount, the run gets a mount namespace of its own with a tmpfs; it vanishes with the
last process of the run, so nothing is left to clear up. Elsewhere, and where ``TMPDIR`` or
``PYTEST_DEBUG_TEMPROOT`` names a place, tests write to that place as usual.
"""

from __future__ import annotations

import ctypes
import os
import tempfile

_CLONE_NEWNS = 0x20000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
#: Bytes; a run of all tests needs a quarter of it.
_SIZE = 4 << 30
_CHOSEN = ("PYTEST_DEBUG_TEMPROOT", "TMPDIR")


def use() -> None:
    """Give this process and those that it starts the file system, if that is possible.

    Call it before the process has threads.
    """
    if os.geteuid() != 0 or any(name in os.environ for name in _CHOSEN) or _free() < _SIZE:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) or libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None):
        return
    # Short names: paths of UNIX sockets must fit into 108 bytes.
    mount = os.path.join(tempfile.gettempdir(), "pymem")
    os.makedirs(mount, mode=0o755, exist_ok=True)
    options = f"size={_SIZE},mode=1777".encode()
    if libc.mount(b"tmpfs", os.fsencode(mount), b"tmpfs", 0, options) == 0:
        # A path that no other run has: addresses of local clusters and the search for their
        # processes follow from it, and both are shared by all runs.
        place = os.path.join(mount, str(os.getpid()))
        os.mkdir(place)
        os.chmod(place, 0o1777)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = place


def _free() -> int:
    """Bytes of memory that are available."""
    with open("/proc/meminfo") as facts:
        for line in facts:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0
