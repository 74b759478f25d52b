"""The text format: what is written is read back, and errors name line and field."""

import pytest
from clusters import cluster

from ganeti.htools import text

SMALL = """\
group1|uuid-1|preferred||

node1|4096|512|3584|10000|9000|4|M|uuid-1
node2|4096|512|3584|10000|9000|4|N|uuid-1

web1|512|1000|1|running|Y|node1|node2|drbd|

htools:iextags:service
"""


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_back(seed: int) -> None:
    made = cluster(seed, tags=seed % 2 == 1, reserved=0.2, templates=("drbd", "ext"))
    assert text.load(text.dump(made), "x") == made


def test_short_lines_have_defaults() -> None:
    read = text.load(SMALL, "x")
    assert read.nodes[0].spindles == 1
    assert not read.instances[0].forthcoming
    assert read.tags == ("htools:iextags:service",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|512|1000|1|", "|much|1000|1|", "x, line 6, field 2 (memory): 'much' is not a number"),
        ("|512|1000|1|", "|-5|1000|1|", "x, line 6, field 2 (memory): -5 is below 0"),
        ("|node2|drbd", "|node9|drbd", "field 8 (secondary node): there is no node 'node9'"),
        ("|node1|node2|", "||node2|", "line 6, field 7 (primary node): is empty"),
        ("|node1|node2|", "|node1|node1|", "'node1' is the primary node too"),
        ("running|Y", "running|maybe", "field 6 (auto_balance): invalid value 'maybe'"),
        ("|M|uuid-1", "|M|uuid-7", "line 3, field 9 (group): there is no group 'uuid-7'"),
        ("node2|4096|512", "node1|4096|512", "x: node 'node1' is there twice"),
        ("preferred", "maybe", "line 1, field 3 (allocation policy): invalid value 'maybe'"),
        ("web1|512|1000", "web1|1000", "x, line 6: 9 fields, must have 10 to 13"),
        ("|512|1000|1|", "|1e400|1000|1|", "field 2 (memory): '1e400' is not a number"),
    ],
)
def test_errors_name_line_and_field(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(text.TextError) as caught:
        text.load(SMALL.replace(old, new), "x")
    assert message in str(caught.value)


def test_a_node_nobody_knows_about_is_offline() -> None:
    read = text.load(SMALL.replace("node2|4096|512|3584", "node2|?|?|?"), "x")
    assert read.nodes[1].offline
    assert read.nodes[1].memory == 0


def test_a_file_without_sections_is_refused() -> None:
    with pytest.raises(text.TextError, match="1 sections"):
        text.load("x|y\n", "x")
