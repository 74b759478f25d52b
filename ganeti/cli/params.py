"""Option values to parameters of opcodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.cli import selection
from ganeti.cli.values import IdentKeyVals, resets_as_default
from ganeti.luxi.client import Client

_INVAL = errors.ErrorCode.INVAL


def by_name(given: Sequence[IdentKeyVals]) -> dict[str, dict[str, Any]]:
    """``[("kvm", {...})]`` as a mapping; later keys of the same name are added.

    Raises:
        OpPrereqError: a whole name removed or reset, which has no meaning here.
    """
    result: dict[str, dict[str, Any]] = {}
    for name, keys in given:
        if not isinstance(keys, dict):
            raise errors.OpPrereqError(
                f"'{name}' cannot be removed here: expected {name}:key=value", _INVAL
            )
        result.setdefault(name, {}).update(resets_as_default(keys))
    return result


def disk_state(given: Sequence[IdentKeyVals]) -> dict[str, dict[str, dict[str, Any]]]:
    """``storage/name:key=value`` options as a mapping of storage, name and keys."""
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for place, keys in by_name(given).items():
        storage, slash, name = place.partition("/")
        if not (storage and slash and name):
            raise errors.OpPrereqError(
                f"'{place}' is not a storage unit: expected a form like lvm-vg/xenvg", _INVAL
            )
        result.setdefault(storage, {})[name] = keys
    return result


def words(text: str | None, what: str, known: Sequence[str] = ()) -> list[str] | None:
    """A comma list of known words; None when the option was not given, empty for ''.

    Raises:
        OpPrereqError: a word that is not known.
    """
    if text is None:
        return None
    found = [word for word in text.split(",") if word]
    for word in found:
        if known and word not in known:
            raise errors.OpPrereqError(
                f"There is no {what} '{word}'{nearest(word, known)}; known are {', '.join(known)}",
                _INVAL,
            )
    return found


def split_nodes(text: str | None) -> tuple[str | None, str | None]:
    """``primary:secondary`` as two names."""
    if not text:
        return None, None
    primary, _, secondary = text.partition(":")
    return primary or None, secondary or None


def online_nodes(
    client: Client, names: Sequence[str], group: str | None, *, without: str = ""
) -> list[str]:
    """Names of nodes that are not offline; ``names`` and ``group`` limit them.

    Raises:
        OpPrereqError: an unknown name or group, or no node is left.
    """
    rows = client.query_nodes(names, ["name", "uuid", "offline", "group", "group.uuid"])
    selection.refuse_unknown(client, "node", names, [row[:2] for row in rows])
    if group is not None:
        known = client.query_groups([], ["name", "uuid"])
        selection.refuse_unknown(client, "node group", [group], known)
        rows = [row for row in rows if group in row[3:5]]
    found = [str(row[0]) for row in rows if not row[2] and row[0] != without]
    if not found and not without:
        raise errors.OpPrereqError("No node that is online was selected", _INVAL)
    return found
