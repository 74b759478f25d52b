"""Rules and dashboards in ``doc/monitoring`` ask for metrics that exist, and name pages that do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ganeti.model.metrics import METRICS

DOC = Path(__file__).parent.parent.parent / "doc"
SHOWN = {metric.shown for metric in METRICS.values()}


def test_alerts_ask_for_known_metrics_and_name_pages() -> None:
    text = (DOC / "monitoring" / "alerts.yml").read_text()
    assert set(re.findall(r"\bganeti_\w+", text)) <= SHOWN
    pages = re.findall(r"runbook: doc/(\S+)", text)
    assert len(pages) == text.count("- alert:") >= 15
    assert [page for page in pages if not (DOC / page.partition("#")[0]).exists()] == []


def test_alerts_without_a_page_of_a_situation_are_in_the_table_of_alerts() -> None:
    rules = (DOC / "monitoring" / "alerts.yml").read_text().split("- alert: ")[1:]
    named = [rule.split()[0] for rule in rules if "#when-an-alert-fires" in rule]
    page = (DOC / "admin" / "monitoring.md").read_text()
    table = page.partition("## When an alert fires")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"`(Ganeti\w+)`", table)) == sorted(named)


def test_each_alert_has_a_case_in_which_it_fires_and_clears() -> None:
    rules = re.findall(r"- alert: (\w+)", (DOC / "monitoring" / "alerts.yml").read_text())
    cases = (DOC.parent / "test" / "monitoring" / "alerts_test.yml").read_text()
    for rule in rules:
        samples = re.findall(rf'"{rule}".*\n.*\n +exp_samples:(.*)', cases)
        assert "" in samples, f"{rule} never fires"
        assert samples[-1] == " []", f"{rule} does not clear"


@pytest.mark.parametrize("name", ["cluster", "node", "instance"])
def test_dashboards_ask_for_known_metrics(name: str) -> None:
    board = json.loads((DOC / "monitoring" / f"{name}.json").read_text())
    assert board["uid"] == f"ganeti-{name}"
    for panel in board["panels"]:
        for target in panel["targets"]:
            found = set(re.findall(r"\bganeti_\w+", target["expr"]))
            assert found, panel["title"]
            assert found <= SHOWN
