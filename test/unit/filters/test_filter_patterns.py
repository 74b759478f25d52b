"""Regular expressions cannot stall or swell the process."""

import resource
import threading
import time

import pytest

from ganeti.errors import ParameterError
from ganeti.filters import patterns
from ganeti.filters.patterns import Budget, compile_pattern, matcher


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b1", "web1", True),
        ("^b1", "web1", False),
        (r"^web[^.]*(\..*)?$", "web1.example.com", True),
        ("(?i)WEB", "web1", True),
        ("(?i:W)eb", "web1", True),
        ("a{2,3}b", "aaab", True),
        ("a{,2}b", "b", True),
        (r"x\{1", "x{1", True),
        ("[{}]", "a{", True),
        (r"[\]a{]b", "]b", True),
        ("[]x]", "]", True),
        ("[[:digit:]]+", "7", True),
        (r"\p{Lu}", "A", True),
        (r"(a)\1", "aa", True),
        ("(?P<x>a)(?P=x)", "aa", True),
        ("(?<=a)b", "ab", True),
        ("(?<!a)b", "ab", False),
        ("(?>a+)b", "aab", True),
        ("a++b", "aab", True),
        ("(a)?(?(1)b|c)", "c", True),
        ("(?#comment)a", "a", True),
        ("a|b", "b", True),
        ("[a-z]{1,63}(\\.[a-z]{1,63}){1,10}", "a.b", True),
        ("", "", True),
    ],
)
def test_usual_patterns(pattern, text, found):
    assert matcher(pattern, Budget())(text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[",
        "*",
        "a\\",
        "(?P<x>a)(?P<x",
        "(?",
        "a{",
        "a{x}",
        "a{e}",
        "(?:a){e<=3}",
        "a{1,",
        "a{999999999999}",
        "(?R)",
        "(?1)",
        "(?&x)",
        "(?P>x)",
        "(?x)a",
        "(?xi:a)",
        "(*FAIL)",
        "(?P=x)",
        r"\p{Nothing}",
        "a{3,2}",
    ],
)
def test_wrong_or_unwanted_patterns(pattern):
    with pytest.raises(ParameterError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:" * 50 + "a" + "){1,60000}" * 50,
        "(?:" * 50 + "a" + ")+" * 50,
        "(" * 30 + "a" + "){1,2}" * 30,
        "(?:a{2000}){2000}",
        "(?:a{2000000000}){2000000000}",
        "((((a+b+c+d+e+f+){10}){10}){10}){10}",
        "(" * 2000 + "a" + ")" * 2000,
        "a" * 4097,
        "(?:(?#(){3}" + "(?:" * 30 + "a" + "){3}" * 30,
    ],
)
def test_patterns_that_would_swell_are_refused_quickly(pattern):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(ParameterError):
        compile_pattern(pattern)
    assert time.process_time() - start < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


CATASTROPHE = r"^(a|a)*$"


def test_catastrophic_pattern_ends_and_lets_other_threads_run():
    test = matcher(CATASTROPHE, Budget(0.4))
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    try:
        with pytest.raises(ParameterError, match="takes too long"):
            test("a" * 40 + "b")
    finally:
        done.set()
        thread.join()
    assert time.monotonic() - start < 5
    assert len(ticks) > 10


def test_the_budget_is_shared_by_all_matches():
    budget = Budget(0.1)
    first, second = matcher(CATASTROPHE, budget), matcher("x", budget)
    with pytest.raises(ParameterError):
        first("a" * 40 + "b")
    with pytest.raises(ParameterError, match="takes too long"):
        second("x")
    budget.start()
    assert second("x")


def test_errors_do_not_quote_long_patterns_in_full():
    with pytest.raises(ParameterError) as info:
        compile_pattern("x" * 3000 + "(")
    assert len(str(info.value)) < 200


def test_cost_limit_is_on_the_written_out_size():
    patterns.check("a{1,4999}")
    with pytest.raises(ParameterError, match="repeats too much"):
        patterns.check("(?:ab){1,4999}")
