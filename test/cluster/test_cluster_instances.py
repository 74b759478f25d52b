"""From nothing to an instance and back, with real daemons and real commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from local_cluster import Cluster
from waiting import wait_for


def test_life_of_an_instance(cluster: Cluster) -> None:
    added = cluster.add("web1.example.com")
    assert added.code == 0, added.err
    assert "creating instance disks" in added.out
    rows = cluster.cells("instance list -o name,pnode,status,oper_state,os,disk.sizes")
    assert rows == [["web1.example.com", "node2.example.com", "running", "Y", "noop", "8"]]

    cluster.ok("instance shutdown", "web1")
    assert cluster.cells("instance list -o status") == [["ADMIN_down"]]
    cluster.ok("instance startup", "web1")
    cluster.ok("instance reboot", "web1")
    assert cluster.cells("instance list -o status") == [["running"]]

    info = cluster.ok("instance info", "web1.example.com").out
    assert "web1.example.com" in info
    assert "node2.example.com" in info

    cluster.ok("instance shutdown", "web1")
    cluster.ok("instance reinstall -f", "web1")
    cluster.ok("instance rename", "web1", "web2.example.com")
    assert cluster.cells("instance list -o name,status") == [["web2.example.com", "ADMIN_down"]]
    assert any("web2" in path for path in cluster.disks()) or cluster.disks()

    cluster.ok("instance remove -f", "web2")
    assert cluster.cells("instance list -o name") == []
    assert cluster.disks() == []
    assert cluster.ok("cluster verify").code == 0


def test_dry_run_changes_nothing(cluster: Cluster) -> None:
    before = cluster.config()
    ran = cluster.add("dry.example.com", "--dry-run")
    assert ran.code == 0, ran.err
    assert cluster.config() == before
    assert cluster.disks() == []


def test_submit_prints_the_job_and_returns(cluster: Cluster) -> None:
    ran = cluster.add("later.example.com", "--submit")
    assert ran.code == 0
    number = ran.err.split()[-1]
    watched = cluster.ok("job watch", number)
    assert "starting instance" in watched.out
    assert cluster.cells("job list -o status", number) == [["success"]]
    printed = cluster.ok("instance shutdown --print-jobid", "later.example.com")
    assert printed.lines[0].isdigit()
    cluster.ok("instance remove -f", "later.example.com")


def test_submitter_is_recorded(cluster: Cluster) -> None:
    cluster.ok("debug delay", "0.001")
    newest = max(cluster.paths().queue.glob("job-*"), key=lambda path: int(path.name[4:]))
    job = json.loads(newest.read_text())
    assert job["submitter"]["uid"] == os.getuid()


def test_ctrl_c_detaches_and_the_job_goes_on(cluster: Cluster) -> None:
    process = subprocess.Popen(
        cluster.argv("debug", "delay", "60"),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background has it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

    def running() -> list[list[str]]:
        rows = cluster.cells("job list --running -o id,summary")
        return [row for row in rows if row[1].startswith("TEST_DELAY")]

    wait_for(running, "the job to run")
    number = running()[0][0]
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"gnt-job watch {number}" in err
    assert cluster.cells("job list -o status", number) == [["running"]]
    cluster.ok("job cancel", number)


def test_many_instances_at_once(cluster: Cluster) -> None:
    names = [f"many{n}.example.com" for n in range(6)]
    children = [
        subprocess.Popen(
            cluster.argv(
                "instance",
                "add",
                "-n",
                f"node{n % 3 + 1}",
                "-o",
                "noop",
                "-t",
                "file",
                "--disk",
                "0:size=8M",
                "--no-nics",
                name,
            ),
            env=cluster.env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for n, name in enumerate(names)
    ]
    for child in children:
        _out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
    assert [row[0] for row in cluster.cells("instance list -o name")] == names
    cluster.ok("instance shutdown --force-multiple --all")
    assert {row[0] for row in cluster.cells("instance list -o status")} == {"ADMIN_down"}
    for name in names:
        cluster.ok("instance remove -f", name)


def test_command_and_copyfile_reach_the_nodes(cluster: Cluster) -> None:
    target = cluster.directory / "copied"
    target.write_text("content\n")
    target.chmod(0o640)
    cluster.ok("cluster copyfile", str(target))
    assert target.read_text() == "content\n"
    assert target.stat().st_mode & 0o777 == 0o640
    ran = cluster.ok("cluster command", "echo", "$GANETI_HOSTNAME")
    for name in cluster.names:
        assert f"node: {name}\n{name}\n" in ran.out
    only = cluster.ok("cluster command -n node2 -M", "echo hello")
    assert "node2.example.com: hello" in only.out
    assert "node1" not in only.out
