"""Man pages of the tools, made from their command lines."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

SECTION = 8
#: Names of the tools as scripts call them; the module is called like the tool.
TOOLS = (
    "check-cert-expired",
    "cleaner",
    "confd-client",
    "fmtjson",
    "lvmstrap",
    "mon-collector",
    "node-cleanup",
    "query-config",
    "sanitize-config",
    "users-setup",
)


def page(tool: str) -> str:
    """The page of a tool as roff (``man`` macros)."""
    module = importlib.import_module(f"ganeti.tools.{tool.replace('-', '_')}")
    parser = module.parser()
    assert isinstance(parser, argparse.ArgumentParser)
    return "\n".join(_lines(parser)) + "\n"


def _lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    about = parser.description or ""
    first = about.partition(". ")[0].rstrip(".")
    yield f'.TH {_text(parser.prog.upper())} {SECTION} "" "Ganeti" "Ganeti administration"'
    yield from (".SH NAME", _text(f"{parser.prog} - {first[:1].lower()}{first[1:]}"))
    yield from (".SH SYNOPSIS", f".B {_text(parser.prog)}", _text(_synopsis(parser)))
    yield from (".SH DESCRIPTION", _text(about))
    yield ".SH OPTIONS"
    for action in parser._actions:
        yield from (".TP", _heading(action), _text(_help(action)))
    if parser.epilog:
        yield from (".SH NOTES", _text(parser.epilog))


def _synopsis(parser: argparse.ArgumentParser) -> str:
    words = [_value(action) for action in parser._actions if not action.option_strings]
    return " ".join(["[options]", *words])


def _heading(action: argparse.Action) -> str:
    flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in action.option_strings)
    value = "" if action.nargs == 0 else f"\\fI{_text(_value(action))}\\fR"
    return f"{flags} {value}".strip()


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return {"*": f"[{name}...]", "+": f"{name}...", "?": f"[{name}]"}.get(str(action.nargs), name)


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    return text.replace("%(default)s", str(action.default)).replace("%%", "%")


def _text(text: str) -> str:
    """Text without meaning for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
