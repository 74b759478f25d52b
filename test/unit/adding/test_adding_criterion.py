"""Add hard criteria: for a new instance, for moves, and for a node that the user names."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = (
    "hard criterion: where a *new* instance must not go",
    "hard criterion for moves",
    "hard criterion for a node that the user names",
)
SUPPORT = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
"""

FAILURE = '    CROWD = "FailCrowd", "number of instances"\n'
NEW = """        if primary:
            mark(layout.seats[0] >= 4, Failure.CROWD)
"""
WHY = """    if reason == Failure.CROWD:
        return f"has {int(seats.layout.seats[0, node])} instances already"
"""
PLACE = """
from clusters import cluster
from ganeti.htools import hspace, program
from ganeti.placement import headroom
from ganeti.placement.capacity import model_instance
from ganeti.placement.choose import Chooser, Wish

program.run(hspace.PROGRAM, ["--simulate", "p,3,1000000,65536,16", "--machine-readable",
                             "--disk-template", "diskless"])
made = cluster(1, 3, 0)
item = model_instance(made.policy.standard, "plain")
chooser = Chooser(made)
for number in range(13):
    choice = chooser.choose(Wish(item))
print(choice.reason)
[found] = headroom.examine(made, made.groups, headroom.Wanted("plain"))
print(found.data()["normal"]["count"], found.data()["normal"]["ended_by"])
"""


def test_a_criterion_for_new_instances_in_two_files(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS[:1])
    package.insert("placement/seats.py", FAILURE, before='    MIGRATION = "FailMig"')
    package.insert("placement/seats.py", NEW, before="        disk = self.one[Use.DISK_ALL]\n")
    package.insert("placement/refusal.py", WHY, before="    if reason == Failure.TAGS:")
    said = package.output(SUPPORT + PLACE, tmp_path / "root")
    assert "HTS_ALLOC_INSTANCES=12" in said
    assert "HTS_ALLOC_FAIL_REASON=FAILCROWD" in said
    assert "HTS_ALLOC_FAILCROWD_CNT=3" in said
    assert said[-2:] == [
        "group group1: FailCrowd: 3 (node1 has 4 instances already; node2 has 4 instances already;"
        " node3 has 4 instances already)",
        "12 number of instances",
    ]
    assert package.touched == {"placement/seats.py", "placement/refusal.py"}


MOVES = """        allowed = allowed & ((q == p) | (self.layout.seats[0][q] < 4))
"""
BALANCE = """
from clusters import cluster
from ganeti.placement.balance import Goal, steps
from ganeti.placement.board import Board
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits
from ganeti.placement.relocate import Leave, evacuate

made = cluster(1, 4, 16)
layout = Layout.from_board(Board(made, made.groups[0]))
print("before:", layout.seats[0].astype(int).tolist())
most = max(int(step.after.seats[0, step.move.primary]) for step in steps(layout, Limits(), Goal())
           if step.move.primary != layout.primary[step.move.instance])
print("most after a move:", most)
gone = {item.name for item in made.instances if item.primary == "node1"}
found = evacuate(made, sorted(gone), Leave.PRIMARY, frozenset({"node1"}))
print("evacuated:", len(found.moved), sorted({why for _, why in found.failed}))
"""


def test_a_criterion_for_moves_in_one_file(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS[1:2])
    package.insert("placement/moves.py", MOVES, before="        soft = self.forced\n")
    assert package.output(SUPPORT + BALANCE, tmp_path / "root") == [
        "before: [7, 4, 1, 4]",
        "most after a move: 4",
        "evacuated: 3 ['no other node of its group can take it without breaking a rule']",
    ]
    assert package.touched == {"placement/moves.py"}


NAMED = """    if "closed" in node.tags:
        raise errors.make_state_error(f"node {node.name} is closed and cannot be used {what}")
"""
ASKED = """    if memory and info and info[0]["memory_total"] < 1 << 30:
        raise errors.make_resources_error(f"node {node.name} is too small for {what}")
"""
CREATE = """
from one_process import OneProcess
from ganeti import errors
from ganeti.opcodes import wire

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=2)


def run(op, **params):
    try:
        cluster.run(wire.from_wire({"OP_ID": op, **params}))
    except errors.OpPrereqError as err:
        print(err.args[0])


try:
    run("OP_TAGS_SET", kind="node", name="node2.example.com", tags=["closed"])
    for node in ("node2", "node1"):
        run("OP_INSTANCE_CREATE", mode="create", instance_name="w.example.com", disks=[], nics=[],
            disk_template="diskless", no_install=True, pnode=f"{node}.example.com")
    run("OP_INSTANCE_STARTUP", instance_name="w.example.com")
finally:
    cluster.close()
"""


def test_criteria_for_a_named_node_in_two_files(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS[2:])
    package.insert("ops/planning/checks.py", NAMED, before="    for bad, word in (")
    package.insert(
        "ops/steps/node_checks.py", ASKED, before="    config, nothing = ctx.config, held.Held()"
    )
    assert package.output(SUPPORT + CREATE, tmp_path / "root") == [
        "node node2.example.com is closed and cannot be used for a new instance",
        "node node1.example.com is too small for instance w.example.com",
    ]
    assert package.touched == {"ops/planning/checks.py", "ops/steps/node_checks.py"}
