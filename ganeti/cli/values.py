"""Texts of options to values; pure functions.

A function that does not like its text raises :class:`ValueError` with what was expected; the
parser adds which option it was. Key-value options raise ParameterError, as wrong parameters do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject

#: ``no_key`` means false, ``-key`` takes a key back to its default.
NO_PREFIX = "no_"
RESET_PREFIX = "-"

#: Value of a key: text, a switch, or None for "back to the default".
KeyVals = dict[str, str | bool | None]
#: An identifier (name, index, ...) and its keys; False to remove it, None to reset it.
IdentKeyVals = tuple[str, KeyVals | bool | None]


def split_list(text: str, separator: str = ",") -> list[str]:
    """Items of a list; a backslash takes the meaning from the character after it.

    An empty text is an empty list.
    """
    if not text:
        return []
    items: list[str] = []
    current: list[str] = []
    chars = iter(text)
    for char in chars:
        if char == "\\":
            current.append(next(chars, "\\"))
        elif char == separator:
            items.append("".join(current))
            current = []
        else:
            current.append(char)
    items.append("".join(current))
    return items


def words(text: str) -> list[str]:
    """Items between commas, without empty ones; nothing takes the meaning from a comma."""
    return [word for word in text.split(",") if word]


def nodes(text: str) -> list[str]:
    """``primary:secondary`` as names."""
    return [name for name in text.split(":", 1) if name]


def keyval(text: str, *, prefixes: bool = True) -> KeyVals:
    """``a=1,b,no_c,-d`` as ``{"a": "1", "b": True, "c": False, "d": None}``.

    Without ``prefixes`` every key needs a value.

    Raises:
        ParameterError: a key twice, an empty key, a value missing.
    """
    result: KeyVals = {}
    for item in split_list(text):
        key, found, value = item.partition("=")
        entry: str | bool | None = value
        if not found:
            if not prefixes:
                raise errors.ParameterError(f"Missing value for key '{item}' in '{text}'")
            key, entry = _switch(item)
        if not key:
            raise errors.ParameterError(f"Missing key before '{item}' in '{text}'")
        if key in result:
            raise errors.ParameterError(f"Duplicate key '{key}' in '{text}'")
        result[key] = entry
    return result


def _switch(item: str) -> tuple[str, bool | None]:
    if item.startswith(NO_PREFIX):
        return item.removeprefix(NO_PREFIX), False
    if item.startswith(RESET_PREFIX):
        return item.removeprefix(RESET_PREFIX), None
    return item, True


def identkeyval(text: str, *, prefixes: bool = True) -> IdentKeyVals:
    """``ident:key=val,...``; ``no_ident`` removes (False) and ``-ident`` resets (None).

    A minus before a digit is a negative index, not a reset.

    Raises:
        ParameterError: keys after an identifier to remove or reset, or as for :func:`keyval`.
    """
    ident, _, rest = text.partition(":")
    if prefixes:
        state: bool | None = True
        if ident.startswith(NO_PREFIX):
            ident, state = ident.removeprefix(NO_PREFIX), False
        elif ident.startswith(RESET_PREFIX) and not ident[1:2].isdigit():
            ident, state = ident.removeprefix(RESET_PREFIX), None
        if state is not True:
            if rest:
                raise errors.ParameterError(f"No keys can be given with '{text}'")
            return ident, state
    return ident, keyval(rest, prefixes=prefixes)


def multilistidentkeyval(text: str) -> list[dict[str, KeyVals]]:
    """``min:a=1/max:a=2//min:a=3/max:a=4``: a list of groups of identifiers with their keys.

    Raises:
        ParameterError: an identifier twice in a group, or as for :func:`keyval`.
    """
    groups: list[dict[str, KeyVals]] = []
    for part in text.split("//") if text else []:
        group: dict[str, KeyVals] = {}
        for piece in part.split("/"):
            ident, keys = identkeyval(piece, prefixes=False)
            if ident in group:
                raise errors.ParameterError(f"Duplicate '{ident}' in '{text}'")
            if isinstance(keys, dict):
                group[ident] = keys
        groups.append(group)
    return groups


def unit(text: str) -> int:
    """A size in MiB, rounded up to a multiple of 4."""
    try:
        return units.parse_size(text)
    except errors.UnitParseError as err:
        raise ValueError(errors.text(err)) from None


def boolean(text: str) -> bool:
    """``yes`` or ``true``, ``no`` or ``false``, in any case."""
    lowered = text.lower()
    if lowered in ("yes", "true"):
        return True
    if lowered in ("no", "false"):
        return False
    raise ValueError(f"'{text}' is neither yes nor no")


def integer(text: str) -> int:
    """An integer."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an integer") from None


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a number") from None


