"""Names, globs and filters as arguments of list commands."""

import pytest

from ganeti.errors import OpPrereqError, QueryFilterParseError
from ganeti.filters.arguments import filter_of_arguments

GLOB = r"^web[^.]*(\..*)?$"


@pytest.mark.parametrize(
    ("args", "options", "expected"),
    [
        ([], {}, None),
        (["web1"], {}, ["|", ["==", "name", "web1"]]),
        (["web1", "web2"], {}, ["|", ["==", "name", "web1"], ["==", "name", "web2"]]),
        (["web*"], {}, ["|", ["=~", "name", GLOB]]),
        (["db", "web*"], {}, ["|", ["==", "name", "db"], ["=~", "name", GLOB]]),
        (["5"], {"name_field": "id", "numeric": True}, ["|", ["==", "id", 5]]),
        (["id < 5"], {"name_field": "id", "numeric": True}, ["<", "id", 5]),
        (['name == "x"'], {}, ["==", "name", "x"]),
        (["offline"], {}, ["|", ["==", "name", "offline"]]),
        (["offline"], {"force_filter": True}, ["?", "offline"]),
        (["a b", "c"], {}, ["|", ["==", "name", "a b"], ["==", "name", "c"]]),
        (["u1"], {"name_field": "uuid"}, ["|", ["==", "uuid", "u1"]]),
    ],
)
def test_filters(args, options, expected):
    assert filter_of_arguments(args, **options) == expected


@pytest.mark.parametrize("char", ["\t", "\n", "\v", "\f", "\r", *" !\"'()/<=>\\~"])
def test_one_argument_with_such_a_character_is_a_filter(char):
    with pytest.raises(QueryFilterParseError):
        filter_of_arguments([f"5{char}"])


@pytest.mark.parametrize("args", [[], ["a", "b"]])
def test_forced_filter_needs_one_argument(args):
    with pytest.raises(OpPrereqError) as info:
        filter_of_arguments(args, force_filter=True)
    assert info.value.args[1] == "wrong_input"


@pytest.mark.parametrize("arg", ["x", "5x", "*", "1.5", "", "²"])
def test_numeric_lists_take_numbers_only(arg):
    with pytest.raises(OpPrereqError) as info:
        filter_of_arguments(["1", arg], name_field="id", numeric=True)
    assert info.value.args[1] == "wrong_input"
