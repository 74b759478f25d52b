"""The engine under bad conditions: disks, files, clients, candidates."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from local_cluster import Cluster, tool
from needs import needs_root
from waiting import wait_for

from ganeti import constants
from ganeti.base.file_journal import FileJournal
from ganeti.luxi.client import Client

NEEDS_ROOT = needs_root("to mount a small disk")


def newest(cluster: Cluster) -> list[str]:
    return cluster.cells("job list -o id,status")[-1]


def test_a_damaged_job_file_is_moved_aside_and_the_rest_runs(cluster: Cluster) -> None:
    number = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
    cluster.ok("job wait", number)
    queue = cluster.paths().queue
    wait_for(lambda: not FileJournal(queue).read_pending(), "the files to follow the journal")
    cluster.kill_master()
    (queue / f"job-{number}").write_text('{"id": 1, "ops": [')
    assert cluster.start_master().code == 0
    # The daemon is ready before it has read its queue; the file is moved aside while it reads.
    wait_for((queue / f"job-{number}.corrupted").exists, "the damaged file to be moved aside")
    log = cluster.paths().log / "master-daemon.log"
    wait_for(lambda: f"job-{number}.corrupted" in log.read_text(), "the log to name it")
    cluster.ok("debug delay", "0.001")
    assert int(newest(cluster)[0]) > int(number)


def test_a_damaged_journal_refuses_the_start_and_changes_nothing(cluster: Cluster) -> None:
    for tag in ("one", "two", "three"):
        cluster.ok("cluster add-tags", tag)
    cluster.kill_master()
    path = cluster.paths().journal_file
    good = path.read_bytes()
    lines = good.splitlines(keepends=True)
    assert len(lines) >= 2
    broken = lines[0].replace(b"0", b"1", 1).replace(b"a", b"b", 1) + b"".join(lines[1:])
    path.write_bytes(broken)
    refused = cluster.start_master()
    assert refused.code == 2
    assert f"{path} is damaged at line 1" in refused.err
    assert path.read_bytes() == broken
    path.write_bytes(good)
    assert cluster.start_master().code == 0
    assert set(cluster.ok("cluster list-tags").lines) >= {"one", "two", "three"}


def test_an_edited_configuration_is_shown_and_starts_when_it_is_accepted(
    cluster: Cluster,
) -> None:
    assert tool("stop", cluster.directory).code == 0
    path = cluster.paths().config_file
    before = path.read_text()
    [size] = re.findall(r'"candidate_pool_size":([0-9]+)', before)
    path.write_text(before.replace(f'_pool_size":{size}', '_pool_size":5'))
    line = f"cluster/candidate_pool_size: {size} -> 5"
    refused = tool("start", cluster.directory)
    assert refused.code != 0
    assert line in refused.err
    assert "gnt-cluster accept-config" in refused.err
    assert line in cluster.ok("cluster accept-config --dry-run").out
    unasked = cluster.gnt("cluster accept-config")
    assert (unasked.code, unasked.lines) == (1, [line])
    assert cluster.start_master().code == 2
    accepted = cluster.ok("cluster accept-config --force")
    assert accepted.lines == [line]
    assert tool("start", cluster.directory).code == 0
    assert f"candidate_pool_size: {size}" not in cluster.ok("cluster info").out
    assert "the master daemon runs" in cluster.gnt("cluster accept-config -f").err
    # the copy of a candidate is as good as that of the master
    wait_for(lambda: cluster.gnt("cluster master-failover", node="node2").code == 0, "node2")
    wait_for(lambda: cluster.gnt("cluster master-failover").code == 0, "node1")
    cluster.ok("cluster verify")
    assert "nothing to accept" in cluster.gnt("cluster accept-config", node="node3").err


@contextmanager
def immutable(path: str) -> Iterator[None]:
    """Nobody can write to a file, or make files in a directory."""
    if subprocess.run(["chattr", "+i", path], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no immutable files")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


@contextmanager
def queue_on(cluster: Cluster, *mount: str) -> Iterator[Path]:
    """The queue of the master on a file system of its own."""
    cluster.kill_master()
    queue = cluster.paths().queue
    saved = cluster.directory / "saved-queue"
    subprocess.run(["cp", "-a", str(queue), str(saved)], check=True)
    if subprocess.run(["mount", *mount, str(queue)], check=False, capture_output=True).returncode:
        assert cluster.start_master().code == 0
        pytest.skip("this machine does not mount what the test needs")
    subprocess.run(["cp", "-a", f"{saved}/.", str(queue)], check=True)
    assert cluster.start_master().code == 0
    try:
        yield queue
    finally:
        cluster.kill_master()
        (queue / "filler").unlink(missing_ok=True)
        subprocess.run(["rm", "-rf", str(saved)], check=True)
        subprocess.run(["cp", "-a", str(queue), str(saved)], check=True)
        subprocess.run(["umount", str(queue)], check=True)
        subprocess.run(["cp", "-a", f"{saved}/.", str(queue)], check=True)
        assert cluster.start_master().code == 0


@pytest.fixture
def small_disk(cluster: Cluster) -> Iterator[Path]:
    """The queue of the master on a disk that is nearly full."""
    with queue_on(cluster, "-t", "tmpfs", "-o", "size=1m", "tmpfs") as queue:
        yield queue


@pytest.fixture
def real_disk(cluster: Cluster) -> Iterator[Path]:
    """The queue of the master where immutable files do not grow; on a tmpfs, open ones do."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as place,
        queue_on(cluster, "--bind", place) as queue,
    ):
        yield queue


