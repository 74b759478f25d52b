"""What the master keeps of nodes, findings and samples without asking for it."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.base.histogram import Histogram
from ganeti.master import measures
from ganeti.master.findings import Findings
from ganeti.master.samples import merge
from ganeti.master.survey import judge
from ganeti.model.backup import BackupPlan
from ganeti.model.finding import Finding
from ganeti.paths import Paths
from ganeti.rpc.samples import LatestSamples, Samples


def test_a_node_that_stops_to_answer_has_no_samples_any_more() -> None:
    up = judge(None, LatestSamples(time=5.0), None, 10.0)
    again = judge(up, LatestSamples(time=15.0), None, 20.0)
    assert (again.since, again.answered, again.samples.time) == (10.0, 20.0, 15.0)
    down = judge(again, None, errors.RpcError("no route"), 30.0)
    assert (down.reachable, down.since, down.answered) == (False, 30.0, 20.0)
    assert (down.samples.time, down.problem) == (0.0, "no route")


def test_findings_survive_a_restart_and_keep_their_age(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.data.mkdir(parents=True)
    Findings(paths).note("g", [Finding("error", "ENODEN1", "node", "n1", "only 100 MiB")])
    again = Findings(paths)
    [first] = again.parts["g"].findings
    again.note("g", [Finding("error", "ENODEN1", "node", "n1", "only 90 MiB")])
    [second] = again.parts["g"].findings
    assert (second.since, second.finding.text) == (first.since, "only 90 MiB")
    again.note("g", [])
    assert Findings(paths).parts["g"].findings == []


def test_a_damaged_file_of_findings_is_not_used(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.data.mkdir(parents=True)
    paths.findings.write_text("{")
    assert Findings(paths).parts == {}


def test_samples_of_two_nodes_are_one_series_without_those_of_a_former_instance() -> None:
    new = Samples(start=100, step=10, series={"cpu": [None, None, 3.0]})
    old = Samples(start=90, step=10, series={"cpu": [8.0, 1.0, 2.0, 9.0]})
    assert merge([new, old], "cpu", 100, 10, 3, None) == [1.0, 2.0, 3.0]
    assert merge([new, old], "cpu", 100, 10, 3, 115.0) == [None, 2.0, 3.0]


def test_backups_are_measured_with_their_schedule() -> None:
    sheet = measures.Sheet()
    measures.add_backup(sheet, "web1", BackupPlan(every=24.0, last_time=5.0))
    measures.add_backup(sheet, "new", BackupPlan(every=1.0))
    measures.add_backup(sheet, "by-hand", BackupPlan(last_time=7.0, verified_time=8.0))
    assert sheet.values == {
        "ganeti_backup_timestamp_seconds": [[["web1"], 5.0], [["by-hand"], 7.0]],
        "ganeti_backup_interval_seconds": [[["web1"], 86400.0], [["new"], 3600.0]],
        "ganeti_backup_verified_timestamp_seconds": [[["by-hand"], 8.0]],
    }


def test_classes_count_what_is_at_most_as_long() -> None:
    times = Histogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 9.0):
        times.observe(seconds)
    assert times.read() == ([2, 3, 4], 12.0)
