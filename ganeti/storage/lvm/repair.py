"""A volume group that lost a disk, made consistent again."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.storage.lvm import report, tool

log = logging.getLogger(__name__)


def fix_consistency(group: str) -> None:
    """Drop physical volumes that are gone from a group; fine when none is.

    Volumes that had a part there are removed as a whole: what is left of them is not a disk any
    more. Mirrored instances get theirs back from the other node by replacing the disk.

    Raises:
        BlockDeviceError: LVM refuses, or the group misses a disk even afterwards.
    """
    if not report.group(group).vg_missing_pv_count:
        return
    lost = [volume.lv_name for volume in report.volumes([group]) if volume.is_faulty]
    gone = [
        item.pv_name for item in report.physicals() if item.vg_name == group and item.is_missing
    ]
    log.warning(
        "volume group %s lost %d physical volume(s); with them go the volumes: %s",
        group,
        len(gone),
        ", ".join(lost) or "none",
    )
    try:
        # Enough when nothing was on them.
        tool.run(["vgreduce", "--removemissing", group])
    except errors.BlockDeviceError as err:
        log.info("%s; trying with --force", errors.text(err))
    if report.group(group).vg_missing_pv_count:
        tool.run(["vgreduce", "--removemissing", "--force", group])
    left = report.group(group).vg_missing_pv_count
    if left:
        raise errors.BlockDeviceError(
            f"volume group {group} still misses {left} physical volume(s): see vgreduce(8)"
        )
    log.warning("volume group %s is consistent again", group)
