"""Patterns that are matched without a time-out are harmless, and the usual ones are among them."""

from __future__ import annotations

import itertools
import time

import pytest

from ganeti.filters import patterns
from ganeti.filters.glob import glob_to_regex


@pytest.mark.parametrize(
    "pattern",
    [
        "web",
        "^web[0-9]+",
        "^web[0-9]*7\\.example",
        "(?i)^web[0-9]+$",
        "^.*\\.example\\.com$",
        "",
        "^db-[0-9]{2}\\.",
        "^web[^.]*(\\..*)?$",
        "(ab)c",
    ],
)
def test_usual_patterns_are_tame(pattern: str) -> None:
    assert patterns.is_tame(pattern)


def test_globs_are_tame() -> None:
    assert patterns.is_tame(glob_to_regex("web*"))
    assert patterns.is_tame(glob_to_regex("w?b1.ex"))


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|aa)b",
        "a|b",
        "(a)\\1",
        "(a*)*b",
        "(a?){30}",
        "a*b*c*d",
        "a" * 300,
        "(?=a)b",
        "(?<=a)b",
        "(?P<n>a)(?P=n)",
        "(a)\\g<1>",
        "a?b?c?",
    ],
)
def test_others_are_not(pattern: str) -> None:
    assert not patterns.is_tame(pattern)


def test_the_worst_tame_patterns_are_quick() -> None:
    """All short patterns of signs that backtrack, on the worst text."""
    text = "a" * patterns.TAME_TEXT
    pieces = ("a*", ".+", "(a*)?", "a?", "a{1,90}")
    worst = 0.0
    for parts in itertools.product(pieces, repeat=3):
        pattern = f"{''.join(parts)}[bc]"
        if patterns.is_tame(pattern):
            search = patterns.compile_pattern(pattern).search
            begin = time.thread_time()
            assert search(text) is None
            worst = max(worst, time.thread_time() - begin)
    assert 0 < worst < 1


def test_long_texts_have_a_time_limit_whatever_the_pattern() -> None:
    budget = patterns.Budget(0.2)
    found = patterns.matcher("x*x*[yz]", budget)
    assert not found("x" * 100)
    begin = time.monotonic()
    with pytest.raises(patterns.ParameterError, match="takes too long"):
        found("x" * 20_000)
    assert time.monotonic() - begin < 5
