"""Add an alert rule with its case; the gate holds both to what there is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import test_monitoring
from own_package import OwnPackage

ROWS = ("alert rule",)

RULES, CASES = "doc/monitoring/alerts.yml", "test/monitoring/alerts_test.yml"
RULE = """      - alert: GanetiManyLocks
        expr: sum by (level) (ganeti_locks) > 1000
        for: 5m
        labels:
          severity: warning
        annotations:
          summary: "There are many locks of level {{ $labels.level }}"
          runbook: doc/admin/monitoring.md
"""
CASE = """  - interval: 1m
    input_series:
      - series: 'ganeti_locks{level="node"}'
        values: '2000x300 10x300'
    promql_expr_test:
      - expr: count(ALERTS{alertname="GanetiManyLocks",alertstate="firing"})
        eval_time: 295m
        exp_samples:
          - value: 1
            labels: '{}'
      - expr: count(ALERTS{alertname="GanetiManyLocks",alertstate="firing"})
        eval_time: 595m
        exp_samples: []
"""


def check_all() -> None:
    """What the gate checks of alert rules."""
    test_monitoring.test_alerts_ask_for_known_metrics_and_name_pages()
    test_monitoring.test_alerts_without_a_page_of_a_situation_are_in_the_table_of_alerts()
    test_monitoring.test_each_alert_has_a_case_in_which_it_fires_and_clears()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnPackage:
    """One with the documents, which the checks of the gate look at."""
    made = OwnPackage(tmp_path / "package", *ROWS)
    shutil.copytree(test_monitoring.DOC, made.directory / "doc")
    monkeypatch.setattr(test_monitoring, "DOC", made.directory / "doc")
    return made


def test_an_alert_in_two_files_is_checked(package: OwnPackage) -> None:
    package.insert(RULES, RULE)
    package.insert(CASES, CASE)
    check_all()
    if promtool := shutil.which("promtool"):  # make check-monitoring tries the others as well
        cases = package.path(CASES)
        head = cases.read_text().partition("tests:\n")[0]
        cases.with_name("one.yml").write_text(f"{head}tests:\n{CASE}")
        words = [promtool, "test", "rules", "one.yml"]
        done = subprocess.run(words, cwd=cases.parent, capture_output=True, text=True, timeout=60)
        assert "SUCCESS" in done.stdout, done.stdout + done.stderr
    assert package.touched == {RULES, CASES}


@pytest.mark.parametrize(
    ("rule", "case", "wrong"),
    [
        (RULE, "", "GanetiManyLocks never fires"),
        (RULE.replace("ganeti_locks", "ganeti_lox"), CASE, "ganeti_lox"),
        (RULE.replace("monitoring.md", "many-locks.md"), CASE, "many-locks.md"),
    ],
)
def test_an_alert_that_cannot_work_fails_the_gate(
    package: OwnPackage, rule: str, case: str, wrong: str
) -> None:
    package.insert(RULES, rule)
    package.insert(CASES, case)
    with pytest.raises(AssertionError, match=wrong):
        check_all()
