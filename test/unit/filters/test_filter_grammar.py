"""The textual filter language."""

import subprocess
import sys
import time

import pytest

from ganeti.errors import QueryFilterParseError
from ganeti.filters.glob import glob_to_regex
from ganeti.filters.grammar import parse

EXAMPLES = [
    ('name == "web1.example.com"', ["==", "name", "web1.example.com"]),
    (
        '(status == "running") and not disk_template == "drbd"',
        ["&", ["==", "status", "running"], ["!", ["==", "disk_template", "drbd"]]],
    ),
    ('"prod" in tags', ["=[]", "tags", "prod"]),
    ('"prod" not in tags', ["!", ["=[]", "tags", "prod"]]),
    ('"prod" not \n in tags', ["!", ["=[]", "tags", "prod"]]),
    ("5 in ids", ["=[]", "ids", 5]),
    ("name =~ m/^web[0-9]+/i", ["=~", "name", "(?i)^web[0-9]+"]),
    ("name =~ /x/si", ["=~", "name", "(?is)x"]),
    ("name =~ #a/b#", ["=~", "name", "a/b"]),
    ("name =~ |a\\|b|", ["=~", "name", "a|b"]),
    ("name =~ ^x^", ["=~", "name", "x"]),
    ("name =~ /a\\/b\\d\\\\/", ["=~", "name", "a/b\\d\\\\"]),
    ("name !~ /^db/", ["!", ["=~", "name", "^db"]]),
    ('name =* "web*"', ["=~", "name", r"^web[^.]*(\..*)?$"]),
    ('name !* "web?"', ["!", ["=~", "name", r"^web[^.](\..*)?$"]]),
    ("offline", ["?", "offline"]),
    ("not offline", ["!", ["?", "offline"]]),
    ("not not offline", ["!", ["!", ["?", "offline"]]]),
    (
        "be/maxmem >= 1024 or oper_ram > 2048",
        ["|", [">=", "be/maxmem", 1024], [">", "oper_ram", 2048]],
    ),
    ('pnode = "n1"', ["==", "pnode", "n1"]),
    ('pnode != "n1"', ["!=", "pnode", "n1"]),
    (
        "a == 1 and b == 2 and c == 3",
        ["&", ["==", "a", 1], ["==", "b", 2], ["==", "c", 3]],
    ),
    (
        "a == 1 or b == 2 and c == 3",
        ["|", ["==", "a", 1], ["&", ["==", "b", 2], ["==", "c", 3]]],
    ),
    (
        "(a == 1 or b == 2) and c == 3",
        ["&", ["|", ["==", "a", 1], ["==", "b", 2]], ["==", "c", 3]],
    ),
    ("not (a == 1 or b == 2)", ["!", ["|", ["==", "a", 1], ["==", "b", 2]]]),
    ("id < 100", ["<", "id", 100]),
    ("id<=100", ["<=", "id", 100]),
    ("name == 'x'", ["==", "name", "x"]),
    ("a == -3", ["==", "a", -3]),
    ("a == +3", ["==", "a", 3]),
    ('a == "it\'s"', ["==", "a", "it's"]),
    (r'a == "b\d"', ["==", "a", r"b\d"]),
    ("((a))", ["?", "a"]),
    ("note or android", ["|", ["?", "note"], ["?", "android"]]),
    ("disk.size/0 > 10", [">", "disk.size/0", 10]),
    ("\n a\tand\n b ", ["&", ["?", "a"], ["?", "b"]]),
]


@pytest.mark.parametrize(("text", "wire"), EXAMPLES)
def test_examples(text, wire):
    assert parse(text) == wire


@pytest.mark.parametrize(
    ("text", "told", "column"),
    [
        ("", "expected a condition, 'not' or '('", 0),
        ("name ==", "expected a text in quotes or an integer", 7),
        ("name == foo", 'write "foo" if the text is meant', 8),
        ('name == "foo', "has no closing quote", 8),
        ("name =~ /x/q", "flags i or s, not 'q'", 11),
        ("name =~ foo", "a regular expression such as /^web/", 8),
        ("name =~ /foo", "a regular expression such as /^web/", 8),
        ("name =* web", "a text in quotes", 8),
        ("a==1&&b==2", "expected 'and', 'or' or the end", 4),
        ("a == 1.5", "expected 'and', 'or' or the end", 6),
        ("a b", "expected 'and', 'or' or the end", 2),
        ("a and", "expected a condition", 5),
        ("and a", "expected a condition", 0),
        ("a or or b", "expected a condition", 5),
        ("(a", "the ')' that closes the '(' at character 1", 2),
        ("a)", "expected 'and', 'or' or the end", 1),
        ("()", "expected a condition", 1),
        ('"x" on y', "'in' or 'not in'", 4),
        ('"x" in', "a field name", 6),
        ('"x" in "y"', "a field name", 7),
        ("not", "expected a condition", 3),
        ("5", "'in' or 'not in'", 1),
        ("ä == 5", "expected a condition", 0),
    ],
)
def test_errors_show_the_place(text, told, column):
    with pytest.raises(QueryFilterParseError) as info:
        parse(text)
    problem, line, caret = str(info.value).split("\n")
    assert told in problem
    assert line == text
    assert caret == " " * column + "^"


def test_error_shows_only_the_line_concerned():
    with pytest.raises(QueryFilterParseError) as info:
        parse('name == "x" and\n  pnode === 5\nor a')
    assert str(info.value).split("\n")[1:] == ["  pnode === 5", " " * 10 + "^"]


def test_error_in_a_long_line_shows_the_part_concerned():
    with pytest.raises(QueryFilterParseError) as info:
        parse(" or ".join(["a"] * 500) + " or == or " + "b" * 500)
    _, line, caret = str(info.value).split("\n")
    assert len(line) <= 200
    assert line[len(caret) - 1 :].startswith("== or b")


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "a" + ")" * 5000, "a and " * 3000 + "a", "(a and " * 150 + "a" + ")" * 150],
)
def test_long_texts_take_linear_time(text):
    before = time.process_time()
    parse(text)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("text", ["not " * 10_000 + "a", "(not " * 5000 + "a" + ")" * 5000])
def test_too_deep_is_an_error_not_a_crash(text):
    with pytest.raises(QueryFilterParseError, match="more than 200 operators"):
        parse(text)


def test_too_long():
    with pytest.raises(QueryFilterParseError, match="100000 characters"):
        parse("a or " * 20_001 + "a")


@pytest.mark.parametrize(
    ("glob", "regex"),
    [
        ("web*", r"^web[^.]*(\..*)?$"),
        ("w?b.ex", r"^w[^.]b\.ex(\..*)?$"),
        ("a+b", r"^a\+b(\..*)?$"),
    ],
)
def test_globs(glob, regex):
    assert glob_to_regex(glob) == regex


def test_pyparsing_is_imported_only_to_parse():
    code = (
        "import sys, ganeti.filters.grammar, ganeti.filters.arguments as a, ganeti.filters.compile;"
        "a.filter_of_arguments(['web1']);"
        "sys.exit('pyparsing' in sys.modules or 'regex' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
