"""The words of a query answer: kinds of fields and the status that goes with every value."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class FieldKind(StrEnum):
    """How a client formats the values of a field; a kind it does not know counts as OTHER."""

    UNKNOWN = "unknown"
    TEXT = "text"
    BOOL = "bool"
    NUMBER = "number"
    FLOAT = "float"
    #: MiB
    UNIT = "unit"
    #: seconds since 1970
    TIMESTAMP = "timestamp"
    OTHER = "other"


class ResultStatus(IntEnum):
    """Status of one value; the value is None for all but NORMAL."""

    NORMAL = 0
    #: no such field
    UNKNOWN = 1
    #: a node gave no answer
    NODATA = 2
    #: this item has no such thing
    UNAVAIL = 3
    #: the node is marked offline
    OFFLINE = 4
