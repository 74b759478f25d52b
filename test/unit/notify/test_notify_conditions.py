"""When something that is wrong for a time is told, and when its end is."""

from __future__ import annotations

from ganeti.notify.conditions import Condition, Watch

DOWN = Condition("node-unreachable", "node", "node3", "Node node3 does not answer")
LATE = Condition("backup-overdue", "instance", "web1", "old")


def list_changes(watch: Watch, found: list[Condition], now: float) -> list[tuple[str, bool]]:
    return [(data["key"], data["over"]) for data in watch.follow(found, now)]


def test_a_node_must_be_silent_for_half_a_minute() -> None:
    watch = Watch()
    assert list_changes(watch, [DOWN], 0.0) == []
    assert list_changes(watch, [DOWN], 29.0) == []
    assert list_changes(watch, [], 31.0) == []
    assert list_changes(watch, [DOWN], 40.0) == []
    assert list_changes(watch, [DOWN], 70.0) == [("node-unreachable/node3", False)]
    assert list_changes(watch, [DOWN], 80.0) == []


def test_the_end_is_told_once_and_is_good_news() -> None:
    watch = Watch({DOWN.key: DOWN})
    [end] = watch.follow([], 0.0)
    assert (end["severity"], end["text"]) == ("ok", "Over: Node node3 does not answer")
    assert watch.follow([], 1.0) == []


def test_after_a_restart_nothing_is_told_again() -> None:
    before = Watch()
    assert list_changes(before, [LATE], 5.0) == [("backup-overdue/web1", False)]
    assert list_changes(Watch(before.known), [LATE], 0.0) == []


def test_a_finding_has_the_severity_of_the_verification() -> None:
    finding = Condition("finding", "node", "node1", "text", "ENODEN1", "error")
    [data] = Watch().follow([finding], 0.0)
    assert (data["severity"], data["key"]) == ("error", "finding/node1/ENODEN1")
