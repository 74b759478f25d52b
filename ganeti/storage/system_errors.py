"""Errors of the system, with the disk that had them and what was tried with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ganeti import errors


@contextlib.contextmanager
def convert_os_errors(verb: str, path: str) -> Iterator[None]:
    """Turn an OSError inside the block into a BlockDeviceError that names ``path``."""
    try:
        yield
    except FileExistsError as err:
        raise errors.BlockDeviceError(
            f"cannot {verb} {path}: it exists already; remove it if nothing uses it"
        ) from err
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot {verb} {path}: {err.strerror}") from err
