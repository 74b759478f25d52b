"""What the code knows of single disk templates outside their drivers; it may only become less."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "ganeti"
#: Uses of a template by its name, and the files with them. Lower these when there are fewer.
#: The last two came with exports, whose ``config.ini`` names the template of a guest without disks,
#: and with copies of backups that are booted: placement finds a node for a guest without disks.
DISKLESS_USES, DISKLESS_FILES = 22, 15
#: DRBD has its minors, ports and helper in the configuration. The watcher sees no driver, and
#: leaves disks of template ext alone.
OTHERS = {"config/drbd.py": 2, "upkeep/view.py": 1}


def test_others_ask_for_traits_not_for_names() -> None:
    diskless: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith("storage/"):
            for member in re.findall(r"\bDiskTemplate\.([A-Z]+)\b", path.read_text()):
                (diskless if member == "DISKLESS" else others)[name] += 1
    assert dict(others) == OTHERS
    assert (diskless.total(), len(diskless)) == (DISKLESS_USES, DISKLESS_FILES)
