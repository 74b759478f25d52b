"""Man pages of daemons and tools, made from their command lines."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

from ganeti.base import services

SECTION = 8
#: Names of the tools as scripts call them; the module is called like the tool.
_TOOLS = (
    "burnin",
    "check-cert-expired",
    "cleaner",
    "confd-client",
    "doctor",
    "ensure-dirs",
    "fmtjson",
    "kvm-console-wrapper",
    "lvmstrap",
    "mon-collector",
    "move-instance",
    "node-cleanup",
    "prepare-node-join",
    "query-config",
    "sanitize-config",
    "ssh-update",
    "users-setup",
)
#: Programs by the names they are installed under, with the functions that make their parsers.
PROGRAMS = {
    "ganeti-cfgupgrade": "ganeti.offline.cfgupgrade:command_line",
    "ganeti-daemon-util": "ganeti.bootstrap.daemon_util:command_line",
    "ganeti-guests": "ganeti.node.host_stop:command_line",
    "ganeti-node-setup": "ganeti.bootstrap.node_setup:command_line",
    "ganeti-takeover": "ganeti.offline.takeover.program:command_line",
    "ganeti-watcher": "ganeti.watcher.program:command_line",
    **{service.name: f"{service.module}:command_line" for service in services.ALL.values()},
    **{f"ganeti-{tool}": f"ganeti.tools.{tool.replace('-', '_')}:parser" for tool in _TOOLS},
}


def page(name: str) -> str:
    """The page of a program as roff (``man`` macros)."""
    module, _, function = PROGRAMS[name].partition(":")
    parser = getattr(importlib.import_module(module), function)()
    assert isinstance(parser, argparse.ArgumentParser)
    return "\n".join(_lines(name, parser)) + "\n"


def _lines(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    about = " ".join((parser.description or "").split())
    first = about.partition(". ")[0].rstrip(".")
    yield f'.TH {_text(name.upper())} {SECTION} "" "Ganeti" "Ganeti administration"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(first[:1].lower() + first[1:])}")
    yield from (".SH SYNOPSIS", f".B {_text(name)}", _text(_synopsis(parser)))
    yield from (".SH DESCRIPTION", _text(about))
    yield ".SH OPTIONS"
    for action in parser._actions:
        yield from (".TP", _heading(action), _text(_help(action)))
    if parser.epilog:
        yield ".SH NOTES"
        yield from _notes(parser.epilog)


def _notes(text: str) -> Iterator[str]:
    """A paragraph, or lines that somebody has laid out."""
    lines = text.splitlines()
    if len(lines) == 1:
        yield _text(text)
    else:
        yield from (".nf", *map(_text, lines), ".fi")


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
