"""Node calls about the versions of this software that are installed side by side."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading

from ganeti import constants
from ganeti.base import files, releases
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.versions import VersionCalls
from ganeti.rpc.objects import VersionState

log = logging.getLogger(__name__)

#: Program that stops and starts this daemon, so it must not be a part of it.
_MODULE = "ganeti.bootstrap.daemon_util"
#: Bytes of messages of that program that are kept.
_MOST = 2000


class Versions(VersionCalls):
    """The versions on this node."""

    def __init__(self, context: NodeContext) -> None:
        self._paths = context.paths
        self._lock = threading.Lock()
        self._switch: subprocess.Popen[bytes] | None = None

    def version_state(self) -> VersionState:
        active = releases.find_active(self._paths)
        with self._lock:
            switching = self._switch is not None or files.is_locked(self._paths.version_lock)
        return VersionState(
            running=str(releases.OWN),
            release=constants.RELEASE_VERSION,
            active="" if active is None else str(active),
            installed=[str(each) for each in releases.list_installed(self._paths)],
            switching=switching,
            problem="" if switching else self._read_problem(),
        )

    def _read_problem(self) -> str:
        with contextlib.suppress(OSError):
            problem = self._paths.version_problem.read_bytes()[-_MOST:]
            return problem.decode("utf-8", "replace").strip()
        return ""

    def version_switch(self, version: str) -> None:
        """Start the program that does it; nothing is done while one is at work.

        Raises:
            ParameterError: this is not a version.
            OpPrereqError: it is not installed on this node.
        """
        wanted = releases.parse(version)
        releases.directory_of(wanted, self._paths)
        with self._lock:
            if self._switch is not None:
                return
            log.warning("switching this node to version %s, as the master asks", wanted)
            words = releases.isolate(sys.executable, _MODULE)
            # In a session of its own, and with a file to write to: it outlives this daemon.
            with self._paths.version_problem.open("wb") as problem:
                self._switch = subprocess.Popen(
                    [*words, "switch-version", str(wanted)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=problem,
                    env=dict(os.environ),
                    start_new_session=True,
                )
            threading.Thread(
                target=self._wait, args=(self._switch,), name="version-switch", daemon=True
            ).start()

    def _wait(self, switch: subprocess.Popen[bytes]) -> None:
        code = switch.wait()
        with self._lock:
            self._switch = None
        if code:
            log.error("this node keeps its version (%d): %s", code, self._read_problem())
