"""Which values of the configuration are shown to no reader, in any form. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ganeti.opcodes.hidden import REDACTED

#: Names of values that are secret: private OS parameters, and whatever is called a password.
_SECRET = re.compile(r"private|secret|passw|passphrase|token|credential|api_?key", re.IGNORECASE)
#: Names that end like this tell where a secret is, not what it is.
_PLACE = re.compile(r"(_file|_path|_dir)\Z", re.IGNORECASE)
_PLACE_OF_DISK = "logical_id"
#: DRBD: nodes, port, minors, and the secret that both sides share.
_DRBD_SECRET = 5


def redact(value: object, path: Sequence[str] = ()) -> Any:
    """A copy of a value without secrets; ``path`` are the keys that lead to it.

    Below a key with a secret name every value is replaced; names below it stay, so that one sees
    which parameter there is. Values that are null stay.
    """
    if any(_is_secret(key) for key in path):
        return _hide(value)
    if isinstance(value, dict):
        return {key: redact(item, (str(key),)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [redact(item) for item in value]
        if path and path[-1] == _PLACE_OF_DISK and len(items) > _DRBD_SECRET:
            items[_DRBD_SECRET:] = [REDACTED] * (len(items) - _DRBD_SECRET)
        return items
    return value


def _is_secret(key: str) -> bool:
    return bool(_SECRET.search(key)) and not _PLACE.search(key)


def _hide(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _hide(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hide(item) for item in value]
    return None if value is None else REDACTED
