"""Input, program and result of a helper guest. Pure.

A helper guest is the guest of an instance, started from another disk: an image that the
administrator chose. It installs an OS that the node does not trust, or zeroes free space. So
nothing of that runs on the node, and nothing that a guest wrote is read there.

Its disks, all of type virtio:

1. a copy of the image, which is lost at the end
2. the package, read only: an archive of tar, with ``environment`` and ``run``
3. the disks of the instance, in their order

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
END: Final = re.compile(r"^ganeti-helper: exit ([0-9]{1,3})\s*$", re.MULTILINE)
#: The disk in the guest that is the first one of the instance: the third.
_FIRST: Final = 2
#: Names of disks have one letter there.
MAX_DISKS: Final = 26 - _FIRST
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


class Result(NamedTuple):
    """What a helper guest printed."""

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
    if len(disks) > MAX_DISKS:
        raise errors.make_invalid_error(
            f"the instance has {len(disks)} disks, and a helper guest can have {MAX_DISKS}"
        )
    return [
        AttachedDisk(disk.disk, f"/dev/vd{chr(ord('a') + _FIRST + index)}")
        for index, disk in enumerate(disks)
    ]


def pack_installation(definition: OsDefinition, env: Mapping[str, str]) -> bytes:
    """The package that installs an OS; OpExecError: it is too large, or leads out of itself."""
    return _pack(_INSTALL, env, definition.path)


def pack_zeroing(disks: Sequence[AttachedDisk]) -> bytes:
    """The package that zeroes free space on these disks."""
    env = {f"DISK_{index}_PATH": disk.path for index, disk in enumerate(disks)}
    return _pack(_ZERO, {"DISK_COUNT": str(len(disks)), **env}, None)


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
    """What a guest printed on its serial console; the last exit code counts."""
    found = END.findall(text)
    return Result(bool(BEGIN.search(text)) or bool(found), int(found[-1]) if found else None)
