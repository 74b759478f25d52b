"""Completion of a command line that is being typed; shells ask with ``PROGRAM --complete``.

The words after ``--complete`` are those of the line so far; the last one, which may be empty, is
completed. The scripts for the shells are in ``completion/``.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from ganeti import errors
from ganeti.cli import generated_modules
from ganeti.cli.command import Args, Command, Program
from ganeti.cli.option import Option
from ganeti.cli.parser import HELP

#: Printed alone: the shell completes names of files.
FILE = "<file>"
#: Seconds for the answer of the master; nobody waits longer for a list of names.
_LIMIT = 1.5

#: Word for a value in the help, and the kind of objects whose names the value may be.
_KINDS: Mapping[str, str] = {
    "disk": "disk",
    "filter": "filter",
    "group": "group",
    "group-name": "group",
    "image": "image",
    "instance": "instance",
    "job-id": "job",
    "network": "network",
    "node": "node",
    "old-name": "instance",
    "pnode": "node",
    "primary": "node",
    "remote-node": "node",
    "target-node": "node",
}
_FIELDS_OF_NAMES: Mapping[str, Sequence[str]] = {
    "disk": ("name", "uuid"),
    "filter": ("uuid",),
    "job": ("id",),
}
_FILES = frozenset(("file", "op-list-file"))
_NOUN = re.compile(r"<([a-z-]+)>(,\.\.\.)?(\[:<secondary>\])?")
_WORD = re.compile(r"[a-z0-9-]+")


def print_completions(program: Program, words: Sequence[str]) -> None:
    """Print what may stand in place of the last word, one on each line; nothing on errors."""
    last = words[-1] if words else ""
    for word in _candidates(program, list(words[:-1]), last):
        if word == FILE or word.startswith(last):
            print(word)


def _candidates(program: Program, before: list[str], last: str) -> Iterable[str]:
    if not before:
        names = [name.split()[0] for name in generated_modules.COMMANDS[program.name]]
        return sorted({*names, *(("--help", "--version") if last.startswith("-") else ())})
    program.load(before[0])
    command, rest = program.match(before)
    if command is None:
        known = (name.split() for name in generated_modules.COMMANDS[program.name])
        return sorted(name[1] for name in known if name[:-1] == before)
    return _words_of(program, command, rest, last)


def _words_of(program: Program, command: Command, rest: list[str], last: str) -> Iterable[str]:
    flags = {flag: option for option in (*command.all_options, HELP) for flag in option.flags}
    waiting, given, ended = _read(flags, rest)
    if waiting is not None:
        return _values(program, command, waiting, last)
    if last.startswith("-") and not ended:
        flag, equals, text = last.partition("=")
        if not equals:
            return sorted(flags)
        option = flags.get(flag)
        if option is None or not option.takes_value:
            return ()
        found = _values(program, command, option, text)
        return (word if word == FILE else f"{flag}={word}" for word in found)
    return _arguments(program, command, given, last)


def _read(
    flags: Mapping[str, Option], words: Iterable[str]
) -> tuple[Option | None, list[str], bool]:
    """The option whose value comes next, the arguments so far, and whether options have ended."""
    waiting: Option | None = None
    given: list[str] = []
    ended = False
    for word in words:
        if waiting is not None:
            waiting = None
        elif ended or word == "-" or not word.startswith("-"):
            given.append(word)
        elif word == "--":
            ended = True
        else:
            option = flags.get(word if word.startswith("--") else word[:1] + word[-1])
            waiting = option if option is not None and option.takes_value else None
    return waiting, given, ended


def _values(program: Program, command: Command, option: Option, text: str) -> Iterable[str]:
    if option.choices:
        return option.choices
    noun = _NOUN.fullmatch(option.value_name)
    if noun is None:
        return (word for word in option.value_name.split("|") if _WORD.fullmatch(word))
    if noun[1] in _FILES:
        return (FILE,)
    if noun[1] == "network":
        return ()  # an address
    if noun[1] == "field":
        found = _fields(program) if command.name == "list" else []
    else:
        found = _names(_KINDS.get(noun[1], ""))
    # Of a list the last item is completed; a plus adds columns to the usual ones.
    cut = text.rfind("," if noun[2] else ":") + 1 if noun[2] or noun[3] else 0
    if noun[1] == "field" and text.startswith("+"):
        cut = max(cut, 1)
    return (text[:cut] + word for word in found)


def _arguments(program: Program, command: Command, given: list[str], last: str) -> Iterable[str]:
    place = len(given)
    for arg in command.args:
        if arg.most is None or place < arg.most:
            return (word for word in _list_values(program, arg) if arg.most or word not in given)
        place -= arg.most
    return ()


def _list_values(program: Program, arg: Args) -> Iterable[str]:
    if arg.choices:
        return arg.choices
    if arg.kind in _FILES:
        return (FILE,)
    if arg.kind == "field":
        return _fields(program)
    if arg.kind == "disk" and program.name != "gnt-disk":
        return ()  # an index
    return _names(_KINDS.get(arg.kind, ""))


class _TooLateError(errors.GanetiError):
    """The master did not answer in time."""


@contextmanager
def _limit() -> Iterator[None]:
    """End what is done here, silently, when it fails or takes too long."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLateError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT)
    try:
        yield
    except (errors.GanetiError, OSError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _names(kind: str) -> list[str]:
    """Names of all objects of a kind in the cluster."""
    from ganeti.luxi.client import Client

    if not kind:
        return []
    with _limit(), Client() as client:
        answer = client.query(kind, _FIELDS_OF_NAMES.get(kind, ("name",)))
        return [str(value) for row in answer.data for _status, value in row if value]
    return []


def _fields(program: Program) -> list[str]:
    """Names of the columns of the list of a program."""
    from ganeti.luxi.client import Client

    with _limit(), Client() as client:
        return [field.name for field in client.query_fields(program.name.removeprefix("gnt-"))]
    return []
