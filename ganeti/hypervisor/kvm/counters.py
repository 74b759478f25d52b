"""Counters of QEMU guests: processor and memory of the process, disks by QMP, NICs by taps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.hypervisor.kvm import qemu_process
from ganeti.hypervisor.kvm.runtime import Guest, Store
from ganeti.rpc.samples import GuestCounters

log = logging.getLogger(__name__)

#: Seconds a guest gets to answer, and for which one that did not is not asked again.
_PATIENCE = 1.0
_AGAIN = 300.0
_MIB = 1024 * 1024
#: Directory in which the kernel counts the traffic of network interfaces.
NET = Path("/sys/class/net")


class Counters:
    """Counts the guests of one node; used by one thread."""

    def __init__(self, store: Store, clock: Clock = SYSTEM, net: Path = NET) -> None:
        self._store = store
        self._clock = clock
        self._net = net
        #: guests that did not answer -> when they are asked again
        self._silent: dict[str, float] = {}

    def read(self) -> dict[str, GuestCounters]:
        """Counters by name; guests between two nodes are left out."""
        found: dict[str, GuestCounters] = {}
        for name in self._store.names():
            try:
                guest = self._store.find(name)
            except errors.HypervisorError as err:
                log.debug("%s is not measured: %s", name, errors.text(err))
                continue
            if guest is not None and guest.pid is not None and guest.runtime.move != "in":
                found[name] = self._count(name, guest, guest.pid)
        self._silent = {name: until for name, until in self._silent.items() if name in found}
        return found

    def _count(self, name: str, guest: Guest, pid: int) -> GuestCounters:
        received, received_ops, sent, sent_ops = self._network(guest)
        return GuestCounters(
            cpu=qemu_process.cpu_seconds(pid),
            memory=guest.runtime.memory * _MIB,
            **self._disks(name),
            net_receive=received,
            net_receive_ops=received_ops,
            net_send=sent,
            net_send_ops=sent_ops,
        )

    def _disks(self, name: str) -> dict[str, int]:
        now = self._clock.monotonic()
        if self._silent.get(name, now) > now:
            return {}
        try:
            with self._store.control(name, _PATIENCE) as qmp:
                return sum_blocks(qmp.command("query-blockstats"))
        except errors.HypervisorError as err:
            self._silent[name] = now + _AGAIN
            log.info("disks of %s are not measured for a while: %s", name, errors.text(err))
            return {}

    def _network(self, guest: Guest) -> tuple[int | None, ...]:
        """Bytes and packets that the guest received and sent: the other way round for the tap."""
        taps = [card.tap for card in guest.runtime.cards if card.tap is not None]
        if not taps:
            return None, None, None, None
        files = ("tx_bytes", "tx_packets", "rx_bytes", "rx_packets")
        return tuple(sum(self._counter(tap, file) for tap in taps) for file in files)

    def _counter(self, tap: str, file: str) -> int:
        try:
            return int((self._net / tap / "statistics" / file).read_bytes())
        except (OSError, ValueError):
            return 0


def sum_blocks(answer: list[Mapping[str, Any]]) -> dict[str, int]:
    """Counters over all disks, of the answer to ``query-blockstats``. Pure."""
    keys = {
        "disk_read": "rd_bytes",
        "disk_write": "wr_bytes",
        "disk_read_ops": "rd_operations",
        "disk_write_ops": "wr_operations",
    }
    devices = [each["stats"] for each in answer if each.get("qdev") or each.get("device")]
    return {counter: sum(int(one.get(key, 0)) for one in devices) for counter, key in keys.items()}
