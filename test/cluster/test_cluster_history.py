"""gnt-cluster history and diff on a running cluster: who changed what, when and why."""

from __future__ import annotations

import getpass
import json
import os
import time
from typing import Any

import pytest
from local_cluster import Cluster

from ganeti import errors
from ganeti.luxi.client import Client

SECRET = "S3CR3T"


def history(cluster: Cluster, line: str = "", *words: str) -> dict[str, Any]:
    found = json.loads(cluster.ok(f"cluster history --format json {line}", *words).out)
    assert set(found) == {"changes", "more", "missing", "begins", "names"}
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [change["name"] for change in found["changes"]]


def check_refused(cluster: Cluster, line: str, *words: str) -> str:
    ran = cluster.gnt(f"cluster {line}", *words)
    assert ran.code == 1
    assert ran.out == ""
    return ran.err


@pytest.fixture(scope="module")
def web(cluster: Cluster) -> float:
    """An instance with a past; gives the time before it was made."""
    before = time.time()
    time.sleep(0.01)  # clocks of both processes are the same, but coarse
    hidden = f"--os-parameters-private=greeting={SECRET}"
    made = cluster.add(
        "web1.example.com",
        "--reason",
        "for the shop",
        "--no-start",
        "-o",
        "bootsector+beat",
        f"{hidden}-1",
    )
    assert made.code == 0, made.err
    cluster.ok("instance startup --reason", "open for customers", "web1.example.com")
    cluster.ok("instance shutdown --timeout 0", "web1.example.com")
    cluster.ok("instance add-tags", "web1.example.com", "prod")
    cluster.ok("instance reinstall -f", hidden, "web1.example.com")
    return before


def test_a_change_tells_job_user_and_reason(cluster: Cluster, web: float) -> None:
    found = history(cluster, "web1.example.com")
    first = found["changes"][0]
    job = cluster.cells("job list -o id,summary")
    made = next(int(row[0]) for row in job if row[1].startswith("INSTANCE_CREATE"))
    assert (first["job"], first["user"]) == (made, getpass.getuser())
    assert {c["reason"] for c in found["changes"] if c["job"] == made} == {"for the shop"}
    changed = {
        k["key"]: (k["old"], k["new"])
        for c in found["changes"]
        if c["reason"] == "open for customers"
        for o in c["objects"]
        for k in o["keys"]
    }
    assert changed["admin_state"] == ("down", "up")
    assert first["time"] >= web
    (tagged,) = [c for c in found["changes"] if c["name"] == "tags-add"]
    assert tagged["reason"] == ""


def test_text_for_people(cluster: Cluster, web: float) -> None:
    ran = cluster.ok("cluster history", "web1")
    assert f"User: {getpass.getuser()}" in ran.out
    assert "  Reason: open for customers\n  Instance web1.example.com: changed\n" in ran.out
    assert "    tags: +prod\n" in ran.out
    assert ran.out.startswith("Change ")
    assert "Disk disk/0 of web1.example.com: added" in ran.out
    assert ran.err == ""


def test_filters_of_the_command(cluster: Cluster, web: float) -> None:
    every = history(cluster, "web1")
    job = every["changes"][0]["job"]
    assert {c["job"] for c in history(cluster, f"--job {job}")["changes"]} == {job}
    assert len(history(cluster, "--limit 1")["changes"]) == 1
    assert "There are older changes" in cluster.ok("cluster history --limit 1").err
    assert history(cluster, f"--until {web} web1")["changes"] == []
    assert names(history(cluster, "--since -1d web1")) == names(every)
    only = history(cluster, "--kind disk")["changes"]
    assert {o["kind"] for c in only for o in c["objects"]} == {"disk"}
    ran = cluster.ok("cluster history --since now")
    assert (ran.out, "No such change is recorded" in ran.err) == ("", True)


def test_the_difference_of_two_times(cluster: Cluster, web: float) -> None:
    found = json.loads(cluster.ok(f"cluster diff --format json {web} now").out)
    assert [(o["kind"], o["change"]) for o in found["objects"] if o["kind"] != "cluster"] == [
        ("instance", "added"),
        ("disk", "added"),
    ]
    ran = cluster.ok("cluster diff -1s now")
    assert ran.lines[0].startswith("From: ")
    middle = next(
        c["time"]
        for c in history(cluster, "web1")["changes"]
        if c["reason"] == "open for customers"
    )
    text = cluster.ok(f"cluster diff {middle - 0.0001:.6f} {middle + 0.0001:.6f}").out
    assert "Instance web1.example.com: changed (change " in text
    assert "  admin_state: down -> up\n" in text
    assert cluster.ok("cluster diff now now").lines[-1] == "No difference"


def test_no_secret_leaves_the_master(cluster: Cluster, web: float) -> None:
    written = b"".join(cluster.config())
    assert SECRET.encode() in written
    outputs = [
        cluster.ok(f"cluster {line}").out
        for line in (
            "history -v",
            "history -v web1",
            "history --format json",
            f"diff -v {web} now",
            f"diff --format json {web} now",
            "diff -1s now",
        )
    ]
    assert "osparams_private" in "".join(outputs)
    assert SECRET not in "".join(outputs)


def test_bad_input_is_refused_in_a_sentence(cluster: Cluster) -> None:
    for line, text in (
        ("history nobody", "'nobody' is not known, and no change of it is recorded since"),
        ("history --since yesterday", "'yesterday' is not a time"),
        ("history --until 2026-02-30", "'2026-02-30' is not a time"),
        ("history --job 0", "job must be a number above 0"),
        ("history --since now --until -1h", "is after"),
        ("diff 2026-13-01 now", "'2026-13-01' is not a time"),
        ("diff now -2h", "name the earlier time first"),
        ("diff 2001-01-01 now", "the history on this node begins at"),
    ):
        assert text in check_refused(cluster, line)
    for line in ("history --job x", "history --format xml", "history --kind tree", "diff --since"):
        assert cluster.gnt(f"cluster {line}").code == 2
    for line in ("history a b", "diff now", "diff"):
        assert "expects" in check_refused(cluster, line)
    with Client(cluster.paths().luxi_socket) as client:
        with pytest.raises(errors.OpPrereqError, match="has no filter 'name'"):
            client.call("QueryHistory", {"name": "x"})
        with pytest.raises(errors.OpPrereqError, match="t2 must be a time"):
            client.call("QueryConfigDiff", 5, "now")


def test_the_past_survives_removal_and_restart(cluster: Cluster, web: float) -> None:
    before = names(history(cluster, "web1"))
    cluster.ok("instance remove -f --shutdown-timeout 0", "web1.example.com")
    assert names(history(cluster, "web1")) == [*before, "instance-remove"]
    uuid = history(cluster, "web1")["changes"][0]["objects"][0]["uuid"]
    everything = history(cluster)
    cluster.kill_master()
    assert cluster.start_master().code == 0
    assert history(cluster)["changes"] == everything["changes"]
    pid = cluster.pid("ganeti-masterd")
    assert pid is not None
    stop(cluster, pid)
    assert cluster.config()[1] == b""  # everything went from the journal to the history
    (kept,) = (cluster.paths().data / "history").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert cluster.start_master().code == 0
    after = history(cluster)
    assert after["changes"] == everything["changes"]
    assert after["begins"]["serial"] == 1
    assert names(history(cluster, uuid)) == [*before, "instance-remove"]


def stop(cluster: Cluster, pid: int) -> None:
    """A clean stop of the master daemon."""
    import signal

    from ganeti.base import process

    os.kill(pid, signal.SIGTERM)
    process.wait_exit(pid, 30)
