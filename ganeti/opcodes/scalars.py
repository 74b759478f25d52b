"""Plain parameter types with limits."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ganeti import constants
from ganeti.base.typed import doc as doc

NonEmpty = Annotated[str, Meta(min_length=1)]
UInt = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]
#: Finite, and small enough to be counted in nanoseconds.
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
DiskIndex = Annotated[int, Meta(ge=0, lt=constants.MAX_DISKS)]
#: Priorities a client may submit with: high, normal, low (smaller runs earlier).
SubmitPriority = Literal[-10, 0, 10]

"""Parameters that are checked by the operation, not by their shape."""
