"""gnt-image: add, rename, modify and remove images."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from ganeti import errors, paths
from ganeti.base import files, sparse
from ganeti.cli import jobs
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import IMAGE

_NAME = take_one("image", "image_name")
#: Suffixes of an image file that are not part of the name of the image.
_SUFFIXES = (".gz", ".xz", ".zst", ".qcow2", ".raw", ".img", ".vmdk", ".ova")
#: ioctl(2) that makes a file share the blocks of another one.
_FICLONE = 0x40049409

IMAGE.submits("rename", "OP_IMAGE_RENAME", _NAME, take_one("new-name", "new_name"))
IMAGE.submits("remove", "OP_IMAGE_REMOVE", _NAME)


@IMAGE.command(
    "add",
    take_one("file"),
    op="OP_IMAGE_ADD",
    without=("source",),
    names={"image_name": override("--name", help="Name of the image; by default that of the file")},
    options=o.JOB_OPTIONS,
    usage="[--sha256=<sha256>] [--name=<name>] <file>|<url>",
)
def add(call: Call) -> None:
    """Add an image from a file of this node or from a URL.

    The formats are qcow2, raw, VMDK and OVA, also compressed with gzip, xz or zstd. The file may
    be removed afterwards.
    """
    given = call.args[0]
    name = call.opts.image_name or _derive_name(given)
    if "://" in given:
        jobs.run(call, image_name=name, source=given)
        return
    upload = None if call.opts.dry_run else _upload(Path(given))
    try:
        jobs.run(call, image_name=name, source=upload.name if upload else "dry-run")
    except errors.GanetiError:
        # A job that was accepted has taken it; of one that was not, nothing stays.
        if upload is not None:
            upload.unlink(missing_ok=True)
        raise


@IMAGE.command(
    "modify",
    _NAME,
    op="OP_IMAGE_SET_PARAMS",
    options=o.JOB_OPTIONS,
    usage="--description=<text> <image>",
)
def modify(call: Call) -> None:
    """Change the description of an image; an empty one removes it."""
    if call.opts.description is None:
        raise errors.make_invalid_error("Nothing to change: give --description")
    jobs.run(call)


def _derive_name(given: str) -> str:
    """Name of an image by the last part of a path or URL, without its suffixes. Pure."""
    name = given.split("?")[0].rstrip("/").rpartition("/")[2]
    while suffix := next((end for end in _SUFFIXES if name.lower().endswith(end)), ""):
        name = name[: -len(suffix)]
    return name


def _upload(path: Path) -> Path:
    """Copy a file to where the master takes it; its blocks are shared where that is possible.

    Raises:
        OpPrereqError: it cannot be read, or there is no room for the copy.
    """
    directory = paths.current().image_uploads
    kept = re.sub(r"[^A-Za-z0-9._+-]", "", path.name)
    target = directory / f"{secrets.token_hex(4)}-{kept[:120]}"
    try:
        with path.open("rb") as source:
            if not path.is_file():
                raise errors.make_invalid_error(f"'{path}' is not a regular file")
            files.ensure_dir(directory.parent, 0o700)
            files.ensure_dir(directory, 0o700)
            try:
                _copy(source.fileno(), target)
            except BaseException:  # an interrupt too: remove the copy and raise it
                target.unlink(missing_ok=True)
                raise
    except OSError as err:
        place = err.filename or path
        raise errors.make_environment_error(
            f"Cannot copy '{path}' to {directory}: {place}: {err.strerror}",
        ) from err
    return target


def _copy(source: int, target: Path) -> None:
    import fcntl

    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, _FICLONE, source)
            return
        size, position = os.fstat(source).st_size, 0
        for piece in sparse.pieces(source, size):
            if piece.data is not None:
                sparse.write(fd, position, piece.data)
            position += piece.size
        os.ftruncate(fd, size)
    finally:
        os.close(fd)