def write_some(stream: IO[bytes]) -> int:
    """Write a page; 0 when the disk is full."""
    try:
        return stream.write(bytes(4096))
    except OSError:
        return 0


@pytest.mark.root
@NEEDS_ROOT
def test_a_full_disk(cluster: Cluster, small_disk: Path) -> None:
    before = newest(cluster)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        while write_some(stream):
            pass
    ran = cluster.gnt("debug delay", "0.001")
    assert ran.code == 1
    assert ran.err.startswith("Failure: nothing was changed: cannot write")
    assert f"{small_disk}/journal: No space left on device (0 KiB free, " in ran.err
    assert f" KiB needed; make room on {small_disk})" in ran.err
    assert newest(cluster) == before
    for line in ("queue drain", "queue undrain"):
        ran = cluster.gnt(f"cluster {line}")
        assert "Unhandled" not in ran.err
    log = cluster.paths().log / "master-daemon.log"
    assert "Traceback" not in log.read_text()
    filler.unlink()
    cluster.ok("debug delay", "0.001")
    assert int(newest(cluster)[0]) > int(before[0])


@pytest.mark.root
@NEEDS_ROOT
def test_a_queue_that_cannot_be_written(cluster: Cluster, real_disk: Path) -> None:
    before = newest(cluster)
    journal = str(real_disk / "journal")
    with immutable(journal):
        ran = cluster.gnt("debug delay", "0.001")
    assert ran.code == 1
    assert f"cannot write {journal}" in ran.err
    assert newest(cluster) == before
    cluster.ok("debug delay", "0.001")


@pytest.mark.root
@NEEDS_ROOT
def test_files_that_cannot_follow_their_journal(cluster: Cluster) -> None:
    """Nothing is lost; they follow when it is possible again."""
    queue = cluster.paths().queue
    with immutable(str(queue)):
        number = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
        cluster.ok("job wait", number)
        log = cluster.paths().log / "master-daemon.log"
        wait_for(lambda: "files do not follow their journal" in log.read_text(), "the complaint")
        assert not (queue / f"job-{number}").exists()
    wait_for((queue / f"job-{number}").exists, "the file to follow")


def test_a_thousand_clients_that_say_half_a_word(cluster: Cluster) -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    path = str(cluster.paths().luxi_socket)
    clients: list[socket.socket] = []
    try:
        for _ in range(1000):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(10)
            clients.append(client)
            client.connect(path)
            client.sendall(b'{"method": "Query')
        begin = time.monotonic()
        cluster.ok("job list")
        cluster.ok("debug delay", "0.001")
        assert time.monotonic() - begin < 10
    finally:
        for client in clients:
            client.close()
    cluster.ok("job list")


