"""lvmstrap: show the disks of this server, and make a volume group of those that are free."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio, process, units
from ganeti.base.text import join_names
from ganeti.cli import output
from ganeti.tools import entry

PROGRAM = "lvmstrap"
_GROUP = "xenvg"
#: Seconds that a tool of LVM may take.
_PATIENCE = 120.0
_COLUMNS = "NAME,PATH,TYPE,SIZE,RM,RO,FSTYPE,PTTYPE,MOUNTPOINT,MODEL"
#: Names of devices that come and go, and so are not disks.
_VIRTUAL = ("loop", "ram", "zram", "fd", "sr", "nbd", "md", "dm-", "drbd", "rbd")
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Disk:
    """A disk of this server."""

    path: str
    #: bytes
    size: int
    model: str
    removable: bool
    #: why it is in use, so that nothing may be written to it; empty when it is not
    user: str
    #: what is on it although nobody uses it; empty when nothing was found
    content: str

    @property
    def name(self) -> str:
        return self.path.removeprefix("/dev/")

    @property
    def state(self) -> str:
        if self.user:
            return f"in use: {self.user}"
        return f"has {self.content}" if self.content else "free"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when it is done; 1 when it was refused or failed."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _ACTIONS[options.action](options))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Show the disks of this server and who uses them, or make a volume group for"
        " instances of those that are free. A disk that is mounted, or that LVM, RAID or anything"
        " else uses, is never taken.",
        epilog="Exit codes: 0 done; 1 refused or failed; 2 wrong options.",
    )
    add = made.add_argument
    add("action", choices=("diskinfo", "create"), help="show disks, or make the volume group")
    add(
        "--vg-name",
        default=_GROUP,
        metavar="NAME",
        help="name of the volume group (default: %(default)s)",
    )
    add(
        "-d",
        "--devices",
        metavar="DEVICE,...",
        type=lambda text: [word for word in text.split(",") if word],
        help="use these disks, such as sdb,sdc",
    )
    add("-a", "--alldevices", action="store_true", help="use all free disks")
    add("-r", "--allow-removable", action="store_true", help="use removable disks, too")
    add(
        "--force",
        action="store_true",
        help="erase partitions and file systems of the named disks, unless they are in use",
    )
    return made


# what there is -----------------------------------------------------------------------------------


def read_disks(text: str) -> list[Disk]:
    """Disks in the JSON of ``lsblk``, in its order. Pure.

    Raises:
        CommandError: it is not what lsblk writes.
    """
    try:
        found = jsonio.loads(text)["blockdevices"]
        return [_disk(item) for item in found if _is_disk(item)]
    except (errors.ParseError, KeyError, TypeError, AttributeError) as err:
        raise errors.CommandError("lsblk wrote something that cannot be read") from err


def _is_disk(item: Mapping[str, Any]) -> bool:
    real = item["type"] == "disk" and not str(item["name"]).startswith(_VIRTUAL)
    return real and int(item["size"] or 0) > 0


def _disk(item: Mapping[str, Any]) -> Disk:
    parts = list(_walk(item))
    return Disk(
        path=str(item["path"]),
        size=int(item["size"]),
        model=str(item.get("model") or "").strip(),
        removable=bool(item["rm"]),
        user=next(filter(None, map(_user, parts)), ""),
        content=next(filter(None, map(_content, parts)), ""),
    )


def _walk(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A device and all that is made of it."""
    yield item
    for child in item.get("children") or ():
        yield from _walk(child)


def _user(part: Mapping[str, object]) -> str:
    """The user of a device, as far as lsblk knows it."""
    if part.get("mountpoint"):
        return f"{part['path']} is mounted on {part['mountpoint']}"
    if part["type"] not in ("disk", "part"):
        return f"{part['path']} ({part['type']}) is on it"
    if str(part.get("fstype") or "").endswith("_member"):
        return f"{part['path']} belongs to {str(part['fstype']).removesuffix('_member')}"
    return "it can only be read" if part.get("ro") else ""


