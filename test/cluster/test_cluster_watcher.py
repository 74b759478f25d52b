"""The watcher on a real cluster: dead guests, daemons and disks come back."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_cluster import Cluster, Ran, run_program
from waiting import wait_for

from ganeti import constants
from ganeti.base import process, services
from ganeti.net import resolve
from ganeti.tools import confd_client
from ganeti.upkeep.memory import WELL_AFTER

pytestmark = pytest.mark.long

GUEST = "web1.example.com"
IMPATIENT = Path(__file__).with_name("impatient_watcher.py")


def watch(cluster: Cluster, *words: str, node: str = "node1") -> Ran:
    return cluster.run_module("ganeti.watcher.program", *words, node=node)


def daemon_util(cluster: Cluster, *words: str) -> Ran:
    return cluster.run_module("ganeti.bootstrap.daemon_util", *words)


def kill(cluster: Cluster, name: str, node: str = "node1") -> None:
    pid = cluster.pid(name, node)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 10)


def log(cluster: Cluster, name: str = "watcher.log") -> str:
    path = cluster.paths().log / name
    return path.read_text() if path.exists() else ""


def status(cluster: Cluster) -> str:
    [[found]] = cluster.cells("instance list -o status", GUEST)
    return found


@pytest.fixture(scope="module", autouse=True)
def guest(cluster: Cluster) -> None:
    assert cluster.add(GUEST).code == 0


@contextlib.contextmanager
def hook(cluster: Cluster, text: str, node: str = "node1") -> Iterator[None]:
    directory = cluster.paths(node).hooks / "watcher"
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "10-mine"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    yield
    script.unlink()


def test_a_quiet_cluster_gets_its_status_written_and_nothing_else(cluster: Cluster) -> None:
    assert watch(cluster).lines == []
    assert cluster.paths().instance_status.read_text() == f"{GUEST} running\n"
    assert "INSTANCE" not in "".join(cluster.ok("job list -o summary").lines[-1:])


def test_a_guest_that_died_runs_again(cluster: Cluster) -> None:
    cluster.ok("cluster watcher pause 1h")  # or it is started at once, see test_cluster_guest_ends
    next(cluster.paths("node2").fake_hypervisor.glob(f"{GUEST}*")).unlink()
    assert status(cluster) == "ERROR_down"
    cluster.ok("cluster watcher continue")
    assert watch(cluster).code == 0
    [job] = [row[0] for row in cluster.cells("job list -o id,summary") if "STARTUP" in row[1]]
    cluster.ok("job watch", job)
    assert status(cluster) == "running"
    [path] = cluster.paths().data.glob("watcher.*.data")
    memory = json.loads(path.read_text())
    memory["instance"][GUEST]["restart_when"] -= WELL_AFTER
    path.write_text(json.dumps(memory))
    assert watch(cluster).code == 0
    assert f"Instance {GUEST} runs again" in log(cluster)
    assert "gnt:watcher" in cluster.ok("job info", job).out


def test_instances_start_in_their_order_and_one_after_the_other(cluster: Cluster) -> None:
    """Three that are down on one node: dns before the others, and these one at a time."""
    names = [f"{name}.example.com" for name in ("mail", "shop", "dns")]
    for name in names:
        assert cluster.add(name).code == 0
    cluster.ok("instance add-tags", names[-1], "ganeti:order:1")
    cluster.ok("cluster watcher pause 1h")
    paths = cluster.paths("node2")
    script = paths.conf / "fake-hypervisor.json"
    script.write_text(json.dumps({"start": {"*": {"delay": 0.5}}}))
    for name in names:
        (paths.fake_hypervisor / name).unlink()
        wait_for(
            lambda name=name: f"example.com:{name}" in log(cluster, "node-daemon.log"),
            "its end was told",
        )
    cluster.ok("cluster watcher continue")
    assert watch(cluster, "--start-parallel", "1").code == 0
    assert watch(cluster, "--start-parallel", "1").code == 0
    fields = "id,summary,start_ts,end_ts"
    rows = [row for row in cluster.cells(f"job list -o {fields}") if "STARTUP" in row[1]][-3:]
    assert {row[1] for row in rows} == {f"INSTANCE_STARTUP({name})" for name in names}
    for row in rows:
        cluster.ok("job wait", row[0])
    done = sorted(cluster.cells(f"job list -o {fields}", *(row[0] for row in rows)), key=_begin)
    assert done[0][1] == "INSTANCE_STARTUP(dns.example.com)"
    for earlier, later in itertools.pairwise(done):
        assert json.loads(earlier[3]) <= json.loads(later[2])
    script.unlink()
    for name in names:
        cluster.ok("instance remove -f", name)


def _begin(row: list[str]) -> list[int]:
    return json.loads(row[2])


def test_daemons_that_died_are_started(cluster: Cluster) -> None:
    for name in (constants.NODED, constants.RAPI, constants.MASTERD):
        kill(cluster, name)
    assert watch(cluster).code == 0
    for name in (constants.NODED, constants.RAPI, constants.MASTERD):
        assert cluster.pid(name) is not None
    kill(cluster, constants.NODED, "node3")
    assert watch(cluster, node="node3").code == 11
    assert cluster.pid(constants.NODED, "node3") is not None
    assert cluster.pid(constants.MASTERD, "node3") is None


def test_one_that_hangs_is_killed_and_started(cluster: Cluster) -> None:
    pid = cluster.pid(constants.RAPI)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert run_program([str(IMPATIENT)], cluster.env()).code == 0
    assert cluster.pid(constants.RAPI) not in (None, pid)
    assert "ganeti-rapi does not answer" in log(cluster)


def test_hooks_of_the_administrator_run_on_each_node(cluster: Cluster) -> None:
    mark = cluster.directory / "mark"
    with hook(cluster, f'echo "$PATH" > {mark}', node="node3"):
        assert watch(cluster, node="node3").code == 11
    assert mark.read_text() == "/sbin:/bin:/usr/sbin:/usr/bin\n"
    with hook(cluster, "echo broken; exit 3"):
        failed = watch(cluster)
    assert failed.code == 1
    assert "task hooks failed: watcher/10-mine: broken" in failed.err


def test_a_pause_holds_on_all_nodes(cluster: Cluster) -> None:
    cluster.ok("cluster watcher pause 1h")
    kill(cluster, constants.RAPI)
    for node in ("node1", "node3"):
        assert watch(cluster, node=node).code == 0
    assert cluster.pid(constants.RAPI) is None
    cluster.ok("cluster watcher continue")
    assert watch(cluster, node="node3").code == 11
    assert watch(cluster).code == 0
    assert cluster.pid(constants.RAPI) is not None


def test_wrong_words(cluster: Cluster) -> None:
    assert watch(cluster, "--node-group", "nix").err == (
        "ganeti-watcher: node group 'nix' is not known\n"
    )
    assert watch(cluster, "--node-group", "default").code == 0
    assert watch(cluster, "--job-age", "soon").code == 2


def test_daemons_by_hand(cluster: Cluster) -> None:
    names = daemon_util(cluster, "list-start-daemons").lines
    assert names == [
        "ganeti-noded",
        "ganeti-confd",
        "ganeti-mond",
        "ganeti-metad",
        "ganeti-masterd",
        "ganeti-rapi",
    ]
    assert daemon_util(cluster, "list_stop_daemons").lines == names[::-1]
    assert daemon_util(cluster, "check", "ganeti-rapi").code == 0
    assert daemon_util(cluster, "stop", "ganeti-rapi").code == 0
    assert daemon_util(cluster, "check", "ganeti-rapi").code == 1
    assert daemon_util(cluster, "stop-all").code == 0
    assert [cluster.pid(name) for name in names] == [None] * len(names)
    assert daemon_util(cluster, "start-all").code == 0
    usual = [name for name in names if not services.ALL[name].optional]
    assert [name for name in names if cluster.pid(name) is not None] == usual
    assert daemon_util(cluster, "rotate-all-logs").code == 0
    assert daemon_util(cluster, "check-exitcode", "11").code == 0
    assert daemon_util(cluster, "use-systemctl").code == 1
    unknown = daemon_util(cluster, "start", "ganeti-x")
    assert unknown.code == 2
    assert "unknown daemon 'ganeti-x'; choose from ganeti-noded" in unknown.err


def test_options_of_daemons_come_from_the_defaults_file(cluster: Cluster) -> None:
    defaults = cluster.paths().under("/etc/default/ganeti")
    defaults.parent.mkdir(parents=True, exist_ok=True)
    try:
        defaults.write_text('# ours\nNODED_ARGS="-d"\nRAPI_ARGS="--nonsense"\n')
        assert daemon_util(cluster, "stop", "ganeti-noded").code == 0
        # As usual, and not by the command server, whose daemons all have the same command line.
        start = [sys.executable, "-m", "ganeti.bootstrap.daemon_util", "start", "ganeti-noded"]
        subprocess.run(start, env=cluster.env(), timeout=120, check=True)
        pid = cluster.pid(constants.NODED)
        with open(f"/proc/{pid}/cmdline") as stream:
            assert stream.read().split("\0")[-2] == "-d"
        assert daemon_util(cluster, "stop", "ganeti-rapi").code == 0
        refused = daemon_util(cluster, "start", "ganeti-rapi")
        assert refused.code == 1
        assert "--nonsense" in refused.err
        defaults.write_text('NODED_ARGS="-d\n')
        broken = daemon_util(cluster, "start", "ganeti-rapi")
        assert (broken.code, "line 1" in broken.err) == (0, False)
        defaults.write_text('RAPI_ARGS="-d\n')
        assert daemon_util(cluster, "stop", "ganeti-rapi").code == 0
        assert "line 1: No closing quotation" in daemon_util(cluster, "start", "ganeti-rapi").err
    finally:
        defaults.unlink()
    assert daemon_util(cluster, "start", "ganeti-rapi").code == 0


def test_an_optional_daemon_runs_where_its_options_are_set(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.pid(constants.CONFD) is None
    defaults = [cluster.paths(node).under("/etc/default/ganeti") for node in ("node1", "node3")]
    for path in defaults:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('CONFD_ARGS=""\nMOND_ARGS="-d"\n')
    cluster.ok("cluster modify --enabled-data-collectors diskstats=no")
    assert watch(cluster).code == 0
    assert watch(cluster, node="node3").code == 11
    running = [node for node in ("node1", "node2", "node3") if cluster.pid(constants.CONFD, node)]
    assert running == ["node1", "node3"]
    for name in ("GANETI_ROOTDIR", "GANETI_HOSTNAME"):
        monkeypatch.setenv(name, cluster.env()[name])

    def ask(*words: str) -> tuple[int, str, str]:
        code = confd_client.main(["--timeout", "5", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    assert ask("cluster-master") == (0, '"node1.example.com"\n', "")
    assert ask("node-role", "node3.example.com") == (0, "1\n", "")
    assert "there is no such thing" in ask("node-role", "node9")[2]
    assert "did you mean node-role" in ask("node-rol", "node9")[2]
    cluster.ok("cluster add-tags", "blue")
    tags = ("--addr", "node3.example.com", "config-value", "/cluster/tags")
    # The change counts when a majority has it, and node3 need not be part of that.
    wait_for(lambda: '"blue"' in ask(*tags)[1], "the tag at node3")
    code, out, _err = ask("--timeout", "0.3")
    assert code == 1
    assert [line.partition(": ")[2].split()[0] for line in out.splitlines()].count("version") == 2
    assert "no reply from" in out
    before = cluster.paths("node3").config_file
    cluster.ok("node modify -C no --auto-promote", "node3")
    assert not before.exists()
    wait_for(
        lambda: "has no configuration" in ask("--addr", "node3.example.com", "ping")[2],
        "the candidate that is none any more has nothing to answer",
    )
    cluster.ok("node modify -C yes", "node3")
    address = resolve.address("node1.example.com"), resolve.port(constants.MOND)
    link = http.client.HTTPConnection(*address, timeout=20)

    def list_collectors() -> list[str]:
        link.request("GET", "/1/list/collectors")
        return [row[0] for row in json.loads(link.getresponse().read())]

    wait_for(lambda: "diskstats" not in list_collectors(), "the cluster's settings count")
    assert {"cpu-avg-load", "lv"} <= set(list_collectors())
    link.close()
    for path, node in zip(defaults, ("node1", "node3")):
        path.unlink()
        for name in (constants.CONFD, constants.MOND):
            assert services.stop(name, cluster.paths(node))


def test_a_daemon_of_systemd_reports_that_it_answers(cluster: Cluster) -> None:
    for name, module in ((constants.RAPI, "rapi"), (constants.MASTERD, "master")):
        assert daemon_util(cluster, "stop", name).code == 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            address = f"\0{cluster.directory}-{module}"
            systemd.bind(address)
            systemd.settimeout(30)
            started = subprocess.Popen(
                [sys.executable, "-m", f"ganeti.{module}.daemon", "-f"],
                env={
                    **cluster.env(),
                    "NOTIFY_SOCKET": f"@{address[1:]}",
                    "WATCHDOG_USEC": "600000",
                },
                stderr=subprocess.DEVNULL,
            )
            assert [systemd.recv(100) for _ in range(3)] == [
                b"READY=1",
                b"WATCHDOG=1",
                b"WATCHDOG=1",
            ]
            started.terminate()
            assert started.wait(60) == 0
        assert daemon_util(cluster, "start", name).code == 0
