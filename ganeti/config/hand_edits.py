"""Edits of ``config.data`` that the master did not make: what they changed, and why it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ganeti import errors
from ganeti.base import jsonio, sealed_file
from ganeti.base.sealed_file import Seal
from ganeti.config import differences
from ganeti.config.redaction import redact
from ganeti.paths import Paths

#: The command that shows an edit and accepts it.
COMMAND = "gnt-cluster accept-config"
#: Changes that are named in an error; the command shows all.
_NAMED = 5
#: Letters of a value that are shown.
_SHOWN = 60


def describe(old: object, new: object) -> list[str]:
    """The differences, one line for each added or removed object and for each key. Pure.

    Values of secrets are not shown.
    """
    before, after = _objects(old), _objects(new)
    lines = [f"{place}{_label(before[place][0])} was removed" for place in before.keys() - after]
    lines += [f"{place}{_label(after[place][0])} was added" for place in after.keys() - before]
    lines.sort()
    for place, (name, values) in after.items():
        if place in before:
            lines += _changes(place, name, before[place][1], values)
    return lines or ["only its form (spaces, order of keys)"]


def _objects(raw: object) -> dict[str, tuple[str, object]]:
    """Place -> name and values of each object; what is not in one is at the place ''."""
    found: dict[str, tuple[str, object]] = {}
    rest = {}
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if key == "cluster" or key not in differences.KINDS or not isinstance(value, dict):
            rest[key] = value
            continue
        for uuid, item in value.items():
            name = differences.name_of(key, item) if isinstance(item, dict) else ""
            found[f"{key}/{uuid}"] = name, item
    return {"": ("", rest), **found}


def _changes(place: str, name: str, old: object, new: object) -> Iterator[str]:
    for path, before, after in differences.leaves((), old, new, exact=True):
        where = "/".join((place, *path)).strip("/")
        yield f"{where}{_label(name)}: {_value(before, path)} -> {_value(after, path)}"


def _label(name: str) -> str:
    return f" ({name})" if name else ""


def _value(value: object, path: tuple[str, ...]) -> str:
    text = jsonio.dumps(redact(value, path))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def check(paths: Paths, data: bytes) -> Seal:
    """Refuse a content of ``config.data`` that was edited and not accepted.

    Without digests (it was written by an older version) only its form is checked.

    Raises:
        ConfigurationError: it was edited; the text says what is different, and what to do.
        ParseError: a key is there twice.
    """
    path = paths.config_file
    state = sealed_file.seal(path, data)
    if state is Seal.GOOD:
        return state
    new = jsonio.loads_unique(data)
    if state is Seal.MISSING:
        return state
    raise errors.ConfigurationError(
        f"{path} was edited at {_moment(paths)}, after the master had written it:"
        f" {_brief(paths, new)}. Nothing was done with it. If it is right, run '{COMMAND}' on this"
        f" node, which shows what is different and asks{_describe_restore(paths)}"
    )


def _moment(paths: Paths) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(paths.config_file.stat().st_mtime))


def _brief(paths: Paths, new: object) -> str:
    lines = describe_edit(paths, new)
    if lines is None:
        return "its SHA-256 is not that in config.data.sha256; what was there before is not known"
    more = len(lines) - _NAMED
    return "; ".join([*lines[:_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _describe_restore(paths: Paths) -> str:
    if sealed_file.read_previous(paths.config_file) is None:
        return ""
    _digests, copy = sealed_file.companions(paths.config_file)
    return f". To take it back: cp {copy} {paths.config_file}"


def describe_edit(paths: Paths, new: object) -> list[str] | None:
    """The changes of an edit; None when the content before it is not known."""
    previous = sealed_file.read_previous(paths.config_file)
    return None if previous is None else describe(jsonio.loads(previous), new)
