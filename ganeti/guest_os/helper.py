"""What a node keeps while a helper guest installs an OS that it does not trust on itself.

A directory in ``<run>`` for each instance: the OS definition as an archive, which the guest reads,
and the exit code of the script, which the guest writes. Nothing that the guest wrote to its disks
is looked at.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import Final

from ganeti import errors
from ganeti.base import files
from ganeti.guest_os.definition import OsDefinition
from ganeti.paths import Paths

#: Bytes of the archive of an OS definition.
MAX_PACKAGE: Final = 16 * 1024 * 1024
_PACKAGE, _RESULT = "package.tar", "result"


def prepare(paths: Paths, uuid: str, definition: OsDefinition) -> None:
    """Keep an OS definition for the helper guest of an instance, and forget an older result.

    Raises:
        OpExecError: the definition is too large, or cannot be read.
    """
    directory = _directory(paths, uuid)
    clear(paths, uuid)
    try:
        data = _pack(Path(definition.path))
        files.ensure_dir(directory.parent, 0o700)
        files.ensure_dir(directory, 0o700)
        files.write_atomic(directory / _PACKAGE, data, mode=0o600, fsync=False)
    except OSError as err:
        raise errors.OpExecError(f"OS definition {definition.path}: {err}") from err


def _pack(root: Path) -> bytes:
    """All files of a definition, owned by root; links are followed only inside of it. OSError."""
    total = 0
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            if not files.is_inside(path.resolve(), root.resolve()):
                raise errors.OpExecError(
                    f"OS definition {root}: {path.name} leads out of it, so it cannot be packed"
                )
            info = archive.gettarinfo(path, str(path.relative_to(root)))
            if not (info.isreg() or info.isdir() or info.issym()):
                continue
            total += info.size
            if total > MAX_PACKAGE:
                raise errors.OpExecError(
                    f"OS definition {root} has more than {MAX_PACKAGE >> 20} MiB, which is too"
                    " much for a helper guest to fetch"
                )
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            if info.isreg():
                with path.open("rb") as stream:
                    archive.addfile(info, stream)
            else:
                archive.addfile(info)
    return whole.getvalue()


def read_package(paths: Paths, uuid: str) -> bytes | None:
    """The archive; None when no OS is being installed. OSError."""
    try:
        return (_directory(paths, uuid) / _PACKAGE).read_bytes()
    except FileNotFoundError:
        return None


def write_result(paths: Paths, uuid: str, code: int) -> bool:
    """Note the exit code of the script; False when no OS is being installed. OSError."""
    directory = _directory(paths, uuid)
    if not directory.is_dir():
        return False
    files.write_atomic(directory / _RESULT, str(code), mode=0o600, fsync=False)
    return True


def take_result(paths: Paths, uuid: str) -> int | None:
    """The exit code, None if the guest has told none; forgets everything. OSError."""
    try:
        text = files.read_text(_directory(paths, uuid) / _RESULT)
    except FileNotFoundError:
        text = ""
    clear(paths, uuid)
    return int(text) if text else None


def clear(paths: Paths, uuid: str) -> None:
    """Forget what a helper guest was to read, and what it wrote. OSError."""
    directory = _directory(paths, uuid)
    if directory.exists():
        shutil.rmtree(directory)


def _directory(paths: Paths, uuid: str) -> Path:
    return paths.helper_guests / uuid
