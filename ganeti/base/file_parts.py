"""Changes of a few members of a JSON file, for files that are too large to be written at each one.

A change is ``{path: {member: value}}``: the path leads to an object in the file (``ops/17``: the
18th item of the list ``ops``; empty: the whole), whose members get these values. Paths must not
lead into values that another path sets. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject

#: Path of an object -> members that change, with their new values.
Parts = dict[str, JsonObject]
#: New content of a file: all of it, or what changes of it.
Content = bytes | Parts


class Contents:
    """Newest contents of files: the whole of a file, what changes of it, or one after the other."""

    def __init__(self, contents: Mapping[str, Content] | None = None) -> None:
        self.whole: dict[str, bytes] = {}
        self.parts: dict[str, Parts] = {}
        self.add(contents or {})

    def __bool__(self) -> bool:
        return bool(self.whole or self.parts)

    def add(self, contents: Mapping[str, Content]) -> None:
        """Take contents that are newer."""
        for name, content in contents.items():
            if isinstance(content, bytes):
                self.whole[name] = content
                self.parts.pop(name, None)
            else:
                parts = self.parts.setdefault(name, {})
                for path, members in content.items():
                    parts.setdefault(path, {}).update(members)

    def update(self, newer: Contents) -> None:
        self.add(newer.whole)
        self.add(newer.parts)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.whole.pop(name, None)
            self.parts.pop(name, None)

    def names(self) -> list[str]:
        return list({**self.whole, **self.parts})


def apply(data: bytes, parts: Parts) -> bytes:
    """A JSON file with other values of some members.

    Raises:
        ParseError: the file is not JSON, or has no such object.
    """
    value = jsonio.read(data)
    for path, members in parts.items():
        _find(value, path).update(members)
    return jsonio.dumps_bytes(value)


def _find(value: Any, path: str) -> JsonObject:
    for word in path.split("/") if path else ():
        try:
            value = value[int(word)] if isinstance(value, list) else value[word]
        except (LookupError, TypeError, ValueError) as err:
            raise errors.ParseError(f"there is no object '{path}'") from err
    if not isinstance(value, dict):
        raise errors.ParseError(f"there is no object '{path}'")
    return value
