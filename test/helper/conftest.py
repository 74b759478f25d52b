"""A Linux as helper guest; ``make check-helper`` runs it.

Without ``HELPER`` in the environment nothing here is collected, because it takes minutes.
``HELPER_IMAGE`` names an image that was made before.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for name in ("cluster", "hosts"):
    sys.path.append(str(Path(__file__).resolve().parent.parent / name))

if not os.environ.get("HELPER"):
    collect_ignore_glob = ["test_*.py"]
