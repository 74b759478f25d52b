"""Man pages of the programs, made from their options."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from ganeti.htools.options import OPTIONS
from ganeti.htools.program import Program

PROGRAMS = (
    *("hail", "harep", "hbal", "hcheck", "hinfo", "hroller", "hscan", "hspace", "hsqueeze"),
)
_SECTION = 8

#: Texts of the pages, besides the options.
_TEXTS = {
    "hail": "Reads an allocator request from FILE and prints the answer as JSON. The cluster "
    "comes from the request, or from -t or --simulate.",
    "harep": "Finds instances whose nodes are offline and submits the jobs that repair them. "
    "The tags ganeti:watcher:autorepair:TYPE of an instance, its group or the cluster (the first "
    "that has one counts) say how much may be done: fix-storage, migrate, failover, reinstall; "
    "each allows those before it. ganeti:watcher:autorepair:suspend[:TIME] on any of them stops "
    "repairs, until TIME in seconds since 1970. What was begun and how it ended is left in "
    "tags of the instance; after a failure nothing more is tried until somebody removes its tag.",
    "hbal": "Plans moves, each the best one possible, until no move gains enough. With -L -X the "
    "plan is submitted set by set; the jobs of a set run side by side. SIGTERM ends it after the "
    "set that runs. It also ends when a job fails, or when an instance is not where the plan "
    "expects it.",
    "hcheck": "Counts problems, and says whether balancing would solve them. Exit code 1: problems "
    "would be left after balancing.",
    "hinfo": "Shows nodes, instances and score of a cluster, as these programs see it.",
    "hroller": "Puts nodes into groups; the nodes of one can reboot at the same time, and the "
    "instances of each fit on the others meanwhile. The master is last.",
    "hscan": "Writes the state of clusters to text files, which -t reads. Without arguments it "
    "asks the master daemon, otherwise the remote API of each cluster.",
    "hspace": "Shows how many instances still fit: of one size, and of smaller and smaller sizes.",
    "hsqueeze": "Finds nodes with a tag htools:standby:... that are not needed, or have to come "
    "back. Only nodes whose instances are on shared storage are switched off.",
}


def page(name: str) -> str:
    """The page of a program as roff (``man`` macros)."""
    found = importlib.import_module(f"ganeti.htools.{name}").PROGRAM
    assert isinstance(found, Program)
    return "\n".join(_lines(found)) + "\n"


def _lines(program: Program) -> Iterator[str]:
    title = program.title.rstrip(".")
    yield f'.TH {program.name.upper()} {_SECTION} "" "Ganeti" "Ganeti administration"'
    yield from (".SH NAME", _text(f"{program.name} - {title[:1].lower()}{title[1:]}"))
    yield from (".SH SYNOPSIS", f".B {program.name}", _text(f"[options]{program.arguments}"))
    yield from (".SH DESCRIPTION", _text(_TEXTS[program.name]))
    yield from (".SH OPTIONS", _text("An optional value is attached: -pFIELDS, --luxi=SOCKET."))
    for key in program.every_option:
        option = OPTIONS[key]
        names = [f"-{option.short}"] * bool(option.short) + [f"--{option.long}"]
        flags = ", ".join(f"\\fB{_text(name)}\\fR" for name in names)
        value = f"[=\\fI{option.arg}\\fR]" if option.optional else f" \\fI{option.arg}\\fR"
        yield from (".TP", flags + (value if option.arg else ""), _text(option.help))
    yield from (".SH EXIT CODES", "0 success, 1 failure, 2 there is no such option.")


def _text(text: str) -> str:
    """Text without meaning for roff."""
    return text.replace("\\", "\\e").replace("-", "\\-")