def parse_float_or_default(text: str) -> float | str:
    """A number, or the word ``default``."""
    if text.lower() == "default":
        return "default"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither a number nor 'default'") from None


def uid_ranges(text: str) -> list[list[int]]:
    """``1000-1010,1020`` as first and last of each range.

    Raises:
        OpPrereqError: no numbers, or a range that ends before it begins.
    """
    ranges: list[list[int]] = []
    for item in text.replace("\n", ",").split(","):
        if not item.strip():
            continue
        first, dash, last = item.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 0, -1
        if high < low or low < 0:
            raise errors.make_invalid_error(
                f"'{item}' is not a range of user IDs: expected a form like 1000-1010",
            )
        ranges.append([low, high])
    return ranges


def indices(text: str) -> list[int]:
    """``0,2`` as numbers of disks.

    Raises:
        OpPrereqError: something else than numbers.
    """
    try:
        return [int(item) for item in text.split(",")] if text else []
    except ValueError:
        raise errors.make_invalid_error(
            f"'{text}' is not a list of disk indexes: expected a form like 0,2",
        ) from None


def index_list(given: list[IdentKeyVals], what: str) -> list[JsonObject]:
    """``[("0", {...}), ("1", {...})]`` as a list in which missing places are empty.

    Raises:
        OpPrereqError: an identifier that is not an index, or an index given twice.
    """
    places: dict[int, JsonObject] = {}
    for ident, keys in given:
        if not (ident.isascii() and ident.isdigit()):
            raise errors.make_invalid_error(
                f"'{ident}' is not a {what} index: expected a form like 0:key=value",
            )
        if not isinstance(keys, dict):
            raise errors.make_invalid_error(f"{what} {ident} cannot be removed or reset here")
        if int(ident) in places:
            raise errors.make_invalid_error(f"{what} {ident} is given twice")
        places[int(ident)] = dict(keys)
    return [places.get(index, {}) for index in range(max(places, default=-1) + 1)]


def index_by_name(given: Sequence[IdentKeyVals]) -> dict[str, JsonObject]:
    """``[("kvm", {...})]`` as a mapping; later keys of the same name are added.

    Raises:
        OpPrereqError: a whole name removed or reset, which has no meaning here.
    """
    result: dict[str, JsonObject] = {}
    for name, keys in given:
        if not isinstance(keys, dict):
            raise errors.make_invalid_error(
                f"'{name}' cannot be removed here: expected {name}:key=value",
            )
        result.setdefault(name, {}).update(resets_as_default(keys))
    return result


def disk_state(given: Sequence[IdentKeyVals]) -> dict[str, dict[str, JsonObject]]:
    """``storage/name:key=value`` options as a mapping of storage, name and keys.

    Raises:
        OpPrereqError: a name without a storage type.
    """
    result: dict[str, dict[str, JsonObject]] = {}
    for place, keys in index_by_name(given).items():
        storage, slash, name = place.partition("/")
        if not (storage and slash and name):
            raise errors.make_invalid_error(
                f"'{place}' is not a storage unit: expected a form like plain/xenvg",
            )
        result.setdefault(storage, {})[name] = keys
    return result


def value_of_switches(given: Sequence[object], names: Mapping[object, str]) -> object:
    """The value that switches chose; ``names`` are the switches of all values.

    Raises:
        OpPrereqError: they chose several.
    """
    found = list(dict.fromkeys(given))
    if len(found) > 1:
        flags = " and ".join(names[value] for value in sorted(found, key=list(names).index))
        raise errors.make_invalid_error(f"Give only one of {flags}")
    return found[0]


def drop_resets(params: KeyVals) -> JsonObject:
    """Parameters of a new object: a key taken back to its default is left out."""
    return {key: value for key, value in params.items() if value is not None}


def resets_as_default(params: KeyVals) -> JsonObject:
    """Parameters of a change: a key taken back to its default has the value ``default``."""
    return {key: "default" if value is None else value for key, value in params.items()}
