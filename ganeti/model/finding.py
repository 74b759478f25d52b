"""A finding of a verification, as data."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """``severity`` is error or warning; ``kind`` and ``object`` say what it is about."""

    severity: str
    code: str
    kind: str
    object: str
    text: str
