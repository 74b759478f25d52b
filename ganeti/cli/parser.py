"""Command line of one command to values, the way Ganeti's programs always did it.

Long options may be shortened as long as they stay unique; the word after an option that takes a
value is its value, even when it begins with a dash (``-B -maxmem`` resets a parameter). argparse
takes such a word for an option, which is why the words are cut here; argparse only formats the
help (``usage``). Options may also follow arguments, which Ganeti never allowed; all words after
``--`` are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from ganeti.base.text import nearest
from ganeti.cli.option import READERS, Option


class UsageError(Exception):
    """The options cannot be understood; the text says which one and why."""


class UnknownOption(UsageError):
    """The command does not have the option."""


class HelpWanted(Exception):
    """``-h`` or ``--help`` was among the options."""


HELP = Option(("-h", "--help"), "", "Show this help and do nothing", action="help", group="Other")


def parse(
    options: Sequence[Option], words: Sequence[str], *, passes_on: bool = False
) -> tuple[SimpleNamespace, list[str]]:
    """Option values by name, and the arguments.

    With ``passes_on`` all words from the first argument on are arguments.

    Raises:
        UsageError: unknown or ambiguous option, missing or unusable value.
        ParameterError: a key-value option that is wrong in itself.
        HelpWanted: help was requested.
    """
    flags = {flag: option for option in (*options, HELP) for flag in option.flags}
    result = SimpleNamespace(
        **{option.dest: _copy_of(option.default) for option in options if option.dest}
    )
    rest, args = list(words), list[str]()
    while rest and not (passes_on and args):
        word = rest.pop(0)
        if word == "--":
            break
        if word == "-" or not word.startswith("-") or _is_number(word, flags):
            args.append(word)
            continue
        try:
            if word.startswith("--"):
                _take_long(flags, word, rest, result)
            else:
                _take_short(flags, word, rest, result)
        except UnknownOption as err:
            if args and not word.startswith("--"):
                # In Ganeti such a word was an argument.
                hint = "-- goes before arguments that begin with a dash"
                raise UsageError(f"{err}; {hint}") from None
            raise
    return result, args + rest


def _copy_of(default: object) -> object:
    """A default that belongs to this run of the command alone."""
    return default.copy() if isinstance(default, list | dict) else default


def _is_number(word: str, flags: dict[str, Option]) -> bool:
    """Whether a word is an argument like ``-2h`` (two hours ago), as no option is a digit."""
    return word[1].isdigit() and word[:2] not in flags


def _take_long(
    flags: dict[str, Option], word: str, rest: list[str], result: SimpleNamespace
) -> None:
    given, has_value, text = word.partition("=")
    flag = _complete(flags, given)
    option = flags[flag]
    if not option.takes_value:
        if has_value:
            raise UsageError(f"option {flag} takes no value")
        _apply(option, flag, "", result)
        return
    if not has_value:
        text = _take_value(flag, rest)
    _apply(option, flag, text, result)


def _complete(flags: dict[str, Option], given: str) -> str:
    if given in flags:
        return given
    found = [flag for flag in flags if flag.startswith(given)]
    if len({id(flags[flag]) for flag in found}) == 1:
        return found[0]
    if found:
        raise UsageError(f"option {given} is ambiguous: {', '.join(sorted(found))}?")
    raise UnknownOption(f"no such option: {given}{_hint(flags, given)}")


def _hint(flags: dict[str, Option], given: str) -> str:
    """A value of another option (``--json`` is ``--format json``), else the nearest option."""
    for flag, option in flags.items():
        if given[2:] in option.choices:
            return f" (did you mean {flag} {given[2:]}?)"
    return nearest(given, [flag for flag in flags if flag.startswith("--")])


def _take_short(
    flags: dict[str, Option], word: str, rest: list[str], result: SimpleNamespace
) -> None:
    letters = word[1:]
    while letters:
        flag, letters = f"-{letters[0]}", letters[1:]
        option = flags.get(flag)
        if option is None:
            raise UnknownOption(f"no such option: {flag}")
        if option.takes_value:
            _apply(option, flag, letters or _take_value(flag, rest), result)
            return
        _apply(option, flag, "", result)


def _take_value(flag: str, rest: list[str]) -> str:
    if not rest:
        raise UsageError(f"option {flag} needs a value")
    return rest.pop(0)


def _apply(option: Option, flag: str, text: str, result: SimpleNamespace) -> None:
    if option.action == "help":
        raise HelpWanted
    if option.action == "ignore":
        return
    if option.action == "count":
        setattr(result, option.dest, getattr(result, option.dest) + 1)
        return
    value = _read(option, flag, text) if option.takes_value else option.const
    if option.action == "append":
        getattr(result, option.dest).append(value)
    else:
        setattr(result, option.dest, value)


def _read(option: Option, flag: str, text: str) -> object:
    if option.choices and text not in option.choices:
        raise UsageError(
            f"option {flag}: invalid value '{text}'; choose from {', '.join(option.choices)}"
            f"{nearest(text, option.choices)}"
        )
    try:
        return READERS[option.kind](text)
    except ValueError as err:
        raise UsageError(f"option {flag}: {err}") from None
