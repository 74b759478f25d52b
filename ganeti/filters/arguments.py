"""From the arguments of a list command to a filter: names, globs, or one filter text."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.errors import ErrorCode, OpPrereqError
from ganeti.filters.glob import GLOB_CHARS, glob_to_regex

#: A single argument with one of these is a filter, not a name.
FILTER_CHARS = frozenset("\t\n\v\f\r !\"'()/<=>\\~")


def filter_of_arguments(
    args: Sequence[str],
    *,
    name_field: str = "name",
    numeric: bool = False,
    force_filter: bool = False,
) -> list[object] | None:
    """The filter, in its JSON form, that the arguments of a list command ask for.

    ``force_filter`` is the option ``--filter``; ``numeric`` lists have numbers as names. No
    arguments return None, which selects everything.

    Raises OpPrereqError (wrong_input) when ``force_filter`` has not exactly one argument, or a
    numeric list gets no number; QueryFilterParseError for a filter text that is wrong.
    """
    if force_filter and len(args) != 1:
        raise OpPrereqError(
            f"--filter takes exactly one argument, the filter, not {len(args)}", ErrorCode.INVAL
        )
    if not args:
        return None
    if force_filter or (len(args) == 1 and FILTER_CHARS.intersection(args[0])):
        from ganeti.filters.grammar import parse

        return parse(args[0])
    return ["|", *(_condition(arg, name_field, numeric) for arg in args)]


def _condition(arg: str, name_field: str, numeric: bool) -> list[object]:
    if numeric:
        if not (arg.isascii() and arg.lstrip("-+").isdigit()):
            raise OpPrereqError(
                f"'{arg}' is not a valid {name_field}: expected an integer", ErrorCode.INVAL
            )
        return ["==", name_field, int(arg)]
    if GLOB_CHARS.intersection(arg):
        return ["=~", name_field, glob_to_regex(arg)]
    return ["==", name_field, arg]
