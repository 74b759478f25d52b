"""Xen's own word that a domain ended: the store fires ``@releaseDomain`` whenever one does."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable

from ganeti import errors
from ganeti.base import process
from ganeti.base.clock import SYSTEM

log = logging.getLogger(__name__)

#: Prints a line for each event, and one at its begin; of Debian's xen-utils-common.
ARGV = ("xenstore-watch", "@releaseDomain")
#: Seconds that xl gets to begin the next domain of a guest that reboots.
SETTLE = 2.0
_STOP_WAIT = 5.0


def watch(on_end: Callable[[], None]) -> Callable[[], None]:
    """Call ``on_end`` some seconds after a domain ended; returns how that is stopped.

    Raises:
        HypervisorError: the program cannot be started.
    """
    try:
        child = subprocess.Popen(
            ARGV,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={"PATH": process.search_path(), "LC_ALL": "C"},
        )
    except OSError as err:
        raise errors.HypervisorError(
            f"cannot run {ARGV[0]}: {err.strerror}; install xen-utils-common"
        ) from err
    stopped = threading.Event()
    thread = threading.Thread(target=_follow, args=(child, on_end, stopped), name="xen-ends")
    thread.daemon = True
    thread.start()

    def stop() -> None:
        stopped.set()
        child.kill()
        thread.join(_STOP_WAIT)

    return stop


def _follow(
    child: subprocess.Popen[bytes], on_end: Callable[[], None], stopped: threading.Event
) -> None:
    assert child.stdout is not None
    with child.stdout as stream:
        for _line in stream:
            SYSTEM.sleep(SETTLE)
            if stopped.is_set():
                break
            on_end()
    child.wait()
    if not stopped.is_set():
        log.warning("%s has ended; the watcher restarts domains that end", ARGV[0])
