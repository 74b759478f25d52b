"""Which backups the watcher begins."""

from __future__ import annotations

from ganeti.watcher.backups import Plan, find_due

HOUR = 3600.0


def plan(name: str, last: float, node: str = "node1", every: float = 24) -> Plan:
    return Plan(name, node, every, last, keeps=False)


def names(plans: list[Plan], now: float, waiting: tuple[str, ...] = ()) -> list[str]:
    return [each.name for each in find_due(plans, waiting, now)]


def test_a_backup_is_due_when_its_hours_are_over() -> None:
    assert names([plan("web1", 0.0)], 24 * HOUR - 1) == []
    assert names([plan("web1", 0.0)], 24 * HOUR) == ["web1"]


def test_the_longest_overdue_come_first_and_two_on_a_node() -> None:
    plans = [plan("web1", 3 * HOUR), plan("web2", 1 * HOUR), plan("web3", 2 * HOUR)]
    plans.append(plan("web4", 4 * HOUR, node="node2"))
    assert names(plans, 100 * HOUR) == ["web2", "web3", "web4"]


def test_what_waits_or_runs_is_not_begun_again_and_counts() -> None:
    plans = [plan("web1", 1 * HOUR), plan("web2", 2 * HOUR), plan("web3", 3 * HOUR)]
    assert names(plans, 100 * HOUR, ("web1",)) == ["web2"]
