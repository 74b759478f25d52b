"""Power is lost at every step of making a cluster and of adding a node.

A step is an operation on a file, or the start or end of a daemon. Afterwards the same command
works, or its one line of error names the command that does.

``CRASH_POINTS`` says at how many steps of each: a number, or ``all`` for a hundred, as most of them
write small files in the same way.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import command_server
import pytest
from crash_run import CHECKPOINT_AFTER
from disk_faults import Point, ways
from load import FINAL
from master_process import MasterProcess

sys.path.append(str(Path(__file__).parents[1] / "cluster"))

from local_cluster import REPOSITORY, Cluster, Ran, copy_cluster, run_program

from ganeti import constants, paths
from ganeti.base import process, services

pytestmark = pytest.mark.long

SAMPLE = 2
MOST = 100
FAULTY = Path(__file__).parent / "faulty_program.py"
MASTER, NODE = "node1.example.com", "node2.example.com"
INIT = (
    *("gnt-cluster", "init", "--no-ssh-init", "--no-etc-hosts", "--master-netdev", "lo"),
    *("--enabled-hypervisors", "fake", "--enabled-disk-templates", "file,diskless"),
    "cluster.example.com",
)
ADD = ["gnt-node", "add", "--no-ssh-key-check", NODE]


def choose(points: list[Point]) -> list[Point]:
    asked = os.environ.get("CRASH_POINTS", "")
    count = MOST if asked == "all" else int(asked or SAMPLE)
    return random.Random(4).sample(points, min(count, len(points)))


def list_points(labels: list[str], ends: Callable[[str], tuple[str, ...]] = ways) -> list[Point]:
    """All points of a run."""
    counts: Counter[str] = Counter()
    found = []
    for label in labels:
        counts[label] += 1
        found += [Point(label, counts[label], way) for way in ends(label)]
    return found


def lines(report: Path, kind: str) -> list[str]:
    text = report.read_text() if report.exists() else ""
    return [line.removeprefix(f"{kind} ") for line in text.splitlines() if line.startswith(kind)]


def doctor(env: dict[str, str]) -> Ran:
    return run_program(["ganeti.tools.doctor", "--quiet"], env)


def kill_daemons(where: paths.Paths) -> None:
    """As a power cut does."""
    for name in reversed(services.ALL):
        pid = services.daemon.running_pid(where.pid_file(name))
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            process.wait_exit(pid, 10)


# gnt-cluster init


class Server:
    """A server that is to become a cluster."""

    def __init__(self, root: Path, number: int) -> None:
        self.where = paths.Paths(root)
        self.report = root / "report"
        self.where.conf.parent.mkdir(parents=True)
        network = f"127.91.{number}"
        self.where.hosts.write_text(f"{network}.1 {MASTER}\n{network}.254 cluster.example.com\n")
        self.env = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "GANETI_ROOTDIR": str(root),
            "GANETI_HOSTNAME": MASTER,
        }

    def init(self, point: Point | None) -> Ran:
        plan = json.dumps(point and [point.label, point.number, point.way])
        return run_program([str(FAULTY), str(self.report), plan, *INIT], self.env)

    def gnt(self, *words: str) -> Ran:
        return run_program(list(words), self.env)

    def end(self) -> None:
        for name in reversed(services.ALL):
            services.stop(name, self.where)


def init_points(directory: Path) -> list[Point]:
    server = Server(directory, 0)
    try:
        assert server.init(None).code == 0
    finally:
        server.end()
    return list_points(lines(server.report, "op"))


@pytest.mark.timeout(3600)
def test_a_cluster_whose_init_lost_power(tmp_path: Path) -> None:
    points = init_points(tmp_path / "all")
    assert len(points) > 100
    hit = 0
    for number, point in enumerate(choose(points), 1):
        server = Server(tmp_path / str(number), number % 250)
        try:
            server.init(point)
            hit += lines(server.report, "killed") == [str(point)]
            kill_daemons(server.where)
            assert doctor(server.env).code in (0, 1)
            again = server.gnt(*INIT)
            if again.code:
                assert len(again.err.splitlines()) == 1, (point, again.err)
                assert "to start its daemons: ganeti-daemon-util start-all" in again.err, point
                util = ["ganeti.bootstrap.daemon_util", "start-all"]
                assert run_program(util, server.env).code == 0, point
            assert server.gnt("gnt-cluster", "verify").code == 0, point
            well = doctor(server.env)
            assert well.code == 0, (point, well.out)
            assert not list(server.where.data.glob(".*")), point
        finally:
            server.end()
    assert hit * 2 >= len(choose(points))


def test_two_inits_at_the_same_time_make_one_cluster(tmp_path: Path) -> None:
    server = Server(tmp_path, 251)
    try:
        with ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda _: server.gnt(*INIT), range(2)))
        assert sorted(each.code for each in both) == [0, 1]
        (refusal,) = [each.err for each in both if each.code]
        assert re.search(r"another gnt-cluster init is at work|belongs to a cluster", refusal)
        assert server.gnt("gnt-cluster", "verify").code == 0
    finally:
        server.end()


# gnt-node add


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster of one node, and a server beside it."""
    with copy_cluster(2) as made:
        leave(made)
        yield made


