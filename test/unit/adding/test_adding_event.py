"""Add events that people are notified of: one that happens, one that lasts."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("event that people are notified of",)

HAPPENS = '    "group-created": Meaning("warning", "Somebody made a node group"),\n'
LASTS = '    "node-untagged": Meaning("error", "A node has no tag for a minute", 60.0),\n'
CONDITION = """    for node in config.nodes.values():
        if not node.tags:
            yield Condition("node-untagged", "node", node.name, f"Node {node.name} has no tag")
"""

FOLLOW = f"""
import sys

sys.path[:0] = [{str(Path(__file__).parent)!r}]
import own_master
from ganeti.config.changes import Author
from ganeti.master.conditions import find_conditions
from ganeti.model import base
from ganeti.notify import notices
from ganeti.notify.conditions import Watch


def event(kind, change, name, data):
    return {{"id": "r-1", "time": 5.0, "kind": kind, "change": change, "object": name,
            "objects": [name], "data": data}}


def show(found):
    notice = notices.from_event(found, None)
    passes = [notices.compile_filter(f)(notice) for f in (None, ["=", "event", "group-created"])]
    print(notice.event, notice.severity, notice.text, *passes)


show(event("group", "created", "g", {{}}))
show(event("group", "removed", "g", {{}}))
core, watch = own_master.make(), Watch()
core.replication.alone = True


def tag(*words):
    (node,) = core.store.current.nodes.values()
    core.store.change("tag", Author(), lambda draft: draft.put(base.replace(node, tags=words)))


for seconds, words in ((0, ()), (59, ()), (61, ()), (90, ()), (120, ("fine",))):
    tag(*words)
    told = watch.follow(find_conditions(core), seconds)
    print(seconds, len(told))
    for data in told:
        show(event(data["kind"], "condition", data["object"], data))
"""


def test_events_are_told_with_their_severity_begin_and_end(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("notify/notices.py", HAPPENS, before='    "test": Meaning(')
    package.insert("notify/notices.py", LASTS, before='    "test": Meaning(')
    package.insert(
        "master/conditions.py", CONDITION, before="    yield from _find_dead(core, config, now)"
    )
    assert package.output(FOLLOW, tmp_path / "root") == [
        "group-created warning group g: created True True",
        "group-removed info group g: removed False False",
        "0 0",
        "59 0",
        "61 1",
        "node-untagged error Node node1.example.com has no tag True False",
        "90 0",
        "120 1",
        "node-untagged ok Over: Node node1.example.com has no tag True False",
    ]
    assert package.touched == {"notify/notices.py", "master/conditions.py"}
