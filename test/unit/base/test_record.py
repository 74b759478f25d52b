"""Classes of named values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ganeti.base.record import Record

ROOT = Path(__file__).resolve().parents[3]


class Point(Record):
    """A place."""

    x: int
    y: int = 0

    @property
    def sum(self) -> int:
        return self.x + self.y


class Named(Point):
    """A place with a name."""

    name: str = "here"


def test_arguments_come_by_place_or_name() -> None:
    assert (Point(1, 2).sum, Point(x=3).sum) == (3, 3)
    assert (Named(1, 2, "there").name, Named(1).name) == ("there", "here")


def test_equal_values_make_equal_records_of_one_class() -> None:
    assert Point(1) == Point(1, 0)
    assert hash(Point(1)) == hash(Point(1, 0))
    assert Point(1) != Point(2)
    assert Point(1) != Named(1)
    assert repr(Named(1)) == "Named(x=1, y=0, name='here')"


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="Point: x is missing"):
        Point(y=1)  # type: ignore[call-arg]
    for call in (lambda: Point(1, 2, 3), lambda: Point(1, z=2), lambda: Point(1, x=2)):
        with pytest.raises(TypeError, match="Point takes x, y, each once"):
            call()


def test_values_stay() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="x cannot be changed"):
        point.x = 2  # type: ignore[misc]
    assert point.x == 1


@pytest.mark.parametrize("words", ["gnt-cluster version", "gnt-instance list", "gnt-node list"])
def test_small_commands_load_nothing_that_takes_long(words: str, tmp_path: Path) -> None:
    # They end without a master; what they need to show its answer is loaded by then.
    code = (
        "import sys\n"
        f"sys.argv = ['ganeti.cli', *{words.split()!r}]\n"
        "from ganeti.cli import __main__\n"
        "__main__.main()\n"
        "print(*sys.modules)\n"
    )
    env = {"PYTHONPATH": str(ROOT), "GANETI_ROOTDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "simplejson" in loaded
    for name in (
        "argparse",
        "copy",
        "dataclasses",
        "inspect",
        "msgspec",
        "ganeti.cli.generated",
        "ganeti.model.enums",
    ):
        assert name not in loaded
