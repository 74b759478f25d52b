"""What holds for all tests."""

from __future__ import annotations

import os

# Tests start the programs hundreds of times; their modules are to be compiled once for all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
