"""When a lost disk is dropped without being asked."""

from __future__ import annotations

import re

import pytest

from ganeti.cli.node.auto_repair import decide


@pytest.mark.parametrize(
    ("last", "lost", "repair", "record", "text"),
    [
        (None, {"a": False, "b": False}, None, True, "consistent"),
        (True, {"a": False, "b": False}, None, True, "consistent"),
        (False, {"a": False}, None, True, "consistent"),
        (None, {"a": True}, None, False, "not known to be consistent"),
        (False, {"a": True, "b": False}, None, False, "not known to be consistent"),
        (True, {"a": True, "b": True}, None, None, r"more than one node lost a disk \(a, b\)"),
        (True, {"a": True, "b": False}, "a", False, "node a lost a disk"),
        # Whoever says nothing may have lost more than a disk.
        (True, {"a": True, "b": None}, None, None, "no answer from b"),
        (True, {"a": False, "b": None}, None, None, "no answer from b"),
    ],
)
def test_only_one_node_that_turned_bad_is_repaired(
    last: bool | None,
    lost: dict[str, bool | None],
    repair: str | None,
    record: bool | None,
    text: str,
) -> None:
    found = decide(last, lost)
    assert (found.repair, found.record) == (repair, record)
    assert re.search(text, found.text)
