"""Marks of tests that skip where this machine has no such program or permission."""

from __future__ import annotations

import os
import shutil

import pytest


def needs_programs(*names: str) -> pytest.MarkDecorator:
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def needs_root(purpose: str) -> pytest.MarkDecorator:
    """``purpose``: what only root can do, as "to mount"."""
    return pytest.mark.skipif(os.geteuid() != 0, reason=f"needs root {purpose}")
