"""Input, program and result of a helper guest. Pure.

A helper guest is the guest of an instance, started from another disk: an image that the
administrator chose. It installs an OS that the node does not trust, zeroes free space, or reads
files of a backup. So nothing of that runs on the node, and no file system of a guest is read there.

Its disks, all of type virtio:

1. a copy of the image, which is lost at the end
2. the package, read only: an archive of tar, with ``environment`` and ``run``
3. to read files: one that takes the archive of them
4. the disks of the instance, in their order

It runs ``run`` with the variables of ``environment``, prints its begin and its exit code on the
serial console, as :data:`BEGIN` and :data:`END` have it, and powers itself off.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ganeti import constants, errors
from ganeti.base import files
from ganeti.guest_os import definition_files
from ganeti.guest_os.definition import OsDefinition
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.rpc.objects import NodeInstance

#: Most bytes of an OS definition.
MAX_PACKAGE: Final = 64 * 1024 * 1024
#: Lines on the serial console.
BEGIN: Final = re.compile(r"^ganeti-helper: begin\s*$", re.MULTILINE)
ARCHIVE: Final = re.compile(
    r"^ganeti-helper: files ([0-9]{1,18}), bytes ([0-9]{1,18})\s*$", re.MULTILINE
)
END: Final = re.compile(r"^ganeti-helper: exit ([0-9]{1,3})\s*$", re.MULTILINE)
#: The disk in the guest that is the first one of the instance: the third.
_FIRST: Final = 2
#: Names of disks have one letter there.
_LETTERS: Final = 26
_DEFINITION: Final = "os"
_INSTALL: Final = f"#!/bin/sh\ncd {_DEFINITION} && exec ./{definition_files.CREATE_UNTRUSTED}\n"
#: Fills what no file uses with zeros, in each file system.
_ZERO: Final = """#!/bin/sh
found=0
failed=0
mkdir -p /tmp/zeroed
index=0
while [ "$index" -lt "$DISK_COUNT" ]; do
    eval "disk=\\$DISK_${index}_PATH"
    index=$((index + 1))
    for device in "$disk" "$disk"[0-9]*; do
        [ -b "$device" ] || continue
        mount -o rw "$device" /tmp/zeroed 2>/dev/null || continue
        found=$((found + 1))
        echo "zeroing free space on $device"
        dd if=/dev/zero of=/tmp/zeroed/.ganeti-zero bs=1M 2>/dev/null
        sync
        rm -f /tmp/zeroed/.ganeti-zero && umount /tmp/zeroed || failed=1
    done
