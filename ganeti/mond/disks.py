"""Disks of this node: what the kernel counts, logical volumes, and mirrors of DRBD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.mond.collector import Code, Collector, Kind, NothingMeasured, find_worst, status
from ganeti.storage.lvm import tool

# counters ----------------------------------------------------------------------------------------

_COUNTERS = (
    "readsNum", "mergedReads", "secRead", "timeRead", "writes", "mergedWrites", "secWritten",
    "timeWrite", "ios", "timeIO", "wIOmillis",
)  # fmt: skip


class DiskStatistics(Collector):
    """Counters of each block device."""

    name = "diskstats"
    category = "storage"

    def data(self) -> object:
        return parse_diskstats((self._node.proc / "diskstats").read_text(encoding="ascii"))


def parse_diskstats(text: str) -> list[JsonObject]:
    """Rows of ``/proc/diskstats``; newer kernels have more columns. Pure."""
    found = []
    for words in map(str.split, text.splitlines()):
        if len(words) < 3 + len(_COUNTERS):
            continue
        major, minor, name, *counts = words
        row: JsonObject = {"major": int(major), "minor": int(minor), "name": name}
        found.append({**row, **{key: int(count) for key, count in zip(_COUNTERS, counts)}})
    return found


# logical volumes ---------------------------------------------------------------------------------

#: Columns of lvs -> name in the report; numbers.
_TEXTS = {
    "lv_uuid": "uuid", "lv_name": "name", "lv_attr": "attr", "lv_tags": "tags",
    "lv_modules": "modules", "vg_uuid": "vg_uuid", "vg_name": "vg_name", "segtype": "segtype",
    "seg_tags": "seg_tags", "seg_pe_ranges": "seg_pe_ranges", "devices": "devices",
}  # fmt: skip
_NUMBERS = {
    "lv_major": "major", "lv_minor": "minor", "lv_kernel_major": "kernel_major",
    "lv_kernel_minor": "kernel_minor", "lv_size": "size", "seg_count": "seg_count",
    "seg_start": "seg_start", "seg_start_pe": "seg_start_pe", "seg_size": "seg_size",
}  # fmt: skip
_OWNER = "originstname+"


class LogicalVolumes(Collector):
    """Segments of all logical volumes, with the instance that a volume was made for."""

    name = "lv"
    category = "storage"

    def data(self) -> object:
        words = ("--reportformat", "json", "--units", "b", "--nosuffix")
        columns = ",".join((*_TEXTS, *_NUMBERS))
        return parse_volumes(tool.run(["lvs", "--segments", *words, "--options", columns]))


def parse_volumes(text: str) -> list[JsonObject]:
    """Rows in the JSON of ``lvs``; BlockDeviceError for anything else. Pure."""
    try:
        rows = [row for part in jsonio.loads(text)["report"] for row in part.get("seg", ())]
        return [_volume(row) for row in rows]
    except (errors.ParseError, KeyError, TypeError, ValueError, AttributeError) as err:
        raise errors.BlockDeviceError("lvs wrote something that cannot be read") from err


def _volume(row: Mapping[str, str]) -> JsonObject:
    found: JsonObject = {name: str(row[column]) for column, name in _TEXTS.items()}
    found |= {name: int(row[column] or 0) for column, name in _NUMBERS.items()}
    tags = found["tags"].split(",")
    owners = [tag.removeprefix(_OWNER) for tag in tags if tag.startswith(_OWNER)]
    return {**found, "instance": owners[0] if owners else None}


# DRBD --------------------------------------------------------------------------------------------

_VERSION = re.compile(r"^version: (\S+) \(api:([^/)]+)/proto:([^)]+)\)", re.M)
_SOURCE = re.compile(r"^srcversion: (\S+)", re.M)
_GIT = re.compile(r"^GIT-hash: (\S+) build by (\S+),", re.M)
_DEVICE = re.compile(r"^ *(\d+): cs:(\S+)(.*)$", re.M)
_STATES = re.compile(r"ro:(\w+)/(\w+) +ds:(\w+)/(\w+) +(?:([ABC]) +)?(\S+)")
_COUNT = re.compile(r"\b([a-z]{2,3}):(\w+)")
_SYNC = re.compile(r"sync'ed: *([\d.]+)% \((\d+)/(\d+)\)(\w)")
_SPEED = re.compile(r"finish: (\d+:\d\d:\d\d) speed: ([\d,]+)")
_INDICATORS = {
    "ns": "networkSend", "nr": "networkReceive", "dw": "diskWrite", "dr": "diskRead",
    "al": "activityLog", "bm": "bitMap", "lo": "localCount", "pe": "pending",
    "ua": "unacknowledged", "ap": "applicationPending", "ep": "epochs", "wo": "writeOrder",
    "oos": "outOfSync",
}  # fmt: skip
_COPYING = re.compile(r"(Paused)?Sync|Verify|WFSync|WFBitMap|StartingSync")


class Drbd(Collector):
    """State of each DRBD device."""

    name = "drbd"
    category = "storage"
    kind = Kind.STATUS

    def _file(self) -> Path:
        return Path(self._node.paths.local("/proc/drbd"))

    def is_useful(self) -> bool:
        return self._file().exists()

    def data(self) -> object:
        try:
            text = self._file().read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            raise NothingMeasured("the module drbd is not loaded on this node") from None
        return parse_drbd(text, self._node.facts.minors)


def parse_drbd(text: str, owners: Mapping[int, str]) -> JsonObject:
    """The report on ``/proc/drbd``; ``owners`` are instances by minor. Pure."""
    devices = [{**device, "instance": owners.get(device["minor"])} for device in _devices(text)]
    return {
        "status": find_worst(device["status"] for device in devices),
        "versionInfo": _version(text),
        "device": devices,
    }


def _version(text: str) -> JsonObject:
    found: JsonObject = {}
    if match := _VERSION.search(text):
        found |= {"version": match[1], "api": match[2], "proto": match[3]}
    if match := _SOURCE.search(text):
        found["srcversion"] = match[1]
    if match := _GIT.search(text):
        found |= {"gitHash": match[1], "buildBy": match[2]}
    return found


def _devices(text: str) -> Iterator[JsonObject]:
    found = list(_DEVICE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends):
        yield _device(match, text[match.end() : end])


def _device(match: re.Match[str], rest: str) -> JsonObject:
    found: JsonObject = {"minor": int(match[1]), "connectionState": match[2]}
    states = _STATES.search(match[3])
    if states is None:  # unconfigured
        return {**found, "status": status(Code.OK)}
    role, peer_role, disk, peer_disk, protocol, flags = states.groups()
    found |= {
        "localRole": role,
        "remoteRole": peer_role,
        "localState": disk,
        "remoteState": peer_disk,
        "replicationProtocol": protocol,
        "ioFlags": flags,
        "perfIndicators": {
            _INDICATORS[key]: int(value) if value.isdigit() else value
            for key, value in _COUNT.findall(rest.partition("[")[0])
            if key in _INDICATORS
        },
    }
    if sync := _SYNC.search(rest):
        found["syncStatus"] = _sync(sync, _SPEED.search(rest))
    return {**found, "status": _judge(found)}


def _sync(match: re.Match[str], speed: re.Match[str] | None) -> JsonObject:
    found: JsonObject = {
        "percentage": float(match[1]),
        "progress": f"{match[2]}/{match[3]}",
        "unit": f"{match[4]}B",
    }
    if speed is not None:
        found |= {"timeToFinish": speed[1], "speed": int(speed[2].replace(",", ""))}
    return found


def _judge(device: Mapping[str, Any]) -> JsonObject:
    connection, disk = device["connectionState"], device["localState"]
    if connection == "Connected" and disk == device["remoteState"] == "UpToDate":
        return status(Code.OK)
    code = Code.REPAIRING if _COPYING.match(connection) else Code.BAD
    return status(code, f"minor {device['minor']} is {connection}, {disk}/{device['remoteState']}")
