"""Reader of ``/proc/drbd`` of the 8.4 module. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ganeti import errors
from ganeti.storage.drbd.states import Connection, DiskState, Live, Role

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


def parse(text: str) -> Proc:
    """BlockDeviceError for a text that is none of the module, or a state that is not known."""
    head = _VERSION.search(text)
    if head is None:
        raise errors.BlockDeviceError("/proc/drbd does not begin with the module's version")
    return Proc(
        version=tuple(int(part) for part in head[1].split(".")),
        api=head[2],
        protocol=head[3],
        devices=dict(_devices(text)),
    )


def _devices(text: str) -> Iterator[tuple[int, Live]]:
    found = list(_DEVICE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends):
        if match[2] == "Unconfigured":
            continue
        yield int(match[1]), _live(match, text[match.end() : end])


def _live(match: re.Match[str], rest: str) -> Live:
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
