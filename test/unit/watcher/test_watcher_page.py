"""doc/admin/watcher.md lists the tasks of the watcher, in their order, and the jobs they submit."""

from __future__ import annotations

import re
from pathlib import Path

from ganeti.upkeep import instances
from ganeti.watcher import disks, tasks

ROOT = Path(__file__).resolve().parents[3]
_TABLE = re.compile(r"^\| task \| what \| how \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_OPCODE = re.compile(r"`([A-Z]+_[A-Z_]+)`")
_SUBMITTED = re.compile(r'"OP_ID": "OP_([A-Z_]+)"')


def _tables() -> list[list[list[str]]]:
    page = (ROOT / "doc" / "admin" / "watcher.md").read_text()
    return [
        [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()]
        for rows in _TABLE.findall(page)
    ]


def test_the_page_lists_all_tasks_in_their_order() -> None:
    found = [list(dict.fromkeys(row[0].strip("`") for row in table)) for table in _tables()]
    assert found == [list(tasks.NODE_TASKS), list(tasks.TASKS)]


def test_the_page_names_the_opcodes_that_each_task_submits() -> None:
    named: dict[str, set[str]] = {}
    for task, _what, how in (row for table in _tables() for row in table):
        named.setdefault(task.strip("`"), set()).update(_OPCODE.findall(how))
    functions = {**tasks.NODE_TASKS, **tasks.TASKS}
    submitted = {
        task: set(_SUBMITTED.findall(Path(run.__code__.co_filename).read_text()))
        for task, run in functions.items()
    }
    assert disks.instances is instances  # it activates with what that module submits
    submitted["disks"].add("INSTANCE_ACTIVATE_DISKS")
    assert named == submitted
