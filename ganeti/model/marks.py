"""Marks on the definition of a parameter: who may set it, who may see it.

``Annotated[bool, doc("..."), Mark.SAFE]``. What has no mark is refused for identities that are
limited to a part of the cluster, so a new parameter is closed to them until somebody marks it.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from typing import Annotated, get_args, get_origin

import msgspec


class Mark(Enum):
    """A property of a parameter, whatever its value."""

    #: reaches no command line, path, device, address or script of a node
    SAFE = auto()
    #: may hold a password; shown only to those who may set it
    SENSITIVE = auto()
    #: names objects, which must be in the limits of the one who asks
    INSTANCE = auto()
    NODE = auto()
    GROUP = auto()
    DISK = auto()
    #: an object of parameters that have marks themselves
    HVPARAMS = auto()
    BEPARAMS = auto()


def find_marks(kind: object) -> frozenset[Mark]:
    """The marks of an annotated type."""
    found: set[Mark] = set()
    while get_origin(kind) is Annotated:
        kind, *extra = get_args(kind)
        found |= {item for item in extra if isinstance(item, Mark)}
    return frozenset(found)


def plain(kind: object) -> object:
    """A type without its annotations."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


@cache
def names(cls: type[msgspec.Struct], mark: Mark) -> frozenset[str]:
    """Fields of a struct that have a mark."""
    return frozenset(
        info.name for info in msgspec.structs.fields(cls) if mark in find_marks(info.type)
    )