def leave(cluster: Cluster) -> None:
    """Make node2 a server that was never in a cluster."""
    cluster.ok("node remove", NODE)
    where = cluster.paths("node2")
    for name in reversed(services.ALL):
        services.stop(name, where)
    subprocess.run(["rm", "-rf", str(where.data), str(where.run), str(where.log)], check=True)


def add_again(cluster: Cluster, point: Point) -> None:
    """The same command works, or says which one does; and then all is well."""
    again = run_program(ADD, cluster.env())
    if again.code:
        assert len(again.err.splitlines()) == 1, (point, again.err)
        assert "--readd" in again.err, (point, again.err)
        cluster.ok("node add --readd --no-ssh-key-check", NODE)
    verified = cluster.gnt("cluster verify")
    assert (verified.code, verified.err) == (0, ""), (point, verified.out)
    well = doctor(cluster.env("node2"))
    assert well.code == 0, (point, well.out)


@pytest.mark.timeout(3600)
def test_a_server_that_lost_power_while_it_was_set_up(cluster: Cluster, tmp_path: Path) -> None:
    report, plan, shell = tmp_path / "report", tmp_path / "plan", tmp_path / "shell"
    program = shlex.join([command_server.find_shared().python, str(FAULTY), str(report)])
    env = {key: cluster.env("node2")[key] for key in ("GANETI_ROOTDIR", "GANETI_HOSTNAME")}
    exports = "\n".join(f"export {key}={shlex.quote(value)}" for key, value in env.items())
    shell.write_text(f'#!/bin/sh\n{exports}\nexec {program} "$(cat {plan})" $2\n')
    shell.chmod(0o755)

    def add(point: Point | None) -> Ran:
        plan.write_text(json.dumps(point and [point.label, point.number, point.way]))
        report.unlink(missing_ok=True)
        return run_program(ADD, {**cluster.env(), "GANETI_REMOTE_SHELL": str(shell)})

    assert add(None).code == 0
    points = list_points(lines(report, "op"))
    assert len(points) > 100
    hit = 0
    for point in choose(points):
        leave(cluster)
        first = add(point)
        assert len(first.err.splitlines()) <= 1, (point, first.err)
        if lines(report, "killed") == [str(point)]:
            hit += 1
            assert first.code == constants.EXIT_NODESETUP_ERROR, point
        kill_daemons(cluster.paths("node2"))
        assert doctor(cluster.env("node2")).code in (0, 1)
        add_again(cluster, point)
    assert hit * 2 >= len(choose(points))


@pytest.mark.timeout(3600)
def test_the_master_loses_power_while_it_adds_a_node(cluster: Cluster, tmp_path: Path) -> None:
    where = cluster.paths()
    services.stop(constants.MASTERD, where)
    master = MasterProcess(
        cluster.env(), tmp_path / "runs", tmp_path / "master.log", CHECKPOINT_AFTER
    )

    def add() -> None:
        """Add the node with a command on the master's server: it dies with the master."""
        argv = [command_server.find_shared().python, "-m", "ganeti.cli", *ADD]
        with subprocess.Popen(argv, env=cluster.env(), stderr=subprocess.PIPE) as command:
            while command.poll() is None:
                if master.died.wait(0.05):
                    command.kill()
            assert command.stderr is not None
            assert b"Traceback" not in command.stderr.read()

    try:
        assert master.start(None, trace=True, calls=True)
        before = len(master.labels)
        add()
        steps = re.compile(r"serve: (call |(write|fsync|rename) .*(journal|ssconf_\w+|data)$)")
        points = [
            point
            for point in list_points(master.labels, lambda _label: ("before", "after"))
            if steps.match(point.label)
        ]
        early = Counter(master.labels[:before])
        points = [point for point in points if point.number > early[point.label]]
        assert len(points) >= 10
        hit = 0
        for point in choose(points):
            leave(cluster)
            master.end(signal.SIGTERM)
            assert master.start(point, trace=False, calls=True)
            add()
            master.end(signal.SIGKILL)
            hit += master.killed_at == str(point)
            started = master.start(None, trace=False, calls=True)
            assert started, (point, (tmp_path / "master.log").read_text()[-2000:])
            for job, status in cluster.cells("job list -o id,status"):
                if status not in FINAL:
                    cluster.gnt("job wait", job)
            add_again(cluster, point)
        assert hit * 2 >= len(choose(points))
    finally:
        master.close()
