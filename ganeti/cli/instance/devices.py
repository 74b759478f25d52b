"""The options ``--disk`` and ``--net`` as parameters of opcodes; pure functions.

All of them raise OpPrereqError (wrong_input) with one sentence that names the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from ganeti import constants, errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.cli.values import IdentKeyVals, KeyVals, index_list, keyval

#: Words that add or take away a device, as an identifier or as a key after an index.
_MOVES = ("add", "attach", "remove", "detach")
_ACTIONS = (*_MOVES, "modify")
_MOST = {"disk": constants.MAX_DISKS, "NIC": constants.MAX_NICS}
_OPTION = {"disk": "--disk", "NIC": "--net"}
_LAST = -1


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


# a new instance ------------------------------------------------------------------------------


def new_disks(opts: SimpleNamespace) -> list[JsonObject]:
    """Disks of a new instance from ``--disk``, ``-s`` and the template."""
    if opts.disk_template == "diskless":
        if opts.disks or opts.size is not None:
            raise _make_error("A diskless instance has no disks: omit --disk and --os-size")
        return []
    if opts.size is not None:
        if opts.disks:
            raise _make_error("Give either --disk or --os-size, not both")
        return [{"size": opts.size}]
    if not opts.disks:
        raise _make_error("No disk was given: use --disk 0:size=10G, --os-size 10G or -t diskless")
    disks = _to_list(opts.disks, "disk")
    return [_new_disk(index, keys) for index, keys in enumerate(disks)]


def given_disks(given: Sequence[IdentKeyVals]) -> list[JsonObject]:
    """Keys that ``--disk`` gives to disks that something else describes, by index."""
    return [_disk_keys(index, keys) for index, keys in enumerate(_to_list(given, "disk"))]


def _new_disk(index: int, keys: JsonObject) -> JsonObject:
    if "adopt" in keys:
        for other in ("size", "spindles"):
            if other in keys:
                raise _make_error(f"Disk {index}: an adopted disk keeps its {other}; omit it")
        return {**_disk_keys(index, keys), "size": 0}
    if "size" not in keys:
        given = f", not only {', '.join(keys)}" if keys else ""
        raise _make_error(
            f"Disk {index} needs a size or something to adopt, as in {index}:size=10G{given}"
        )
    return _disk_keys(index, keys)


def new_nics(opts: SimpleNamespace) -> list[JsonObject]:
    """NICs of a new instance: those of ``--net``, none, or one with default values."""
    if opts.no_nics:
        if opts.nics:
            raise _make_error("Give either --net or --no-nics, not both")
        return []
    if not opts.nics:
        return [{}]
    nics = _to_list(opts.nics, "NIC")
    return [_nic_keys(index, keys) for index, keys in enumerate(nics)]


def _to_list(given: Sequence[IdentKeyVals], what: str) -> list[JsonObject]:
    for ident, _keys in given:
        _index(ident, what)
    return index_list(list(given), what)


def _index(ident: str, what: str) -> int:
    """The place of a device; also limits how long a list with gaps can get."""
    if not (ident.isascii() and ident.isdigit()):
        raise _make_error(f"{_OPTION[what]}: '{ident}' is not a {what} index, as in 0:key=value")
    if len(ident) > 3 or int(ident) >= _MOST[what]:
        raise _make_error(
            f"{_OPTION[what]}: there is no {what} {ident}: an instance has at most"
            f" {_MOST[what]}, counted from 0"
        )
    return int(ident)


# changes of an instance ----------------------------------------------------------------------


def changes(given: Sequence[IdentKeyVals], what: str) -> list[list[object]]:
    """``[action, index or name, parameters]`` for each option; ``what`` as in error texts.

    Forms: ``add:...`` (or ``add,...``) and ``remove`` act on the end of the list, ``N:add,...`` and
    ``N:remove`` on a place, ``N:key=value`` modifies; instead of N a name or uuid can be given.
    """
    return [_change(ident, keys, what) for ident, keys in given]


def _change(ident: str, keys: KeyVals | bool | None, what: str) -> list[object]:
    ident, comma, more = ident.partition(",")
    if comma and ident in _MOVES and isinstance(keys, dict):
        # the older way to write add:size=10G
        keys = {**keyval(more), **keys}
    elif comma:
        ident += f",{more}"
    if not isinstance(keys, dict):
        raise _make_error(f"{_OPTION[what]}: to remove {what} {ident} write {ident}:remove")
    item: int | str = _LAST
    if ident in _MOVES:
        action, rest = ident, dict(keys)
    else:
        item = _place(ident, what)
        action, rest = _split_action(ident, keys, what)
    if action in ("remove", "detach"):
        if rest:
            raise _make_error(
                f"{_OPTION[what]} {ident}: '{action}' takes no other keys, such as"
                f" '{next(iter(rest))}'"
            )
        return [action, item, {}]
    if action == "modify" and not rest:
        raise _make_error(f"{_OPTION[what]} {ident}: nothing to change, as in {ident}:key=value")
    if what == "disk":
        if action == "add" and "size" not in rest:
            raise _make_error(f"--disk {ident}: a new disk needs a size, as in add:size=10G")
        return [action, item, _disk_keys(ident, rest)]
    return [action, item, _nic_keys(ident, rest)]


def _place(ident: str, what: str) -> int | str:
    if not ident:
        raise _make_error(
            f"{_OPTION[what]}: an index, a name, 'add' or 'remove' is missing at the front"
        )
    digits = ident.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return ident
    if ident == "-1":
        return _LAST
    return _index(ident, what)


def _split_action(ident: str, keys: KeyVals, what: str) -> tuple[str, JsonObject]:
    """Action among the keys (``modify`` if there is none), and the other keys."""
    found = [key for key in keys if key in _ACTIONS]
    for key in found:
        if keys[key] is not True:
            raise _make_error(f"{_OPTION[what]} {ident}: '{key}' takes no value")
    if len(found) > 1:
        raise _make_error(f"{_OPTION[what]} {ident}: only one of {' and '.join(found)} can be done")
    rest = {key: text for key, text in keys.items() if key not in _ACTIONS}
    return (found[0] if found else "modify"), rest


# recreating ----------------------------------------------------------------------------------


def recreation(given: Sequence[IdentKeyVals]) -> list[list[object]]:
    """``[index, parameters]`` of the disks to recreate, by index; empty for all of them."""
    result: dict[int, JsonObject] = {}
    for ident, keys in given:
        place = _index(ident, "disk")
        if place in result:
            raise _make_error(f"--disk: disk {place} is given twice")
        if not isinstance(keys, dict):
            raise _make_error(f"--disk: write {place} to recreate disk {place}")
        result[place] = _disk_keys(place, keys)
    return [[place, keys] for place, keys in sorted(result.items())]


# keys ----------------------------------------------------------------------------------------

_DISK_NUMBERS = ("spindles", "max_iops", "max_bandwidth")


def _disk_keys(ident: int | str, keys: KeyVals) -> JsonObject:
    """Keys of a disk with numbers where numbers are wanted; unknown ones are left to the master,
    which has to know them for external storage."""
    result: JsonObject = {}
    for key, found in keys.items():
        text = _text(f"Disk {ident}", key, found)
        if key == "size":
            result[key] = size(text, f"Disk {ident}")
        elif key in _DISK_NUMBERS:
            result[key] = _number(text, f"Disk {ident}: {key}")
        else:
            result[key] = text
    return result


def _nic_keys(ident: int | str, keys: KeyVals) -> JsonObject:
    from ganeti.opcodes.devices import NicParams  # making the request needs it in any case

    known = NicParams.__struct_fields__
    for key in keys:
        if key not in known:
            raise _make_error(
                f"NIC {ident}: unknown key '{key}'{nearest(key, known)};"
                f" known are {', '.join(known)}"
            )
    return {key: _text(f"NIC {ident}", key, found) for key, found in keys.items()}


def _text(device: str, key: str, found: str | bool | None) -> str:
    if not isinstance(found, str):
        raise _make_error(f"{device}: '{key}' needs a value, as in {key}=...")
    return found


def size(text: str, what: str) -> int:
    """MiB of a size; the error names what it was for."""
    try:
        return units.parse_size(text)
    except errors.UnitParseError as err:
        raise _make_error(f"{what}: {errors.text(err)}") from None


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise _make_error(f"{what} must be a number, not '{text}'")
    return int(text)
