"""Virtual processors of a running guest: which it has, which can come and go.

QEMU's machine has a fixed number of slots (``maxcpus``). They are filled from the first one on and
emptied from the last one on. Only what was added to the running guest can go again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm.accel import Accelerator
from ganeti.hypervisor.kvm.devices import Processor

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Properties that tell slots apart, the most significant one first.
_ORDER = ("socket-id", "die-id", "core-id", "thread-id")


@dataclass(frozen=True)
class Slot:
    """A place for one processor."""

    number: int
    driver: str
    properties: JsonObject
    #: of the processor in QEMU's tree, empty: there is none
    path: str

    def __str__(self) -> str:
        return str(self.number)

    @property
    def was_added(self) -> bool:
        """Whether its processor came to the running guest."""
        return self.path.startswith("/machine/peripheral/")

    def device(self) -> Processor:
        """Arguments of ``device_add``."""
        return {"driver": self.driver, "id": f"cpu{self.number}", **self.properties}

    def is_present(self, qmp: Qmp) -> bool:
        """Whether it holds a processor now."""
        return bool(slots(qmp)[self.number].path)


def slots(qmp: Qmp) -> list[Slot]:
    """All places of a running guest, in the order in which they are filled."""
    return order_slots(qmp.command("query-hotpluggable-cpus"))


def order_slots(answer: Sequence[JsonObject]) -> list[Slot]:
    """The places of QEMU's answer. Pure."""
    entries = sorted(answer, key=lambda item: [item["props"].get(key, 0) for key in _ORDER])
    return [
        Slot(number, str(entry["type"]), entry["props"], str(entry.get("qom-path", "")))
        for number, entry in enumerate(entries)
    ]


def find_added(found: Sequence[Slot], wanted: int, name: str) -> list[Slot]:
    """Empty places to fill, first ones first. Pure.

    Raises:
        HotplugError: there are not so many places.
    """
    if wanted > len(found):
        raise errors.HotplugError(
            f"the running instance {name} can have {len(found)} processors at most, not {wanted};"
            f" set the hypervisor parameter max_vcpus to {wanted} or more and restart it"
        )
    return [slot for slot in found[:wanted] if not slot.path]


def find_removed(
    found: Sequence[Slot], wanted: int, name: str, accelerator: Accelerator
) -> list[Slot]:
    """Processors that have to go, last ones first. Pure.

    Raises:
        HotplugError: they were there from the start; or QEMU runs the guest in software: it (7.2)
            then corrupts its own memory when a processor goes, and dies with the guest when the
            next one comes.
    """
    surplus = [slot for slot in reversed(found[wanted:]) if slot.path]
    if not all(slot.was_added for slot in surplus):
        first = sum(1 for slot in found if slot.path and not slot.was_added)
        raise errors.HotplugError(
            f"the running instance {name} was started with {first} processors and cannot have fewer"
        )
    if surplus and accelerator == "tcg":
        raise errors.HotplugError(
            f"instance {name} is run in software (accelerator tcg), where QEMU cannot safely take"
            " processors away"
        )
    return surplus
