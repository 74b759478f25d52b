"""The metadata volume of a mirrored disk."""

from __future__ import annotations

import os

from ganeti import errors
from ganeti.storage import measure
from ganeti.storage.drbd.plans import META_SIZE
from ganeti.storage.drbd.side import Side

MIB = 1024 * 1024


def create(side: Side) -> None:
    """Write metadata that holds nothing yet; BlockDeviceError for a volume that is too small."""
    meta = side.wish.meta
    if measure.device_size(meta) < META_SIZE * MIB:
        raise errors.BlockDeviceError(
            f"{meta} is too small for the metadata of DRBD: it needs {META_SIZE} MiB"
        )
    clear(meta)
    side.run(side.dialect.create_metadata(side.wish))


def clear(device: str) -> None:
    """Overwrite where metadata may be: the first and the last MiB of its volume."""
    try:
        fd = os.open(device, os.O_WRONLY | os.O_CLOEXEC)
        try:
            end = os.lseek(fd, 0, os.SEEK_END)
            for place in {0, max(0, end - MIB)}:
                os.pwrite(fd, b"\0" * min(MIB, end), place)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot write to {device}: {err.strerror}") from err
