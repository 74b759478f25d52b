"""gnt-job logs, logs as JSON, and logs that were rotated."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
from pathlib import Path

import pytest
from local_cluster import Cluster
from waiting import wait_for

from ganeti import constants

pytestmark = pytest.mark.long

WEB = "web1.example.com"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (\S+)\.example\.com (\S+) ([A-Z]+) (.*)")
FILES = {
    constants.NODED: "node-daemon.log",
    constants.MASTERD: "master-daemon.log",
    constants.RAPI: "rapi-daemon.log",
    constants.CONFD: "conf-daemon.log",
    constants.MOND: "monitoring-daemon.log",
    constants.METAD: "meta-daemon.log",
}


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> str:
    """The job that made the instance."""
    assert cluster.add(WEB).code == 0
    [*_, [number]] = cluster.cells("job list -o id")
    return number


def show_logs(cluster: Cluster, *words: str) -> list[tuple[str, ...]]:
    lines = cluster.ok("job logs", *words).lines
    found = [LINE.fullmatch(line) for line in lines]
    assert None not in found, lines
    return [match.groups() for match in found if match is not None]


def test_lines_of_master_and_nodes_by_time(cluster: Cluster, job: str) -> None:
    lines = show_logs(cluster, job)
    assert lines[0] == ("node1", "ganeti-masterd", "INFO", "OP_INSTANCE_CREATE runs")
    assert lines[-1] == ("node1", "ganeti-masterd", "INFO", "ended with success")
    calls = [text.partition(":")[0] for node, _program, _level, text in lines if node == "node2"]
    assert {"blockdev_create", "instance_os_add", "instance_start"} <= set(calls)
    assert {node for node, *_rest in show_logs(cluster, "--node", "node2", job)} == {"node2"}
    assert show_logs(cluster, "--node", "node3", job) == []
    [first, *_] = json.loads(cluster.ok("job logs --format=json", job).out)
    assert (first["program"], first["text"]) == ("ganeti-masterd", "OP_INSTANCE_CREATE runs")


def test_another_job_is_another_log(cluster: Cluster, job: str) -> None:
    cluster.ok("instance reboot", WEB)
    texts = [text for *_rest, text in show_logs(cluster, str(int(job) + 1))]
    assert "instance_reboot: started instance web1.example.com" in texts
    assert not any("instance_os_add" in text for text in texts)


def test_an_archived_job_and_files_that_were_rotated(cluster: Cluster, job: str) -> None:
    before = show_logs(cluster, job)
    cluster.ok("job archive", job)
    for node in ("node1", "node2"):
        path = cluster.paths(node).log / "node-daemon.log"
        packed = path.with_name("node-daemon.log.2.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        _reopen(cluster, constants.NODED, node)
    master = cluster.paths().log / "master-daemon.log"
    master.rename(master.with_name("master-daemon.log.1"))
    _reopen(cluster, constants.MASTERD)
    assert show_logs(cluster, job) == before


def _reopen(cluster: Cluster, service: str, node: str = "node1") -> None:
    pid = cluster.pid(service, node)
    assert pid is not None
    os.kill(pid, signal.SIGHUP)
    path = cluster.paths(node).log / FILES[service]
    wait_for(path.exists, f"{path} is opened again")


@pytest.mark.parametrize("service", FILES)
def test_sighup_opens_the_log_again(cluster: Cluster, service: str) -> None:
    if cluster.pid(service) is None:
        assert cluster.start_daemon(service).code == 0
    path = cluster.paths().log / FILES[service]
    moved = path.with_suffix(".moved")
    path.rename(moved)
    _reopen(cluster, service)
    pid = cluster.pid(service)

    def open_files() -> set[Path]:
        return {Path(os.readlink(f"/proc/{pid}/fd/{fd}")) for fd in os.listdir(f"/proc/{pid}/fd")}

    wait_for(lambda: moved not in open_files(), "the old file is closed")
    assert path in open_files()


def test_what_is_not_known_is_said(cluster: Cluster) -> None:
    for words, text in (
        (("9999",), "Job 9999 is not known, and no log has a line about it"),
        (("--node", "nix", "1"), "nix"),
        (("one",), "'one' is not a job ID: expected a number"),
    ):
        ran = cluster.gnt("job logs", *words)
        assert ran.code == 1
        assert text in ran.err


def test_a_node_that_does_not_answer_is_named(cluster: Cluster) -> None:
    cluster.ok("instance reboot", WEB)
    [*_, [number]] = cluster.cells("job list -o id")
    pid = cluster.pid(constants.NODED, "node3")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    ran = cluster.gnt("job logs", number)
    assert ran.code == 1
    assert "instance_reboot" in ran.out
    assert "Node node3.example.com told nothing:" in ran.err
    assert cluster.start_daemon(constants.NODED, "node3").code == 0


def test_daemons_that_write_json_are_read_as_well(cluster: Cluster) -> None:
    pid = cluster.pid(constants.NODED, "node2")
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: cluster.pid(constants.NODED, "node2") is None, "it ends")
    cluster.kill_master()
    assert cluster.start_daemon(constants.NODED, "node2", "--log-format=json").code == 0
    assert cluster.start_daemon(constants.MASTERD, "node1", "--log-format=json").code == 0
    cluster.ok("instance reboot", WEB)
    [*_, [number]] = cluster.cells("job list -o id")
    lines = (cluster.paths("node2").log / "node-daemon.log").read_text().splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    [record] = [each for each in records if each["message"] == f"started instance {WEB}"]
    assert (record["job"], record["instance"]) == (int(number), WEB)
    assert (record["node"], record["call"]) == ("node2.example.com", "instance_reboot")
    texts = [(node, text) for node, _program, _level, text in show_logs(cluster, number)]
    assert texts[0] == ("node1", "OP_INSTANCE_REBOOT runs")
    assert ("node2", f"instance_reboot: started instance {WEB}") in texts
