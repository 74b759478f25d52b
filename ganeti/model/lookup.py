"""Objects by name: whole, in another case, or the first part of a host name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.model.group import NodeGroup
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.node import Node

U = TypeVar("U", bound=str)
N = TypeVar("N", Node, NodeGroup, Instance, Network, Image)


def find(
    what: str, name: str, by_uuid: Mapping[U, N], by_name: Mapping[str, N], *, short: bool = True
) -> N:
    """The object with this name or UUID; ``what`` is its kind, for messages. OpPrereqError."""
    found = find_by_name(what, name, by_uuid, by_name, short=short)
    if found is not None:
        return found
    raise errors.make_unknown_error(f"{what} '{name}' is not known{nearest(name, by_name)}")


def find_by_name(
    what: str, name: str, by_uuid: Mapping[U, N], by_name: Mapping[str, N], *, short: bool = True
) -> N | None:
    """Like :func:`find`, but None when there is none.

    Raises:
        OpPrereqError: ``short`` is allowed, and several names begin with this part.
    """
    found = by_name.get(name) or by_uuid.get(cast(U, name))
    if found is not None or not short or not name:
        return found
    return _match_short_name(what, name, by_name)


def _match_short_name(what: str, name: str, by_name: Mapping[str, N]) -> N | None:
    wanted = name.lower()
    lowered = [(full.lower(), obj) for full, obj in by_name.items()]
    # A whole name in another case counts more than a part of one.
    matches = [obj for full, obj in lowered if full == wanted]
    if not matches:
        matches = [obj for full, obj in lowered if full.startswith(f"{wanted}.")]
    if len(matches) > 1:
        names = ", ".join(sorted(obj.name for obj in matches))
        raise errors.make_invalid_error(f"{what} name '{name}' is ambiguous: {names}")
    return matches[0] if matches else None
