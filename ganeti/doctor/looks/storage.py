"""Volume groups, and room for configuration, jobs and logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ganeti import errors
from ganeti.doctor.facts import Space, Storage, Wish
from ganeti.paths import Paths
from ganeti.storage.lvm import report


def read(where: Paths, wish: Wish) -> Storage:
    """Asks LVM only when a volume group is wanted; it waits for its locks."""
    spaces = tuple(_spaces(where))
    if not wish.volume_group:
        return Storage(spaces=spaces)
    try:
        groups = {group.vg_name: group.vg_free for group in report.groups()}
    except errors.BlockDeviceError as err:
        return Storage(problem=errors.text(err), spaces=spaces)
    return Storage(groups, spaces=spaces)


def _spaces(where: Paths) -> Iterator[Space]:
    """Of each file system once."""
    seen = set()
    for directory in (where.data, where.log, where.run):
        place = _find_existing(directory)
        device = os.stat(place).st_dev
        if device in seen:
            continue
        seen.add(device)
        facts = os.statvfs(place)
        yield Space(
            str(place),
            facts.f_bavail * facts.f_frsize,
            facts.f_favail if facts.f_files else None,
            bool(facts.f_flag & os.ST_RDONLY),
        )


def _find_existing(directory: Path) -> Path:
    return next(each for each in (directory, *directory.parents) if each.exists())
