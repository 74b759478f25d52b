"""The boot of this server that is running now."""

from __future__ import annotations

import functools
from pathlib import Path

_PATH = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def read_id() -> str:
    """The identity of this boot (a UUID), which changes with every boot; OSError without /proc."""
    return _PATH.read_text(encoding="ascii").strip()
