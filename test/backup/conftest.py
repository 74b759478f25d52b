"""Random schedules of backups; ``make check-backup`` runs them.

Without ``BACKUP_SCHEDULES`` in the environment nothing here is collected, because 200 of them take
half an hour. ``BACKUP_SEED`` chooses others. With ``BACKUP_PROGRAM`` (``restic`` or
``borg``) they use a repository of that program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cluster"))

if not os.environ.get("BACKUP_SCHEDULES"):
    collect_ignore_glob = ["test_*.py"]
