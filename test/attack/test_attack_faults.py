"""Processes that are killed or stopped, clocks, logs, full disks, readers of events."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arena import PATIENCE, WEB1, Arena, crowd
from local_cluster import tool
from rapi_daemon import basic
from waiting import wait_for

from ganeti import constants, errors

LOGS = ("master-daemon.log", "node-daemon.log", "rapi-daemon.log")
DELAY = {"OP_ID": "OP_TEST_DELAY", "duration": 0.001}


@pytest.mark.parametrize("number", [1, 2])
def test_kill_9_of_the_master_under_load_round(arena: Arena, number: int) -> None:
    """Every job id and every tag that was acknowledged is there afterwards."""
    jobs: list[int] = []
    tags: list[str] = []
    stop = threading.Event()

    def submit() -> None:
        while not stop.is_set():
            with contextlib.suppress(errors.GanetiError, OSError), arena.luxi() as client:
                while not stop.is_set():
                    jobs.append(client.submit_job([DELAY]))

    def tag(who: int) -> None:
        for count in range(1000):
            if stop.is_set():
                return
            name = f"round{number}-{who}-{count}"
            if arena.cluster.gnt("cluster add-tags", name).code == 0:
                tags.append(name)

    threads = [threading.Thread(target=submit) for _ in range(2)]
    threads += [threading.Thread(target=tag, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            before = (len(jobs), len(tags))
            wait_for(
                lambda before=before: len(jobs) > before[0] + 20 and len(tags) > before[1] + 2,
                "acknowledged changes",
                timeout=60,
            )
            arena.cluster.kill_master()
            arena.restart()
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    known = {row[0] for row in arena.cluster.cells("job list -o id")}
    assert {str(job) for job in jobs} <= known
    assert set(tags) <= set(arena.cluster.ok("cluster list-tags").lines)
    assert arena.cluster.gnt("cluster verify").code == 0


def test_kill_9_of_a_node_daemon_under_load(arena: Arena) -> None:
    adding = threading.Thread(
        target=lambda: [arena.cluster.add(f"k{n}.example.com", node="node2") for n in range(3)]
    )
    adding.start()
    pid = arena.cluster.pid(constants.NODED, "node2")
    assert pid
    os.kill(pid, signal.SIGKILL)
    adding.join()
    assert tool("kill-node", arena.cluster.directory, "node2.example.com").code == 0
    assert tool("start-node", arena.cluster.directory, "node2.example.com").code == 0
    for (name,) in arena.cluster.cells("instance list -o name"):
        if name.startswith("k"):
            arena.cluster.ok("instance remove -f --ignore-failures", name)
    arena.cluster.ok("instance startup --force", WEB1)
    arena.check()


def test_node_daemon_that_is_stopped(arena: Arena) -> None:
    """What does not concern the node continues as ever."""
    number = arena.cluster.ok("debug delay --submit", "0.001").err.split()[-1]
    copy = arena.cluster.paths("node2").queue / f"job-{number}"
    wait_for(copy.exists, "node2 to have replicas again")  # it was killed before
    pid = arena.cluster.pid(constants.NODED, "node3")
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        with arena.luxi() as client:
            assert client.query_nodes([], ["name"])
            client.submit_job([DELAY])
        assert arena.ask("GET", "/2/nodes").status == 200
        assert time.monotonic() - begun < PATIENCE
        added = arena.cluster.add("quick.example.com", node="node2")
        assert added.code == 0, added.err
    finally:
        os.kill(pid, signal.SIGCONT)
    arena.cluster.ok("instance remove -f", "quick.example.com")
    arena.check()


def test_command_that_is_killed(arena: Arena) -> None:
    """Its job continues; nothing is left of the client."""
    with arena.check_served():
        for _ in range(3):
            command = subprocess.Popen(
                arena.cluster.argv("gnt-debug", "delay", "1"),
                env=arena.cluster.env(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            before = len(arena.cluster.cells("job list -o id"))
            wait_for(lambda b=before: len(arena.cluster.cells("job list -o id")) >= b, "the job")
            command.kill()
            command.communicate()
        number = arena.cluster.cells("job list -o id")[-1][0]
        assert arena.cluster.gnt("job wait", number).code == 0


def test_foreign_pid_file(arena: Arena) -> None:
    """A pid file that names another process makes nobody kill it."""
    cluster = arena.cluster
    victim = subprocess.Popen(["sleep", "600"])
    try:
        cluster.kill_master()
        path = cluster.paths().pid_file(constants.MASTERD)
        path.write_text(f"{victim.pid}\n")
        arena.restart()
        cluster.ok("cluster list-tags")
        assert victim.poll() is None
        assert cluster.pid(constants.MASTERD) != victim.pid
        cluster.kill_master()
        path.write_text(f"{victim.pid}\n")
        assert tool("kill-node", cluster.directory, "node1.example.com").code == 0
        assert victim.poll() is None
        assert tool("start-node", cluster.directory, "node1.example.com").code == 0
        arena.check()
    finally:
        victim.kill()
        victim.wait()


def test_log_rotation_while_busy(arena: Arena) -> None:
    """After rename and SIGHUP the daemons write to new files and keep no old one open."""
    stop = threading.Event()

    def busy() -> None:
        with arena.luxi() as client:
            while not stop.is_set():
                client.submit_job([DELAY])

    load = threading.Thread(target=busy)
    load.start()
    logs = arena.cluster.paths().log
    try:
        for number in range(3):
            for name in LOGS:
                (logs / name).rename(logs / f"{name}.{number}")
            for pid in arena.pids().values():
                os.kill(pid, signal.SIGHUP)
            wait_for(lambda: all((logs / name).exists() for name in LOGS), "new logs")
    finally:
        stop.set()
        load.join()
    arena.check()

    def list_deleted_files(pid: int) -> list[str]:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        return [link for link in links if link[-2:] in (".0", ".1", ".2") and ".log" in link]

    for pid in arena.pids().values():
        wait_for(lambda pid=pid: not list_deleted_files(pid), "old logs are closed")


@contextmanager
def small_data(arena: Arena) -> Iterator[Path]:
    """The master's data on a file system of its own."""
    cluster = arena.cluster
    if os.getuid() != 0:
        pytest.skip("needs root to mount a small disk")
    cluster.kill_master()
    data, kept = cluster.paths().data, cluster.directory / "kept"
    subprocess.run(["cp", "-a", str(data), str(kept)], check=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(data)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        arena.restart()
        pytest.skip("this machine mounts no tmpfs")
    subprocess.run(["cp", "-a", f"{kept}/.", str(data)], check=True)
    arena.restart()
    try:
        yield data
    finally:
        cluster.kill_master()
        (data / "filler").unlink(missing_ok=True)
        subprocess.run(["rm", "-rf", str(kept)], check=True)
        subprocess.run(["cp", "-a", str(data), str(kept)], check=True)
        subprocess.run(["umount", str(data)], check=True)
        subprocess.run(["cp", "-a", f"{kept}/.", str(data)], check=True)
        arena.restart()


@pytest.mark.root
def test_full_disk_of_the_master(arena: Arena) -> None:
    """Changes are refused with the cause, queries go on, what was acknowledged stays."""
    cluster = arena.cluster
    with small_data(arena) as data:
        cluster.ok("cluster add-tags", "kept")
        with (data / "filler").open("wb", buffering=0) as stream, contextlib.suppress(OSError):
            while stream.write(bytes(4096)):
                pass
        for line in (
            ("cluster add-tags", "lost"),
            ("instance add -n node2 -o noop -t diskless --no-nics", "full.example.com"),
        ):
            ran = cluster.gnt(*line)
            assert ran.code != 0
            assert "No space left on device" in ran.err
            assert "Unhandled" not in ran.err
            assert "internal error" not in ran.err
            assert "Corrupt" not in ran.err
        assert cluster.ok("instance list").lines
        (data / "filler").unlink()
        cluster.ok("cluster add-tags", "again")
        cluster.kill_master()
        arena.restart()
        assert {"kept", "again"} <= set(cluster.ok("cluster list-tags").lines)


def test_clock_of_the_master_jumps(arena: Arena) -> None:
    # Not by the program faketime: it waits until the daemon has ended.
    found = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if found is None:
        pytest.skip("libfaketime is not installed, so the clock of one process cannot be moved")
    cluster = arena.cluster
    # 400 days ago no certificate of the nodes was valid, so nobody votes.
    for offset, options in (("+400d", []), ("-400d", ["--no-voting", "--yes-do-it"])):
        cluster.kill_master()
        fake = {"LD_PRELOAD": str(found), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        started = subprocess.run(
            [sys.executable, "-m", "ganeti.master.daemon", *options],
            env=cluster.env() | fake,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert started.returncode == 0, started.stderr
        cluster.ok("debug delay", "0.001")
    cluster.kill_master()
    arena.restart()
    arena.check()


# events


def test_readers_of_events_that_do_not_read(arena: Arena) -> None:
    """Others get theirs in time."""
    who = basic(arena.rapi.user, arena.rapi.password)
    head = f"GET /2/events HTTP/1.1\r\nHost: x\r\nAuthorization: {who}\r\n\r\n"
    dial = lambda: arena.rapi.dial(arena.rapi.fresh_address())  # noqa: E731
    with arena.check_served(), crowd(dial, 50, say=head.encode()):
        with arena.luxi() as client:
            client.submit_many_jobs([[DELAY]] * 500)
        arena.check()


def memory(pid: int) -> int:
    """Resident MiB."""
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) >> 10


def test_ring_of_events_overflows(arena: Arena) -> None:
    """A reader that comes back too late is told so; the daemon's memory does not grow with it."""
    with arena.luxi(io_timeout=60.0) as client:
        first = client.wait_for_events(None, 0)["last"]
        pid = arena.pids()[constants.MASTERD]
        before = memory(pid)
        for _ in range(4):
            client.submit_many_jobs([[DELAY]] * 1000)
        last = client.submit_job([DELAY])
        wait_for(lambda: arena.job(last) == "success", "the jobs end", timeout=120, pause=0.5)
        assert memory(pid) - before < 200
        assert client.wait_for_events(first, 1)["lost"]
        client.auto_archive_jobs(-1, 60)
    arena.check()
