"""How stamps and leases of nodes travel: as headers of the node calls that are made anyhow.

A call of the master carries a grant, and its answer a stamp; both are JSON. For their
meaning see :mod:`ganeti.recovery.lease`.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.model.ids import NodeUuid
from ganeti.recovery.lease import Grant, Stamp

#: Header of a call: what the master grants.
LEASE_HEADER: Final = "X-Ganeti-Lease"
#: Header of its answer: a moment on the clock of the node.
STAMP_HEADER: Final = "X-Ganeti-Stamp"


class Granting(Protocol):
    """The master's side. Thread-safe; must not block."""

    def now(self) -> float:
        """The clock that the moments below are of."""

    def grant(self, node: NodeUuid) -> Grant | None:
        """Make the grant for the call to a node that is sent now; None for nothing."""

    def hear(self, node: NodeUuid, sent: float, stamp: Stamp | None) -> None:
        """A node has answered a call."""


class Holding(Protocol):
    """The node's side. Thread-safe."""

    def take(self, grant: Grant) -> None:
        """A call of the master has brought this."""

    def make_stamp(self) -> Stamp:
        """Make the stamp for the answer that is sent now."""


def encode(value: Grant | Stamp) -> str:
    return msgspec.json.encode(value).decode("utf-8")


def read_grant(text: str) -> Grant:
    """Raises ParseError for something else."""
    try:
        return typed.decode(text, Grant)
    except msgspec.DecodeError as err:
        raise errors.ParseError(f"the header {LEASE_HEADER} cannot be read: {err}") from err


def read_stamp(text: str | None) -> Stamp | None:
    """The stamp of an answer; None for one without, as nodes of earlier versions send."""
    if text is None:
        return None
    try:
        return typed.decode(text, Stamp)
    except msgspec.DecodeError as err:
        raise errors.ParseError(f"the header {STAMP_HEADER} cannot be read: {err}") from err
