"""Debian's Prometheus scrapes a running cluster; dashboards and alert rules find their values.

Without ``MONITORING`` in the environment this is skipped; ``make check-monitoring`` runs it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_cluster import Cluster
from rapi_server import Api
from storage_nodes import StorageNodes
from waiting import wait_for

pytestmark = pytest.mark.skipif(not os.environ.get("MONITORING"), reason="takes a minute")
FILES = Path(__file__).resolve().parents[2] / "doc/monitoring"
WEB = "web.example.com"
#: What a healthy cluster has no value of: each is counted only where there is something.
EXPLAINED = {"ganeti_verify_findings"}
#: What comes last: counters need two measurements, and the room is computed every two minutes.
LATE = (
    "rate(ganeti_instance_cpu_seconds_total[5m])",
    "rate(ganeti_node_cpu_seconds_total[5m])",
    "ganeti_drbd_in_sync",
    "ganeti_capacity_instances",
    "ganeti_node_storage_free_bytes",
)


class Prometheus:
    """A server of its own, with the configuration of the documents, but other names and times."""

    def __init__(self, directory: Path, api: Api, token: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        (directory / "token").write_text(token)
        text = (FILES / "prometheus.yml").read_text()
        for old, new in (
            ("/etc/prometheus/ganeti-token", str(directory / "token")),
            ("/etc/prometheus/ganeti-ca.pem", str(api.ca)),
            ("cluster.example.com:5080", f"{api.address}:{api.port}"),
            ("scrape_interval: 30s", "scrape_interval: 2s"),
            ("alerts.yml", str(FILES / "alerts.yml")),
        ):
            assert old in text
            text = text.replace(old, new)
        (directory / "prometheus.yml").write_text(text)
        self.log = directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self.address}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, path: str, **arguments: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def count(self, expression: str) -> int:
        """Results of a query now."""
        return len(self.ask("query", query=expression)["result"])

    def is_ready(self) -> bool:
        try:
            return all(self.count(expression) for expression in LATE)
        except OSError:
            return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="module")
def prometheus(
    storage_cluster: tuple[Cluster, StorageNodes], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    cluster, _nodes = storage_cluster
    cluster.ok(f"instance add -o noop --disk 0:size=64M -t drbd -n node2:node3 {WEB}")
    cluster.ok(f"instance add -o noop --no-nics --disk 0:size=8M -t file -n node2 db.{WEB}")
    (cluster.directory / "backup").mkdir(exist_ok=True)
    cluster.ok("instance shutdown", f"db.{WEB}")
    cluster.ok("backup schedule --every=24", f"db.{WEB}")
    cluster.ok("backup run", f"db.{WEB}")
    cluster.ok("instance startup", f"db.{WEB}")
    cluster.gnt("cluster verify")
    watcher = [sys.executable, "-m", "ganeti.watcher.program"]
    subprocess.run(watcher, env=cluster.env(), timeout=120, check=True)
    token = cluster.ok("rapi token add --permissions metrics.read scraper").lines[0].split()[0]
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), Api(cluster), token)
    try:
        wait_for(made.is_ready, lambda: made.log.read_text()[-2000:], 240, 1.0)
        yield made
    finally:
        made.stop()


def test_the_target_is_up_and_rules_are_evaluated(prometheus: Prometheus) -> None:
    [target] = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) >= 15
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}


@pytest.mark.parametrize("name", ["cluster", "node", "instance"])
def test_each_query_of_the_dashboards_has_data(prometheus: Prometheus, name: str) -> None:
    panels = json.loads((FILES / f"{name}.json").read_text())["panels"]
    empty = []
    for panel in panels:
        for target in panel["targets"]:
            found = [
                prometheus.count(
                    target["expr"].replace("$node", "node2.example.com").replace("$instance", which)
                )
                for which in (WEB, f"db.{WEB}")
            ]
            if not any(found):
                empty.append((panel["title"], target["expr"]))
    assert empty == []


def test_alert_rules_read_metrics_that_are_there(prometheus: Prometheus) -> None:
    found = set(re.findall(r"\bganeti_\w+", (FILES / "alerts.yml").read_text()))
    missing = {name for name in found if not prometheus.count(name)}
    assert missing - EXPLAINED == set()
    assert prometheus.count('ALERTS{alertstate="firing"}') == 0
