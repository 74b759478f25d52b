"""Markdown from the man pages in ``doc/reference/man``.

Knows the macros that ``ganeti/cli/manual.py`` writes, and refuses others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FONT = re.compile(r"\\f([BI])(.*?)\\fR")
_ESCAPES = {r"\-": "-", r"\&": "", r"\e": "\\", r"\(aq": "'", r"\(dq": '"'}


def to_markdown(text: str) -> str:
    """A page as Markdown."""
    return "\n".join(_lines(iter(text.splitlines()))) + "\n"


def _lines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        macro, _, rest = line.partition(" ")
        if macro == ".TH":
            yield f"# {_plain(rest.split()[0]).lower()}"
        elif macro == ".SH":
            yield from ("", f"## {_plain(rest).capitalize()}", "")
        elif macro == ".SS":
            yield from ("", f"### {_plain(rest)}", "")
        elif macro == ".B":
            yield f"**{_plain(rest)}**"
        elif macro == ".TP":
            yield from ("", f"- {_words(next(lines))}:")
        elif macro == ".PP":
            yield ""
        elif macro == ".nf":
            yield from ("```text", _plain(next(lines)))
        elif macro == ".fi":
            yield "```"
        elif macro.startswith("."):
            raise ValueError(f"unknown macro {macro}")
        else:
            yield _words(line)


def _plain(text: str) -> str:
    for escape, char in _ESCAPES.items():
        text = text.replace(escape, char)
    return text


def _words(text: str) -> str:
    """Text with fonts; options and their values become code."""
    parts = re.split(_FONT, text)
    out = []
    for index in range(0, len(parts), 3):
        out.append(_plain(parts[index]).replace("<", r"\<").replace("*", r"\*"))
        if index + 2 < len(parts):
            word = _plain(parts[index + 2])
            out.append(f"`{word}`" if parts[index + 1] == "B" else f"*{word}*".replace("<", r"\<"))
    return "".join(out)
