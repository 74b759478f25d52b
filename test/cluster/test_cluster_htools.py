"""htools against a cluster: every source of its state, plans carried out, Debian's programs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import htools_run as htools
import pytest
from local_cluster import Cluster
from rapi_daemon import RapiDaemon
from test_cluster_moves import script

NAMES = [f"web{number}" for number in range(8)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes; all instances run on the first two."""
    made = Cluster(tmp_path_factory.mktemp("htools") / "c", 4)
    try:
        made.ok("cluster modify --enabled-disk-templates file,sharedfile,diskless")
        for number, name in enumerate(NAMES):
            made.ok(
                f"instance add -n node{1 + number % 2} -o noop -t sharedfile --disk 0:size=8M"
                " --no-nics",
                f"{name}.example.com",
            )
        yield made
    finally:
        made.destroy()


@pytest.fixture
def uneven(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with its instances where they were made."""
    yield cluster
    for node in ("node1", "node2", "node3", "node4"):
        script(cluster, node)
    now = dict(htools.places(cluster))
    for number, name in enumerate(NAMES):
        home = f"node{1 + number % 2}"
        if now[name] != home:
            cluster.ok(f"instance migrate -f -n {home}", f"{name}.example.com")


@pytest.fixture
def remote(cluster: Cluster) -> RapiDaemon:
    return RapiDaemon(cluster)


def secret(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "credentials"
    path.write_text(f"{text}\n")
    path.chmod(mode)
    return str(path)


def test_every_source_gives_the_same_plan(
    uneven: Cluster, remote: RapiDaemon, tmp_path: Path
) -> None:
    trust = ["--ca-file", remote.env["RAPI_CA"]]
    trust += ["--credentials", secret(tmp_path, f"{remote.user}:{remote.password}")]
    address = f"{remote.host}:{remote.port}"
    for words in (["-L"], [address, *trust]):
        scanned = htools.run(uneven, "hscan", "-d", str(tmp_path), *words)
        assert scanned.code == 0, scanned.err
    asked = uneven.ok(
        "debug iallocator --dir in --mode allocate --disks 8M --memory 64 -t sharedfile -o noop",
        "new.example.com",
    )
    request = tmp_path / "request.json"
    request.write_text(asked.out)
    found = [
        htools.run(uneven, "hbal", *words)
        for words in (
            ["-L"],
            ["-m", address, *trust],
            ["-t", str(tmp_path / "LOCAL.data")],
            ["-t", str(tmp_path / f"{address}.data")],
            ["-I", str(request)],
        )
    ]
    for ran in found:
        assert ran.code == 0, ran.err
        assert len(htools.steps(ran)) == 4
        assert score(ran.out) == pytest.approx(score(found[0].out), abs=1e-3)


def test_the_remote_api_must_prove_who_it_is(
    cluster: Cluster, remote: RapiDaemon, tmp_path: Path
) -> None:
    address = f"{remote.host}:{remote.port}"
    good = secret(tmp_path, f"{remote.user}:{remote.password}")
    unknown = htools.run(cluster, "hinfo", "-m", address, "--credentials", good)
    assert unknown.code == 1
    assert "give its authority with --ca-file FILE" in unknown.err
    other = str(cluster.paths("node1").root / "other.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    subprocess.run(
        [*command.split(), "-subj", "/CN=other", "-keyout", "/dev/null", "-out", other],
        check=True,
        capture_output=True,
    )
    wrong = htools.run(cluster, "hinfo", "-m", address, "--credentials", good, "--ca-file", other)
    assert wrong.code == 1
    assert "certificate" in wrong.err
    careless = htools.run(cluster, "hinfo", "-m", address, "--credentials", good, "--insecure")
    assert careless.code == 0
    assert "Cluster score:" in careless.out


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("admin:wrong", 0o600, "HTTP 401: User name, password or token is wrong"),
        ("admin:wrong", 0o644, "others can read the password; run: chmod 600"),
        ("admin", 0o600, "must be USER:PASSWORD"),
    ],
)
def test_wrong_credentials(
    cluster: Cluster, remote: RapiDaemon, tmp_path: Path, text: str, mode: int, message: str
) -> None:
    ran = htools.run(
        cluster,
        "hbal",
        *("-m", f"{remote.host}:{remote.port}", "--ca-file", remote.env["RAPI_CA"]),
        *("--credentials", secret(tmp_path, text, mode)),
    )
    assert ran.code == 1
    assert message in ran.err


def test_a_remote_api_that_is_not_there(cluster: Cluster, tmp_path: Path) -> None:
    ran = htools.run(cluster, "hbal", "-m", "127.0.0.1:1")
    assert ran.code == 1
    assert "connection refused" in ran.err
    ran = htools.run(cluster, "hbal", "-m", "x", "--credentials", str(tmp_path / "no"))
    assert f"{tmp_path / 'no'}: No such file or directory" in ran.err


def test_a_plan_is_carried_out_in_sets(uneven: Cluster) -> None:
    before = dict(htools.places(uneven))
    ran = htools.run(uneven, "hbal", "-L", "-X", "-C", "--reason", "spring cleaning")
    assert ran.code == 0, ran.err + ran.out
    assert ran.lines[-1] == "All jobs completed successfully."
    sizes = [int(n) for n in re.findall(r"^ *echo jobset \d+, (\d+) jobs$", ran.out, re.MULTILINE)]
    batches = [line.partition("IDs ")[2].split(", ") for line in ran.lines if "Got job" in line]
    assert [len(batch) for batch in batches] == sizes
    assert max(sizes) > 1, "no two moves ran side by side"
    after = dict(htools.places(uneven))
    assert sum(before[name] != after[name] for name in before) == len(htools.steps(ran))
    info = uneven.ok("job info", batches[0][0]).out
    assert "'spring cleaning'" in info
    assert "OP_INSTANCE_MIGRATE" in info
    again = htools.run(uneven, "hbal", "-L", "-X")
    assert again.code == 0
    assert htools.steps(again) == []


@contextlib.contextmanager
def first_set_running(cluster: Cluster) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``hbal -X`` while the slow moves of its first set run, and what it has printed."""
    for node in ("node1", "node2"):
        script(cluster, node, migrate={"*": {"delay": 3}})
    with subprocess.Popen(
        htools.argv("hbal", "-L", "-X"),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        head = ""
        try:
            while "Got job IDs" not in head:
                line = program.stdout.readline()
                assert line, head
                head += line
            yield program, head
        finally:
            program.kill()


def test_sigterm_ends_a_plan_after_the_current_set(uneven: Cluster) -> None:
    with first_set_running(uneven) as (program, head):
        os.kill(program.pid, signal.SIGTERM)
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert "Stopping after the jobs that run now." in err
    assert re.search(r"Stopped before set 2 of \d+\.", out), out
    assert "Got job IDs" not in out
    ids = head.rpartition("IDs ")[2].strip().split(", ")
    assert uneven.cells("job list -o id,status", *ids) == [[job, "success"] for job in ids]


def test_a_plan_that_the_cluster_has_outrun_ends(uneven: Cluster) -> None:
    with first_set_running(uneven) as (program, head):
        # Somebody moves an instance of a later set while the first set runs.
        moves = [line.split() for line in head.splitlines() if " a=" in line]
        last, target = moves[-1][1], moves[-1][4]
        away = "node3" if target == "node4" else "node4"
        uneven.ok(f"instance failover -f -n {away}", f"{last}.example.com")
        out, err = program.communicate(timeout=60)
    assert program.returncode == 1, out
    assert "The cluster has changed since the plan was made" in err
    assert f"instance {last}.example.com is on {away}.example.com, not on" in err


@pytest.mark.skipif(not htools.COMPILED, reason=htools.MISSING)
def test_the_compiled_programs_read_this_cluster(
    uneven: Cluster, remote: RapiDaemon, tmp_path: Path
) -> None:
    ours = htools.run(uneven, "hbal", "-L")
    socket = uneven.paths().luxi_socket
    theirs = htools.run_debian("hbal", f"-L{socket}")
    assert theirs.code == 0, theirs.err
    assert score(theirs.out) == pytest.approx(score(ours.out), abs=1e-3)
    address = f"https://{remote.user}:{remote.password}@{remote.host}:{remote.port}"
    over_rapi = htools.run_debian("hbal", "-m", address)
    assert over_rapi.code == 0, over_rapi.err
    assert score(over_rapi.out) == pytest.approx(score(ours.out), abs=1e-3)
    scanned = htools.run_debian("hscan", f"-L{socket}", "-d", str(tmp_path))
    assert scanned.code == 0, scanned.err
    again = htools.run(uneven, "hbal", "-t", str(tmp_path / "LOCAL.data"))
    assert score(again.out) == pytest.approx(score(ours.out), abs=1e-3)


def score(out: str) -> float:
    """The score at the start; what nodes have free changes a little from one moment to the next."""
    found = re.search(r"^Initial score: ([\d.]+)", out, re.MULTILINE)
    assert found, out
    return float(found.group(1))


def test_jobs_go_only_to_where_the_cluster_was_read(cluster: Cluster, tmp_path: Path) -> None:
    ran = htools.run(cluster, "hbal", "-t", str(tmp_path / "none"), "-X")
    assert ran.code == 1
    assert "-X (--exec) submits jobs to the master daemon; it needs -L" in ran.err
