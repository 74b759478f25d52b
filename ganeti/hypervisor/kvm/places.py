"""The places of devices on the buses of a PC machine; pure.

A guest finds its devices again by their places, so these are explicit, kept while it runs, and the
same after it moved to another node. On machines of the type q35 a device can only be added to a
running guest behind a root port that was there from the start, so there are enough of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ganeti import errors

#: Root ports of a q35 machine: as many disks and cards as an older machine has free slots.
ROOT_PORTS = 20
_FUNCTIONS = 8
#: Targets of the controllers; that of the controller itself is 7.
_SCSI_TARGETS = {"lsi": 7, "dc390": 7, "megasas": 128, "virtio-scsi-pci": 256}


class Places:
    """Assigns places; ``occupied`` has those in use: device id -> properties of ``-device``."""

    def __init__(
        self,
        reserved: int,
        *,
        q35: bool,
        scsi_controller: str = "lsi",
        occupied: Mapping[str, str] | None = None,
    ) -> None:
        """``reserved`` is kvm_pci_reservations; 0: QEMU places devices, and none can be added."""
        self._q35 = q35
        self._reserved = reserved
        port_slots = -(-ROOT_PORTS // _FUNCTIONS) if q35 else 0
        self._first = reserved + port_slots
        # The last slot of a q35 machine is its own bridge.
        self._last = 30 if q35 else 31
        self._scsi_controller = scsi_controller
        self.occupied: dict[str, str] = dict(occupied or {})

    @property
    def hot(self) -> bool:
        """Whether devices can be added later."""
        return bool(self._reserved)

    def root_ports(self) -> Iterator[str]:
        """Values of ``-device`` for the ports of a q35 machine.

        Raises:
            HypervisorError: too many slots are reserved for them to fit.
        """
        if not self._q35 or not self.hot:
            return
        if self._first > self._last:
            raise errors.HypervisorError(
                f"kvm_pci_reservations {self._reserved} leaves no room on a q35 machine;"
                " set it to 12"
            )
        for number in range(ROOT_PORTS):
            slot = self._reserved + number // _FUNCTIONS
            function = number % _FUNCTIONS
            # No window for I/O ports: the machine has too few for all, and no virtio needs one.
            yield (
                f"pcie-root-port,id=port{number},chassis={number + 1},bus=pcie.0,"
                f"addr={slot:#x}.{function},io-reserve=0" + ",multifunction=on" * (function == 0)
            )

    def express(self, device: str) -> str:
        """Place of a paravirtual device; empty: QEMU chooses.

        Raises:
            HypervisorError: no place is left.
        """
        if not self.hot:
            return ""
        if not self._q35:
            return self.slot(device)
        return self._take(device, ROOT_PORTS, "bus=port{}".format, "root ports")

    def slot(self, device: str) -> str:
        """Place of any other PCI device, ``addr=0xd``; empty: QEMU chooses. Raises likewise."""
        if not self.hot:
            return ""
        count = self._last - self._first + 1
        return self._take(device, count, lambda n: f"addr={self._first + n:#x}", "PCI slots")

    def ide(self, device: str) -> str:
        """``bus=ide.1,unit=0``: q35 has six channels of one disk, older machines two of two."""
        if self._q35:
            return self._take(device, 6, "bus=ide.{}".format, "ide channels")
        return self._take(device, 4, lambda n: f"bus=ide.{n // 2},unit={n % 2}", "ide channels")

    def scsi(self, device: str) -> str:
        """``bus=scsi.0,scsi-id=3``."""
        count = _SCSI_TARGETS.get(self._scsi_controller, 7)
        return self._take(device, count, "bus=scsi.0,scsi-id={}".format, "scsi targets")

    def release(self, device: str) -> None:
        """Forget a device that is gone."""
        self.occupied.pop(device, None)

    def _take(self, device: str, count: int, name: Callable[[int], str], what: str) -> str:
        known = self.occupied.get(device)
        if known is not None:
            return known
        used = set(self.occupied.values())
        for number in range(count):
            place = name(number)
            if place not in used:
                self.occupied[device] = place
                return place
        raise errors.HypervisorError(
            f"the instance has more disks, images and NICs than the {count} {what} of its"
            " machine" + _HINTS[what]
        )


_HINTS = {
    "PCI slots": "; lower kvm_pci_reservations",
    "root ports": "",
    "ide channels": "; use disk_type paravirtual",
    "scsi targets": "; use scsi_controller_type virtio-scsi-pci",
}
