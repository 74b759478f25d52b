"""The whole way from packages to a login; ``make check-images`` runs it.

Without ``IMAGES`` in the environment nothing here is collected, because it takes ten minutes.
``IMAGES_FILE`` names an image that was made before.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cluster"))

if not os.environ.get("IMAGES"):
    collect_ignore_glob = ["test_*.py"]
