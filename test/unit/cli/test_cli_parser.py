"""Command line words to options and arguments."""

from __future__ import annotations

import pytest

from ganeti.cli import fields
from ganeti.cli import options as o
from ganeti.cli.option import Option, legacy_option, select, switch, value, values_of
from ganeti.cli.parser import HelpWanted, UsageError, parse


def field_options(op_id: str, *names: str) -> list[Option]:
    """Options that are fields of an opcode."""
    return list(fields.options(op_id, without=(), only=names, names={}, new=True))


OPTIONS = (
    *field_options("OP_INSTANCE_CREATE", "beparams", "disks", "disk_template"),
    *field_options("OP_INSTANCE_REMOVE", "shutdown_timeout"),
    o.DEBUG,
    o.FORCE,
    switch("--node-tags", dest="node_tags", help=""),
    value("--node", dest="node", help=""),
    value("--units", dest="units", help="", choices=("h", "m")),
    select("--on", dest="state", const="on", help=""),
    select("--off", dest="state", const="off", help=""),
    legacy_option("--no-ip-check", help=""),
)


def test_defaults_when_nothing_is_given() -> None:
    opts, args = parse(OPTIONS, [])
    assert (opts.force, opts.debug, opts.disks, opts.beparams, opts.state) == (
        False,
        0,
        [],
        {},
        None,
    )
    assert opts.shutdown_timeout == 120
    assert args == []


def test_two_runs_do_not_share_lists() -> None:
    parse(OPTIONS, ["--disk", "0:size=1"])
    assert parse(OPTIONS, [])[0].disks == []


def test_options_may_follow_arguments() -> None:
    opts, args = parse(OPTIONS, ["web1", "-f", "web2", "--node", "n1"])
    assert opts.force
    assert opts.node == "n1"
    assert args == ["web1", "web2"]


def test_words_for_somebody_else_are_not_options() -> None:
    opts, args = parse(OPTIONS, ["--node", "n1", "ls", "-d", "--", "x"], passes_on=True)
    assert (opts.node, opts.debug, args) == ("n1", 0, ["ls", "-d", "--", "x"])


def test_a_number_is_an_argument_wherever_it_stands() -> None:
    assert parse(OPTIONS, ["-2h", "-f", "-1h"])[1] == ["-2h", "-1h"]


def test_two_dashes_are_explained_where_they_were_not_needed_before() -> None:
    with pytest.raises(UsageError, match=r"no such option: -x; -- goes before arguments"):
        parse(OPTIONS, ["web1", "-x"])
    assert parse(OPTIONS, ["web1", "--", "-x"])[1] == ["web1", "-x"]


def test_two_dashes_end_the_options() -> None:
    opts, args = parse(OPTIONS, ["--", "-f"])
    assert not opts.force
    assert args == ["-f"]


def test_a_single_dash_is_an_argument() -> None:
    assert parse(OPTIONS, ["-", "-f"])[1] == ["-"]


@pytest.mark.parametrize("words", [["--shutdown-timeout=5"], ["--shutdown", "5"], ["--sh=5"]])
def test_long_options_may_be_shortened(words: list[str]) -> None:
    assert parse(OPTIONS, words)[0].shutdown_timeout == 5


def test_a_complete_name_wins_over_a_longer_one() -> None:
    opts, _ = parse(OPTIONS, ["--node", "n1"])
    assert opts.node == "n1"
    assert not opts.node_tags


def test_an_ambiguous_abbreviation_is_refused_with_its_meanings() -> None:
    with pytest.raises(UsageError, match=r"--o is ambiguous: --off, --on"):
        parse(OPTIONS, ["--o"])


def test_an_unknown_option_is_refused_with_a_near_one() -> None:
    with pytest.raises(UsageError, match=r"no such option: --forze \(did you mean --force\?\)"):
        parse(OPTIONS, ["--forze"])
    with pytest.raises(UsageError, match=r"no such option: -x$"):
        parse(OPTIONS, ["-x"])


def test_the_value_of_an_option_given_as_an_option_is_explained() -> None:
    options = (*OPTIONS, o.REASON, o.FORMAT)
    with pytest.raises(UsageError, match=r"--json \(did you mean --format json\?\)"):
        parse(options, ["--json"])


@pytest.mark.parametrize("words", [["-B", "-maxmem"], ["-B-maxmem"]])
def test_a_value_may_begin_with_a_dash(words: list[str]) -> None:
    assert parse(OPTIONS, words)[0].beparams == {"maxmem": None}


def test_short_options_can_be_joined() -> None:
    opts, _ = parse(OPTIONS, ["-dfdt", "plain"])
    assert (opts.debug, opts.force, opts.disk_template) == (2, True, "plain")


@pytest.mark.parametrize("words", [["-B"], ["--disk"], ["--node"]])
def test_a_missing_value_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match=f"option {words[0]} needs a value"):
        parse(OPTIONS, words)


def test_a_switch_takes_no_value() -> None:
    with pytest.raises(UsageError, match="option --force takes no value"):
        parse(OPTIONS, ["--force=yes"])


def test_an_empty_value_is_a_value() -> None:
    assert parse(OPTIONS, ["--node="])[0].node == ""


def test_a_word_outside_the_choices_is_refused() -> None:
    with pytest.raises(UsageError, match=r"-t: invalid value 'plian'.*did you mean plain"):
        parse(OPTIONS, ["-t", "plian"])


def test_an_unusable_value_names_the_option() -> None:
    with pytest.raises(UsageError, match="--shutdown-timeout: 'soon' is not an integer"):
        parse(OPTIONS, ["--shutdown-timeout", "soon"])


def test_the_last_one_counts_or_all_do() -> None:
    opts, _ = parse(
        (values_of("--to", dest="to", help=""), *OPTIONS),
        ["--on", "--off", "--node", "a", "--node", "b", "--to", "x", "--to", "y"],
    )
    assert (opts.state, opts.node, opts.to) == ("off", "b", ["x", "y"])


def test_options_without_effect_are_accepted() -> None:
    assert parse(OPTIONS, ["--no-ip-check", "web1"])[1] == ["web1"]


@pytest.mark.parametrize("word", ["-h", "--help", "--he"])
def test_help_wins(word: str) -> None:
    with pytest.raises(HelpWanted):
        parse(OPTIONS, ["-f", word, "--nonsense"])
