"""Regular expressions of filters, bounded in time and memory; the only importer of ``regex``.

Anybody who may ask the master daemon a question may send a pattern. The standard module cannot be
interrupted and holds the interpreter while it backtracks, so one pattern could stall the daemon.
``regex`` lets other threads run while it matches and gives up after a time-out; what it does not
bound is compiling, so patterns are looked over first: nested repeats multiply its work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.errors import ParameterError

#: Characters of one pattern.
MAX_LENGTH = 4096
#: Steps of a pattern when its repeats are written out.
MAX_COST = 5000
#: Groups inside each other.
MAX_GROUPS = 60
#: Seconds that all matching of one pass over the rows may take together.
TIME_LIMIT = 2.0

#: Characters of a text and of a pattern that are matched without a time-out, which costs ten
#: times as much as matching a name; see :func:`is_tame`.
TAME_TEXT = 100
TAME_PATTERN = 256

_ESCAPE = re.compile(r"\\(?:[pPNxuU]\{[^{}]*\}|g<[^<>]*>|.)", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:[^\]\[]*:\]|[^\]\\])*\]", re.DOTALL)
_COUNT = re.compile(r"\{(?=\d|,\d)(\d*)(,?)(\d*)\}")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
#: Things in parentheses that hold nothing: flags and back references.
_CLOSED = re.compile(r"\(\?(?:[aimsu]+(?:-[imsu]+)?|P=[A-Za-z_]\w*)\)")
_GROUP = re.compile(
    r"\((?:(?![?*])|\?(?:[:=!>|]|<[=!]|P?<[A-Za-z_]\w*>|\((?:\d+|[A-Za-z_]\w*)\)"
    r"|[aimsu]*(?:-[imsu]+)?:))"
)


class Budget:
    """Time for matching, shared by all patterns of a filter."""

    def __init__(self, seconds: float = TIME_LIMIT, clock: Clock = SYSTEM) -> None:
        self._seconds = seconds
        self._clock = clock
        self.start()

    def start(self) -> None:
        """Begin a new pass with the full time."""
        self._deadline = Deadline(self._seconds, self._clock)

    def measure_left(self) -> float:
        return self._deadline.left


def matcher(pattern: str, budget: Budget) -> Callable[[str], bool]:
    """A test whether the pattern is found in a text.

    The pattern is compiled here, the test raises ParameterError when the budget is used up.
    """
    search = compile_pattern(pattern).search
    left = budget.measure_left
    length = TAME_TEXT if is_tame(pattern) else -1

    def test(text: str) -> bool:
        seconds = left()
        if seconds > 0:
            if len(text) <= length:
                return search(text) is not None
            try:
                return search(text, timeout=seconds) is not None
            except TimeoutError:
                pass
        raise ParameterError(
            f"The regular expression {_quote(pattern)} takes too long to match;"
            " avoid repeats inside repeats"
        )

    return test


_UNTAMED = re.compile(r"\||\)[*+{]|\\[0-9gkKRGX]|\(\?[^aims:)]|\(\*")


def is_tame(pattern: str) -> bool:
    """Whether matching a short text takes some tens of milliseconds at the very most.

    So it is without alternatives, references and repeated groups, and with few other repeats: two
    that can take any number of characters look at no more than the cube of the text's length.
    Counts too much rather than too little: a repeat sign may be a plain character.
    """
    return (
        len(pattern) <= TAME_PATTERN
        and sum(map(pattern.count, "*+{")) <= 2
        and pattern.count("?") <= 2
        and _UNTAMED.search(pattern) is None
    )


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
    """The compiled pattern; ParameterError when it is wrong or could cost too much."""
    import regex  # type: ignore[import-untyped, unused-ignore]

    check(pattern)
    try:
        return regex.compile(pattern)
    except regex.error as err:
        where = "" if err.pos is None else f" at character {err.pos + 1}"
        raise ParameterError(
            f"The regular expression {_quote(pattern)} is wrong{where}: {err.msg}"
        ) from err
    except (RecursionError, OverflowError) as err:
        raise ParameterError(
            f"The regular expression {_quote(pattern)} is too complicated"
        ) from err


def check(pattern: str) -> None:
    """Refuse what could take much time or memory to compile, or is not PCRE.

    Raises ParameterError: too long, too many nested groups, repeats that multiply beyond
    ``MAX_COST``, recursion, verbose mode, or a brace that is neither a count nor escaped.
    """
    if len(pattern) > MAX_LENGTH:
        raise ParameterError(f"A regular expression may have {MAX_LENGTH} characters at most")
    if _Scanner(pattern).cost() > MAX_COST:
        raise ParameterError(
            f"The regular expression {_quote(pattern)} repeats too much:"
            f" written out it has more than {MAX_COST} steps"
        )


class _Scanner:
    """Estimates the size of a pattern whose repeats are written out.

    It need not find mistakes: the compiler does that, once the size is known to be harmless.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        #: for each open group: cost of all of it, cost of its last part
        self._groups: list[tuple[int, int]] = [(0, 0)]

    def cost(self) -> int:
        position, end = 0, len(self._pattern)
        while position < end:
            position = self._step(position, self._pattern[position])
            if self._groups[-1][0] > MAX_COST:
                break
        return max(whole for whole, _ in self._groups)

    def _step(self, position: int, char: str) -> int:
        """Take one part of the pattern; returns where the next one begins."""
        if char == "(":
            return self._enter_group(position)
        if char == ")":
            if len(self._groups) > 1:
                whole, _ = self._groups.pop()
                self._add(max(whole, 1))
            return position + 1
        if char in "*?":
            return position + 1
        if char == "+":
            # Also reached for the + of a possessive repeat, where it overestimates.
            self._repeat(2)
            return position + 1
        if char == "{":
            return self._count(position)
        self._add(1)
        if char in "\\[":
            found = (_ESCAPE if char == "\\" else _CLASS).match(self._pattern, position)
            return found.end() if found else len(self._pattern)
        return position + 1

    def _enter_group(self, position: int) -> int:
        found = _COMMENT.match(self._pattern, position)
        if found is None:
            found = _CLOSED.match(self._pattern, position)
        if found is not None:
            self._add(1)
            return found.end()
        found = _GROUP.match(self._pattern, position)
        if found is None:
            start = self._pattern[position : position + 4]
            raise ParameterError(
                f"The group '{start}...' in the regular expression {_quote(self._pattern)}"
                " cannot be used in a filter"
            )
        if len(self._groups) > MAX_GROUPS:
            raise ParameterError(
                f"A regular expression may have {MAX_GROUPS} groups inside each other"
            )
        self._groups.append((0, 0))
        return found.end()

    def _count(self, position: int) -> int:
        found = _COUNT.match(self._pattern, position)
        if found is None:
            raise ParameterError(
                f"The brace at character {position + 1} of the regular expression"
                f" {_quote(self._pattern)} is not a count such as {{2,4}}: write \\{{ for a brace"
            )
        low, _, high = found.groups()
        digits = max(len(low), len(high))
        times = MAX_COST + 1 if digits > 6 else max(2, int(low or 0), int(high or 0))
        self._repeat(times)
        return found.end()

    def _add(self, cost: int) -> None:
        whole, _ = self._groups[-1]
        self._groups[-1] = (whole + cost, cost)

    def _repeat(self, times: int) -> None:
        whole, last = self._groups[-1]
        self._groups[-1] = (whole + last * (times - 1), last * times)


def _quote(pattern: str) -> str:
    return f"'{pattern}'" if len(pattern) <= 60 else f"'{pattern[:60]}...'"
