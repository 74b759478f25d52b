"""Add a metric to the score of a placement, a spread over nodes, as ``doc/adding.md`` says."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("part of the score of a placement",)

WEIGHT = '    "memory_cv": 2.0,\n'
SPREAD = '            spread("memory_cv", 2.0, nothing, (Use.MEMORY, per_memory)),\n'

SHOW = f"""
import sys

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from clusters import cluster
from ganeti.htools.hbal import print_metrics
from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.score import WEIGHTS, metrics, score

made = cluster(1, 3, 4)
layout = Layout.from_board(Board(made, made.groups[0]))
found = metrics(layout)
others = sum(weight * found[name] for name, weight in WEIGHTS.items() if name != "memory_cv")
print("differs from nothing:", found["memory_cv"] > 0)
print("in the score:", abs(score(layout) - others - 2.0 * found["memory_cv"]) < 1e-9)
print("in what moves are judged by:", any(s.name == "memory_cv" for s in layout.board.spreads))
print_metrics(layout)
"""


def test_a_spread_in_two_files_is_weighed_and_printed(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("placement/score.py", WEIGHT, before='    "cpu_load_cv":')
    package.insert("placement/board.py", SPREAD, before='            spread("cpu_load_cv"')
    first, second, third, *printed = package.output(SHOW, tmp_path / "root")
    assert [first, second, third] == [
        "differs from nothing: True",
        "in the score: True",
        "in what moves are judged by: True",
    ]
    (line,) = (line.split() for line in printed if "memory_cv" in line)
    assert line[0] == "memory_cv"
    assert line[-1] == "x2.00"
    assert package.touched == {"placement/score.py", "placement/board.py"}