def test_queries_of_a_node_that_hangs_delay_no_others(cluster: Cluster) -> None:
    pid = cluster.pid(constants.NODED, "node2")
    assert pid
    os.kill(pid, signal.SIGSTOP)
    answers: list[list[list[object]]] = []

    def ask() -> None:
        with Client(cluster.paths().luxi_socket) as client:
            answers.append(client.query_nodes([], ["name", "mfree"]))

    asking = [threading.Thread(target=ask) for _ in range(40)]
    try:
        for thread in asking:
            thread.start()
        with Client(cluster.paths().luxi_socket, io_timeout=2.0) as client:
            for _ in range(20):
                assert client.query_nodes([], ["name"])
                client.submit_job([{"OP_ID": "OP_TAGS_GET", "kind": "cluster", "name": None}])
            assert not answers  # all of them still wait
    finally:
        os.kill(pid, signal.SIGCONT)
        for thread in asking:
            thread.join(60)
    assert len(answers) == 40


def test_a_candidate_that_hangs_delays_nobody(cluster: Cluster) -> None:
    pid = cluster.pid(constants.NODED, "node3")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        for number in range(5):
            cluster.ok("debug delay", "0.001")
            cluster.ok("cluster add-tags", f"while-hanging-{number}")
        assert time.monotonic() - begin < 15
    finally:
        os.kill(pid, signal.SIGCONT)


def test_without_a_majority_nothing_is_acknowledged(cluster: Cluster) -> None:
    before = newest(cluster)
    for node in ("node2", "node3"):
        pid = cluster.pid(constants.NODED, node)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "2 are needed" in cluster.gnt("debug delay", "0.001").err, "a refusal")
    assert newest(cluster) == before
    for node in ("node2", "node3"):
        assert tool("start-node", cluster.directory, f"{node}.example.com").code == 0
    wait_for(lambda: cluster.gnt("debug delay", "0.001").code == 0, "jobs to be taken again")


def test_candidates_that_cannot_write_are_named_with_the_cause(cluster: Cluster) -> None:
    journals = [cluster.paths(node).queue / "journal" for node in ("node2", "node3")]
    for number, journal in enumerate(journals):
        wait_for(
            lambda queue=journal.parent: not FileJournal(queue).read_pending(), "a still queue"
        )
        journal.unlink()
        journal.mkdir()
        told = cluster.gnt("debug delay", "0.001")
        assert told.code == number, "a majority is enough"
    assert f"{journals[1]}: Is a directory" in told.err
    assert "Remove the cause on node2.example.com, node3.example.com;" in told.err
    assert "recover-quorum" not in told.err
    journals[1].rmdir()
    wait_for(lambda: cluster.gnt("debug delay", "0.001").code == 0, "jobs to be taken again")
    verified = cluster.gnt("cluster verify --error-codes")
    assert "ECLUSTERFILECHECK:node:node2.example.com:it has no copy of the newest" in verified.out
    assert "node3" not in verified.out
    journals[0].rmdir()
    cluster.ok("cluster verify")


def have_same_content(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.read_bytes() == other.read_bytes()


def test_candidates_have_the_same_files_in_the_end(cluster: Cluster) -> None:
    cluster.ok("cluster add-tags", "last-change")
    number = cluster.ok("debug delay --submit", "0.001").err.split()[-1]
    cluster.ok("job wait", number)
    master = cluster.paths().queue / f"job-{number}"
    for node in ("node2", "node3"):
        where = cluster.paths(node)
        copy = where.queue / master.name
        wait_for(
            lambda copy=copy: have_same_content(master, copy),
            f"the job on {node}",
        )
        text = where.config_file.read_text() + where.journal_file.read_text()
        assert "last-change" in text


def test_a_running_job_is_canceled(cluster: Cluster) -> None:
    number = cluster.ok("debug delay --submit", "60").err.split()[-1]
    wait_for(lambda: cluster.cells("job list -o status", number) == [["running"]], "the job")
    assert "will be canceled" in cluster.ok("job cancel", number).out
    ended = cluster.gnt("job wait", number)
    assert ended.code == 1
    assert cluster.cells("job list -o status", number) == [["canceled"]]
    told = cluster.gnt("job cancel", number)
    assert told.code == 1
    assert "already finished" in told.out


def test_a_rejected_job_names_the_rule(cluster: Cluster) -> None:
    rule = cluster.ok(
        "filter add --action REJECT --reason frozen --predicates",
        '[["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]]',
    ).out.strip()
    try:
        ran = cluster.gnt("debug delay", "0.001")
        assert ran.code == 1
        assert "frozen" in ran.err
        number = newest(cluster)[0]
        assert newest(cluster)[1] == "canceled"
        assert "frozen" in cluster.ok("job info", number).out
    finally:
        cluster.ok("filter delete", rule)
    cluster.ok("debug delay", "0.001")
