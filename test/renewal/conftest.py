"""Certificates of five nodes are replaced under load; ``make check-renewal`` runs it.

Without ``RENEWAL`` in the environment nothing here is collected, because it takes some minutes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cluster"))

if not os.environ.get("RENEWAL"):
    collect_ignore_glob = ["test_*.py"]
