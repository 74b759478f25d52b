"""Globs for names: ``*`` and ``?`` stop at dots, and a short name matches its full one."""

from __future__ import annotations

import re

GLOB_CHARS = frozenset("*?")


def glob_to_regex(glob: str) -> str:
    """Regular expression of a glob: ``web*`` matches ``web1`` and ``web1.example.com``."""
    parts = {"*": "[^.]*", "?": "[^.]"}
    body = "".join(parts.get(char) or re.escape(char) for char in glob)
    return rf"^{body}(\..*)?$"