done
[ "$found" -gt 0 ] || echo "no disk has a file system that this kernel can mount"
[ "$found" -gt 0 ] && [ "$failed" -eq 0 ]
"""
#: Writes an archive of the wanted files of all file systems. These are mounted read only, but their
#: disks can be written to: a file system that was in use is repaired first.
_READ: Final = """#!/bin/sh
fail() {
    echo "$*"
    exit 1
}
is_inside() {
    case $(realpath "$1")/ in
        "$PWD/$2"/*) return 0 ;;
    esac
    return 1
}
mkdir -p /tmp/found
cd /tmp/found
systems=
index=0
while [ "$index" -lt "$DISK_COUNT" ]; do
    eval "disk=\\$DISK_${index}_PATH"
    for device in "$disk" "$disk"[0-9]*; do
        [ -b "$device" ] || continue
        name=disk$index
        [ "$device" = "$disk" ] || name=$name-${device#"$disk"}
        mkdir "$name"
        if mount -o ro "$device" "$name" 2>/dev/null; then
            systems="$systems $name"
        else
            rmdir "$name"
        fi
    done
    index=$((index + 1))
done
[ -n "$systems" ] || fail "no disk has a file system that this kernel can mount"
echo "file systems:$systems"
set --
missing=0
index=0
while [ "$index" -lt "$WANTED_COUNT" ]; do
    eval "wanted=\\$WANTED_$index"
    index=$((index + 1))
    hits=0
    for name in $systems; do
        entry=$name$wanted
        [ -e "$entry" ] || [ -L "$entry" ] || continue
        if is_inside "${entry%/*}" "$name"; then
            hits=1
            set -- "$@" "$entry"
        else
            echo "$wanted: a symbolic link leads out of $name; name the file itself"
        fi
    done
    if [ "$hits" = 0 ]; then
        missing=1
        echo "$wanted: no file system has it"
        parent=${wanted%/*}
        for name in $systems; do
            [ -d "$name$parent" ] && is_inside "$name$parent" "$name" || continue
            echo "$name has in ${parent:-/}: $(ls "$name$parent" | head -n 30 | tr '\\n' ' ')"
        done
    fi
done
[ "$missing" = 0 ] || exit 1
count=$(find "$@" ! -type d | wc -l)
size=$(
    { tar -c -f - "$@" || echo "tar failed" >>/tmp/failed; } |
        { tee "$TARGET" || echo "no room" >>/tmp/failed; } | wc -c
)
[ ! -e /tmp/failed ] || fail "the archive is not whole: $(cat /tmp/failed)"
sync
echo "ganeti-helper: files $count, bytes $size"
"""


class Archive(NamedTuple):
    """The archive that a helper guest has written to the disk for files."""

    files: int
    #: bytes
    size: int


class Result(NamedTuple):
    """The output of a helper guest."""

    began: bool
    #: exit code of what it ran; None: it printed none
    code: int | None


def arrange(instance: NodeInstance, params: Mapping[str, object]) -> NodeInstance:
    """An instance as its helper guest runs: other parameters, and no NIC but for metadata."""
    return msgspec.structs.replace(
        instance,
        hvparams={**instance.hvparams, **params},
        nics=tuple(
            nic for nic in instance.nics if (nic.name or "").startswith(constants.COMMUNICATION_NIC)
        ),
        seed={},
    )


def place_disks(disks: Sequence[AttachedDisk]) -> list[AttachedDisk]:
    """The disks of an instance where its helper guest finds them; OpPrereqError: too many."""
    return [
        AttachedDisk(disk.disk, path) for disk, path in zip(disks, _name_disks(_FIRST, len(disks)))
    ]


def _name_disks(first: int, count: int) -> list[str]:
    if first + count > _LETTERS:
        raise errors.make_invalid_error(
            f"the instance has {count} disks, and a helper guest can have {_LETTERS - first}"
        )
    return [f"/dev/vd{chr(ord('a') + index)}" for index in range(first, first + count)]


def pack_installation(definition: OsDefinition, env: Mapping[str, str]) -> bytes:
    """The package that installs an OS; OpExecError: it is too large, or leads out of itself."""
    return _pack(_INSTALL, env, definition.path)


def pack_zeroing(disks: Sequence[AttachedDisk]) -> bytes:
    """The package that zeroes free space on these disks."""
    env = {f"DISK_{index}_PATH": disk.path for index, disk in enumerate(disks)}
    return _pack(_ZERO, {"DISK_COUNT": str(len(disks)), **env}, None)


def pack_reading(disks: int, wanted: Sequence[str]) -> bytes:
    """The package that reads files, by their full paths in any file system of so many disks.

    Raises:
        OpPrereqError: there are too many disks.
    """
    env = {f"DISK_{index}_PATH": path for index, path in enumerate(_name_disks(_FIRST + 1, disks))}
    env |= {f"WANTED_{index}": path for index, path in enumerate(wanted)}
    counts = {"DISK_COUNT": str(disks), "WANTED_COUNT": str(len(wanted))}
    [target] = _name_disks(_FIRST, 1)
    return _pack(_READ, {**env, **counts, "TARGET": target}, None)


def _pack(script: str, env: Mapping[str, str], definition: Path | None) -> bytes:
    # PATH is that of the image; names of parameters are those of variables
    lines = [
        f"{name}={shlex.quote(value)}\n"
        for name, value in sorted(env.items())
        if name != "PATH" and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)
    ]
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, mode, text in (("environment", 0o600, "".join(lines)), ("run", 0o700, script)):
            info = tarfile.TarInfo(name)
            data = text.encode()
            info.mode, info.size = mode, len(data)
            archive.addfile(info, io.BytesIO(data))
        if definition is not None:
            _add_definition(archive, definition.resolve())
    return whole.getvalue()


def _add_definition(archive: tarfile.TarFile, root: Path) -> None:
    """All files of a definition; links become what they lead to, as a guest has only these."""
    total = 0
    for path in [root, *sorted(root.rglob("*"))]:
        name = f"{_DEFINITION}/{path.relative_to(root)}".removesuffix("/.")
        if not files.is_inside(path, root):
            raise errors.OpExecError(
                f"OS definition {root}: {path.name} leads out of it, so a helper guest cannot"
                " have it"
            )
        info = archive.gettarinfo(path.resolve(), name)
        if not (info.isreg() or info.isdir()):
            continue
        total += info.size
        if total > MAX_PACKAGE:
            raise errors.OpExecError(
                f"OS definition {root} has more than {MAX_PACKAGE >> 20} MiB, which is too much"
                " for a helper guest"
            )
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        if info.isreg():
            with path.open("rb") as stream:
                archive.addfile(info, stream)
        else:
            archive.addfile(info)


def read_result(text: str) -> Result:
    """Read the result from the text on the serial console; the last exit code counts."""
    found = END.findall(text)
    return Result(bool(BEGIN.search(text)) or bool(found), int(found[-1]) if found else None)


def read_archive(text: str) -> Archive | None:
    """Read the last line about the archive of files on the serial console; None without one."""
    found = ARCHIVE.findall(text)
    return Archive(*map(int, found[-1])) if found else None
