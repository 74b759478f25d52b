"""How large a disk really is."""

from __future__ import annotations

import os

from ganeti import errors


def device_size(path: str) -> int:
    """Length in bytes of a disk's file or block device, as it is now.

    Raises:
        BlockDeviceError: it cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.lseek(fd, 0, os.SEEK_END)
        finally:
            os.close(fd)
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot measure {path}: {err.strerror}") from err
