"""Part of the versions that the tests install: the end of a program at a place of its code."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def here(place: str) -> None:
    """Kill this process when the file ``die`` of its node says so, once."""
    path = Path(os.environ["GANETI_ROOTDIR"], "die")
    if path.exists() and path.read_text() == place:
        path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
