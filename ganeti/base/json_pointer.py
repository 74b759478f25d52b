"""JSON pointers (RFC 6901): ``/nodes/0/name`` is one value in a document. Pure."""

from __future__ import annotations


def find(value: object, pointer: str) -> object:
    """The value that a pointer names; an empty one names the whole document.

    Raises:
        LookupError: there is no such value; ValueError: this is not a pointer. Both have a text.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"'{pointer}' does not begin with /")
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise LookupError(f"there is no '{key}' at {pointer}")
    return value
