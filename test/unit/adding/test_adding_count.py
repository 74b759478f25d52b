"""Add a count to the score of a placement, and see that nothing judges without it."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("part of the score of a placement",)

WEIGHT = '    "crowd_cnt": 3.0,\n'
VALUE = '        "crowd_cnt": float(np.maximum(seats[0][on] - 3, 0).sum()),\n'
OF_A_MOVE = """        crowd = self.layout.seats[0]
        more = (crowd[q] >= 3) * judge.on[q] - (crowd[self.p] > 3) * judge.on[self.p]
        total = total + WEIGHTS["crowd_cnt"] * self.real * (q != self.p) * more
"""
OF_A_PLACE = """        total = total + WEIGHTS["crowd_cnt"] * ((layout.seats[0] >= 3) * on)[self.p]
"""

SHOW = f"""
import sys

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from clusters import cluster
from ganeti.htools.hbal import print_metrics
from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.score import metrics, score
from ganeti.placement.seats import Seats

made = cluster(1, 4, 16)
layout = Layout.from_board(Board(made, made.groups[0]))
print("counted:", metrics(layout)["crowd_cnt"])
judge, moves, wrong = Judge(layout, Limits()), 0, 0
for kind, rows in judge.movable():
    scores = judge.scores(kind, rows)
    for i, j in zip(*(scores < float("inf")).nonzero()):
        target = -1 if kind is Kind.TO_SECONDARY else int(judge.targets[j])
        after = layout.move(int(rows[i]), *places_after(layout, kind, int(rows[i]), target))
        moves += 1
        wrong += abs(scores[i, j] - score(after)) > 1e-6
print("moves:", moves > 20, wrong)
item, away = layout.board.instances[0], layout.move(0, -1, -1)
seats = Seats(away, item, 0)
scores, wrong = seats.scores(), 0
for i, j in zip(*seats.allowed().nonzero()):
    after = away.move(0, int(seats.rows[i]), int(seats.s[0, j]))
    wrong += abs(scores[i, j] - score(after)) > 1e-6
print("places:", seats.allowed().sum() > 5, wrong)
print_metrics(layout)
"""


def test_a_count_in_three_files_is_part_of_every_judgement(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("placement/score.py", WEIGHT, before='    "pri_tags_score": ')
    package.insert("placement/score.py", VALUE, before='        "pri_tags_score": ')
    package.insert(
        "placement/moves.py", OF_A_MOVE, before="        return total + self._location_part()"
    )
    package.insert("placement/seats.py", OF_A_PLACE, before="        total = total + far[self.p]")
    counted, moves, places, *printed = package.output(SHOW, tmp_path / "root")
    assert (counted, moves, places) == ("counted: 6.0", "moves: True 0", "places: True 0")
    (line,) = (line.split() for line in printed if "crowd_cnt" in line)
    assert line[-1] == "x3.00"
    assert package.touched == {"placement/score.py", "placement/moves.py", "placement/seats.py"}
