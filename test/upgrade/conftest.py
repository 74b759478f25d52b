"""Two versions side by side on a real cluster; ``make check-upgrade`` runs it.

Without ``UPGRADE`` in the environment nothing here is collected, because it takes some minutes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cluster"))

if not os.environ.get("UPGRADE"):
    collect_ignore_glob = ["test_*.py"]
