"""JSON answers made of LUXI's rows without reading what is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from ganeti.base import jsonio

_ROWS = msgspec.json.Decoder(list[list[msgspec.Raw]])
#: Function that replaces a value: gets its JSON text, returns another.
Change = Callable[[bytes], bytes]


class Columns:
    """Names of the values in a row, and what is added to the objects made of rows.

    ``changes`` replace the JSON text of a column, ``aliases`` repeat a column under a second name.
    """

    def __init__(
        self,
        fields: Sequence[str],
        *,
        changes: dict[str, Change] | None = None,
        aliases: dict[str, str] | None = None,
    ) -> None:
        self.fields = tuple(fields)
        copies = aliases or {}
        names = [*self.fields, *copies.values()]
        #: which column each key takes
        self._order = [*range(len(self.fields)), *map(self.fields.index, copies)]
        quoted = [jsonio.dumps_bytes(name) for name in names]
        self._heads = [b"," + name + b":" for name in quoted]
        self._heads[0] = b"{" + self._heads[0][1:]
        self._changes = [
            (self.fields.index(name), change) for name, change in (changes or {}).items()
        ]
        self._copied = bool(copies)

    def objects(self, data: bytes, *, having: str = "") -> list[bytes]:
        """JSON text of an object for each row of a result in JSON.

        Rows in which the column ``having`` is null are left out.
        """
        found = []
        needed = self.fields.index(having) if having else None
        for row in _ROWS.decode(data):
            cells: list[Any] = row
            if needed is not None and bytes(cells[needed]) == b"null":
                continue
            for index, change in self._changes:
                cells[index] = change(bytes(cells[index]))
            if self._copied:
                cells = [cells[index] for index in self._order]
            parts: list[Any] = [None] * (2 * len(cells))
            parts[::2] = self._heads
            parts[1::2] = cells
            parts.append(b"}")
            found.append(b"".join(parts))
        return found


def format_list(items: Sequence[bytes]) -> bytes:
    """JSON text of a list of values in JSON."""
    return b"[" + b",".join(items) + b"]"


def repeat_under(name: str, of: str) -> Change:
    """A change that repeats a value inside an object under a second name."""

    # Most objects have the same values.
    @lru_cache(maxsize=1024)
    def change(text: bytes) -> bytes:
        value = msgspec.json.decode(text)
        if not isinstance(value, dict) or of not in value:
            return text
        return msgspec.json.encode({**value, name: value[of]})

    return change
