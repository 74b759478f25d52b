"""The disk from which cloud-init reads what a guest is to be: an ISO 9660 file with a few files.

The only importer of pycdlib, which is imported when the first one is made.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from ganeti import errors
from ganeti.base import files

#: By this name cloud-init knows the disk.
LABEL = "cidata"


def build(contents: Mapping[str, str]) -> bytes:
    """The file system with these files (name -> content); some 10 ms.

    Raises:
        HypervisorError: a name cannot be that of a file there.
    """
    import pycdlib
    from pycdlib.pycdlibexception import PyCdlibException

    disk = pycdlib.PyCdlib()
    try:
        disk.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
        for name, text in contents.items():
            data = text.encode()
            disk.add_fp(
                io.BytesIO(data),
                len(data),
                f"/{name.upper().replace('-', '_')}.;1",
                rr_name=name,
                joliet_path=f"/{name}",
            )
        whole = io.BytesIO()
        disk.write_fp(whole)
        disk.close()
    except PyCdlibException as err:
        raise errors.HypervisorError(f"the disk for cloud-init cannot be made: {err}") from err
    return whole.getvalue()


def write(path: Path, contents: Mapping[str, str]) -> None:
    """Write it to a file that root alone may read: it may have secrets; OSError."""
    files.ensure_dir(path.parent, 0o700)
    files.write_atomic(path, build(contents), mode=0o600, fsync=False)