def _content(part: Mapping[str, object]) -> str:
    if part.get("fstype"):
        return f"{part['fstype']} on {part['path']}"
    return f"a partition table ({part['pttype']})" if part.get("pttype") else ""


def _disks() -> list[Disk]:
    """Disks of this server, with what the kernel says of who has them open."""
    found = read_disks(_run("lsblk", "--json", "--bytes", "--output", _COLUMNS))
    return [disk if disk.user or not _is_held(disk.path) else _mark_in_use(disk) for disk in found]


def _is_held(path: str) -> bool:
    """Whether something has the device for itself: DRBD, a guest, multipath, ..."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return True
    return False


def _mark_in_use(disk: Disk) -> Disk:
    user = "something has it open, or it cannot be opened"
    return Disk(disk.path, disk.size, disk.model, disk.removable, user, disk.content)


def _run(*argv: str) -> str:
    return process.run_checked(argv, timeout=_PATIENCE).stdout


# what is done ------------------------------------------------------------------------------------


def _show(_options: argparse.Namespace) -> int:
    rows = [
        (disk.name, units.format_size(disk.size // _MIB), disk.model or "-", disk.state)
        for disk in _disks()
    ]
    titles = ("Disk", "Size", "Model", "State")
    output.print_lines(output.table(titles, rows, right=(False, True, False, False)))
    return constants.EXIT_SUCCESS


def _create(options: argparse.Namespace) -> int:
    if bool(options.devices) == options.alldevices:
        raise errors.make_invalid_error(
            "name disks with --devices, or take all free ones with --alldevices"
        )
    group = options.vg_name
    if group in _run("vgs", "--noheadings", "--options", "vg_name").split():
        raise errors.make_exists_error(f"volume group {group} exists; vgextend adds disks to it")
    chosen = choose(
        _disks(), options.devices, removable=options.allow_removable, force=options.force
    )
    for disk in chosen:
        if disk.content:
            _run("wipefs", "--all", "--force", disk.path)
    paths = [disk.path for disk in chosen]
    _run("pvcreate", "--yes", *paths)
    _run("vgcreate", group, *paths)
    size = units.format_size(sum(disk.size for disk in chosen) // _MIB)
    print(f"Made volume group {group} of {join_names(paths)} ({size})")
    return constants.EXIT_SUCCESS


def choose(
    disks: Sequence[Disk], names: Sequence[str] | None, *, removable: bool, force: bool
) -> list[Disk]:
    """The disks to take: all that are free, or the named ones. Pure.

    Raises:
        OpPrereqError: there is none, or a named one is unknown, in use, or not empty.
    """
    if names is None:
        chosen = [disk for disk in disks if not disk.user and not disk.content]
        chosen = [disk for disk in chosen if removable or not disk.removable]
        if not chosen:
            raise errors.make_resources_error(f"no disk is free; {PROGRAM} diskinfo shows all")
        return chosen
    known = {disk.name: disk for disk in disks}
    wanted = dict.fromkeys(name.removeprefix("/dev/") for name in names)
    for name in wanted:
        _check(name, known.get(name), removable=removable, force=force)
    return [known[name] for name in wanted]


def _check(name: str, disk: Disk | None, *, removable: bool, force: bool) -> None:
    if disk is None:
        raise errors.make_unknown_error(
            f"this server has no disk {name}; {PROGRAM} diskinfo shows all"
        )
    if disk.user:
        raise errors.make_state_error(f"disk {name} is in use: {disk.user}")
    if disk.removable and not removable:
        raise errors.make_invalid_error(
            f"disk {name} is removable; --allow-removable takes it all the same"
        )
    if disk.content and not force:
        raise errors.make_state_error(f"disk {name} has {disk.content}; --force erases it")


_ACTIONS = {"diskinfo": _show, "create": _create}


if __name__ == "__main__":
    sys.exit(main())
