"""Reader of ``/proc/drbd`` of the 8.4 module. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ganeti import errors
from ganeti.storage.drbd.states import Connection, DiskState, Live, Role

#: The version that is handled.
HANDLED = (8, 4)
_VERSION = re.compile(r"^version: (\d+(?:\.\d+)+)(?:[-.\w]*) \(api:(\S+)/proto:(\S+)\)", re.M)
_DEVICE = re.compile(r"^ *(\d+): cs:(\S+)(?: +ro:(\w+)/(\w+) +ds:(\w+)/(\w+))?", re.M)
_OUT_OF_SYNC = re.compile(r"\boos:(\d+)")
_DONE = re.compile(r"sync'ed: *(\d+(?:\.\d+)?)%")
_FINISH = re.compile(r"finish: (\d+):(\d\d):(\d\d) speed: ([\d,]+)")


@dataclass(frozen=True)
class Proc:
    """The module's version, and its devices by minor; unconfigured ones are left out."""

    version: tuple[int, ...]
    api: str
    protocol: str
    devices: dict[int, Live]


def version(text: str) -> tuple[int, ...]:
    """The version of the module, whichever it is; BlockDeviceError for another text."""
    return tuple(int(part) for part in _head(text)[1].split("."))


def check_version(found: tuple[int, ...]) -> None:
    """Refuse a module that is not handled; BlockDeviceError names its version."""
    if found[:2] != HANDLED:
        raise errors.BlockDeviceError(
            f"DRBD {'.'.join(map(str, found))} is loaded on this node; disks of template drbd need"
            f" {'.'.join(map(str, HANDLED))}"
        )


def parse(text: str) -> Proc:
    """BlockDeviceError for a text of something else or another version, or an unknown state."""
    head = _head(text)
    check_version(version(text))
    return Proc(version=version(text), api=head[2], protocol=head[3], devices=dict(_devices(text)))


def _head(text: str) -> re.Match[str]:
    found = _VERSION.search(text)
    if found is None:
        raise errors.BlockDeviceError("/proc/drbd does not begin with the module's version")
    return found


def _devices(text: str) -> Iterator[tuple[int, Live]]:
    found = list(_DEVICE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends):
        if match[2] == "Unconfigured":
            continue
        yield int(match[1]), _make_live(match, text[match.end() : end])


def _make_live(match: re.Match[str], rest: str) -> Live:
    try:
        behind, done, finish = (p.search(rest) for p in (_OUT_OF_SYNC, _DONE, _FINISH))
        return Live(
            connection=Connection(match[2]),
            role=Role(match[3]),
            peer_role=Role(match[4]),
            disk=DiskState(match[5]),
            peer_disk=DiskState(match[6]),
            out_of_sync=int(behind[1]) if behind else 0,
            percent=float(done[1]) if done else None,
            seconds_left=_seconds(finish) if finish else None,
            rate=int(finish[4].replace(",", "")) if finish else None,
        )
    except ValueError as err:
        raise errors.BlockDeviceError(f"/proc/drbd has a state that is not known: {err}") from err


def _seconds(found: re.Match[str]) -> int:
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
