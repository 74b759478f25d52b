"""How the death of a silent node is proven: rung by rung, from the cheapest to a person's word.

Nothing follows from silence. Whatever proves the death, the lease of the node is waited for, if it
has one: a fence device that lies meets a node that has ended its guests by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Rung(Enum):
    """Kinds of proof that a node is dead."""

    LEASE = "lease"
    HELPER = "out-of-band helper"
    AGENT = "fence agent"
    PERSON = "administrator"


#: Devices that switch a node off, in the order in which they are tried, and the node parameter
#: that names each.
DEVICES: Final = {Rung.HELPER: "oob_program", Rung.AGENT: "fence_agent"}


def list_devices(ndparams: Mapping[str, object]) -> dict[Rung, str]:
    """The devices of a node with their names, in the order in which they are tried."""
    found = {rung: str(ndparams.get(parameter) or "") for rung, parameter in DEVICES.items()}
    return {rung: name for rung, name in found.items() if name}


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing before this moment, then tell the ladder."""

    until: float


@dataclass(frozen=True, slots=True)
class Try:
    """Switch the node off by this device, and ask whether it is off."""

    rung: Rung


@dataclass(frozen=True, slots=True)
class Look:
    """Call the node once more: a node that answers is not dead."""


@dataclass(frozen=True, slots=True)
class Proven:
    """The node is dead."""

    rung: Rung


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing proves it; each rung with what it said."""

    reasons: tuple[str, ...]


Step = Wait | Try | Look | Proven | Failed


class Ladder:
    """One attempt to prove the death of one node. Tell it what became of each step."""

    def __init__(
        self, devices: Sequence[Rung], *, lease_over: float | None, watchdog: bool
    ) -> None:
        """``devices``: rungs to try, in order, :data:`Rung.PERSON` for a word that was given.

        ``lease_over``: when the lease of the node is over, None for a node that has none.
        ``watchdog``: the node has said that a watchdog resets it when the lease ends.
        """
        self._left = list(devices)
        self._lease_over = lease_over
        if watchdog and lease_over is not None:
            self._left.insert(0, Rung.LEASE)
        self._reasons: list[str] = []
        self._proof: Rung | None = None
        self._looked = False

    def decide(self, now: float) -> Step:
        """The next action; the same again until a result arrives or time has passed."""
        if self._proof is None and self._left:
            rung = self._left[0]
            if rung in (Rung.LEASE, Rung.PERSON):
                self._proof = rung
            else:
                return Try(rung)
        if self._proof is None:
            return Failed(tuple(self._reasons))
        if self._lease_over is not None and now < self._lease_over:
            return Wait(self._lease_over)
        return Proven(self._proof) if self._looked else Look()

    def note_result(self, why_not: str = "") -> None:
        """The device said that the node is off; or ``why_not``."""
        rung = self._left.pop(0)
        if why_not:
            self._reasons.append(f"{rung.value}: {why_not}")
        else:
            self._proof = rung

    def note_call(self, *, answers: bool) -> None:
        """Whether the node answered after the proof: then the proof was false."""
        if not answers:
            self._looked = True
            return
        proof, self._proof = self._proof, None
        assert proof is not None
        self._left = []  # it lives, so no rung can prove anything
        self._reasons.append(f"{proof.value}: the node answers, so it is not dead")
