"""Counters of the kernel of this node: processors, memory, disks, network, mirrors."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from ganeti import errors
from ganeti.hypervisor import host
from ganeti.net import certs
from ganeti.paths import Paths
from ganeti.rpc.samples import HostCounters, MirrorSample
from ganeti.storage.drbd import proc

log = logging.getLogger(__name__)

_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1024 * 1024
_SECTOR = 512
#: Columns of the line ``cpu`` with time without work (idle, waiting for disks), and how many there
#: are to read.
_IDLE, _COLUMNS = (3, 4), 8


def read(paths: Paths, root: Path = Path("/")) -> HostCounters:
    """Counters of the node; what the kernel does not tell is None.

    Raises:
        HypervisorError: /proc cannot be read.
    """
    memory = host.memory(root / "proc/meminfo")
    try:
        busy, cpus = parse_stat((root / "proc/stat").read_text(encoding="ascii"))
        disks = parse_disks((root / "proc/diskstats").read_text(), _hardware(root, "block"))
        nics = _hardware(root, "net")
        network = parse_network((root / "proc/net/dev").read_text(), nics)
    except (OSError, ValueError, IndexError) as err:
        raise errors.HypervisorError(f"the counters of the kernel cannot be read: {err}") from err
    return HostCounters(
        cpu=busy,
        cpus=cpus,
        memory=(memory.total - memory.available) * _MIB,
        memory_total=memory.total * _MIB,
        load=os.getloadavg()[0],
        disk_read_ops=disks[0],
        disk_read=disks[1],
        disk_write_ops=disks[2],
        disk_write=disks[3],
        net_receive=network[0],
        net_receive_ops=network[1],
        net_send=network[2],
        net_send_ops=network[3],
    )


def _hardware(root: Path, kind: str) -> set[str]:
    """Disks or NICs with hardware behind them; all but lo where none has."""
    directory = root / "sys/class" / kind
    try:
        names = os.listdir(directory)
    except OSError:
        return set()
    found = {name for name in names if (directory / name / "device").exists()}
    return found or {name for name in names if name != "lo"}


def parse_stat(text: str) -> tuple[float, int]:
    """Seconds that all processors were busy, and how many there are, of ``/proc/stat``. Pure."""
    lines = text.splitlines()
    ticks = [int(word) for word in lines[0].split()[1 : 1 + _COLUMNS]]
    busy = sum(ticks) - sum(ticks[index] for index in _IDLE)
    cpus = sum(line[:3] == "cpu" and line[3:4].isdigit() for line in lines)
    return busy / _TICKS, max(1, cpus)


def parse_disks(text: str, names: Iterable[str]) -> tuple[int, int, int, int]:
    """Reads, bytes read, writes, bytes written, of ``/proc/diskstats``. Pure."""
    wanted = set(names)
    rows = [words for words in map(str.split, text.splitlines()) if words[2] in wanted]
    reads, sectors, writes, written = (sum(int(row[at]) for row in rows) for at in (3, 5, 7, 9))
    return reads, sectors * _SECTOR, writes, written * _SECTOR


def parse_network(text: str, names: Iterable[str]) -> tuple[int, int, int, int]:
    """Bytes and packets received, bytes and packets sent, of ``/proc/net/dev``. Pure."""
    wanted = set(names)
    found = [0, 0, 0, 0]
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() in wanted:
            words = rest.split()
            for index, at in enumerate((0, 1, 8, 9)):
                found[index] += int(words[at])
    return found[0], found[1], found[2], found[3]


def read_mirrors(paths: Paths) -> list[MirrorSample]:
    """The DRBD devices of the node; none when there are none, or the module is of another age."""
    try:
        text = Path(paths.local("/proc/drbd")).read_text(encoding="ascii", errors="replace")
        devices = proc.parse(text).devices
    except FileNotFoundError:
        return []
    except (OSError, errors.BlockDeviceError) as err:
        log.debug("mirrors are not measured: %s", err)
        return []
    return [
        MirrorSample(
            minor=minor,
            connection=str(live.connection),
            disk=str(live.disk),
            peer_disk=str(live.peer_disk),
            out_of_sync=live.out_of_sync * 1024,
            percent=live.percent,
        )
        for minor, live in devices.items()
    ]


def read_certificates(paths: Paths) -> dict[str, float]:
    """When the certificates of this node end (Unix time), by name; those that are there."""
    known = {
        "ca": paths.ca_cert,
        "server": paths.server_cert,
        "client": paths.client_cert,
        "rapi": paths.rapi_cert,
    }
    found = {}
    for name, path in known.items():
        try:
            found[name] = _end_of(path, path.stat().st_mtime_ns)
        except FileNotFoundError:
            continue
        except (OSError, errors.X509CertError) as err:
            log.debug("the end of a certificate is not known: %s", err)
    return found


@lru_cache(maxsize=32)
def _end_of(path: Path, _changed: int) -> float:
    """Read again only when the file has changed."""
    return float(certs.inspect(path).not_after)
