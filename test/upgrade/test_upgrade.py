"""A running cluster goes to the next version and back, whatever dies on the way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from upgraded_cluster import NEW, NODE_PLACES, OLD, PLACES, Submitter, Upgraded, install

from ganeti import constants
from ganeti.base import daemon, jsonio, process
from ganeti.base.upgrade_intent import Intent

WEB = "web1.example.com"
HYPERVISOR = "kvm" if shutil.which("qemu-system-x86_64") else "fake"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("library")
    install(directory)
    return directory


@pytest.fixture(scope="module")
def cluster(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    made = Upgraded(tmp_path_factory.mktemp("c") / "c", library, 2, HYPERVISOR)
    try:
        made.start()
        made.ok(
            "gnt-instance add -n node2 -o bootsector+beat -t file --disk 0:size=8M --no-nics"
            " -B memory=64M --no-name-check --no-ip-check",
            WEB,
        )
        yield made
    finally:
        made.destroy()


def read_version(cluster: Upgraded) -> str:
    return cluster.paths().version_link.readlink().name


def name_other(cluster: Upgraded) -> str:
    return OLD if read_version(cluster) == NEW else NEW


def guest(cluster: Upgraded) -> object:
    """What changes when the guest is started again."""
    if HYPERVISOR == "kvm":
        return cluster.guest_pid(WEB, "node2")
    return (cluster.paths("node2").fake_hypervisor / WEB).stat().st_ino


def test_a_plan_changes_nothing(cluster: Upgraded) -> None:
    before = cluster.paths().config_file.read_bytes()
    ran = cluster.ok("gnt-cluster upgrade --plan --to", NEW)
    assert ran.lines[-1] == "Nothing was changed (--plan)"
    assert [line.split()[1] for line in ran.lines if line.startswith("  ")] == [
        "hold",
        "node2.example.com:",
        "node1.example.com",
        "let",
    ]
    assert cluster.paths().config_file.read_bytes() == before
    cluster.check(OLD)


def test_up_and_down_with_a_guest_and_jobs(cluster: Upgraded) -> None:
    before = guest(cluster)
    for target in (NEW, OLD):
        submitter = Submitter(cluster)
        submitter.start()
        ran = cluster.ok("gnt-cluster upgrade --to", target)
        submitter.stop()
        print(ran.out, f"longest time without a job accepted: {submitter.longest:.1f} s")
        assert submitter.longest < 10
        for job in submitter.jobs:
            cluster.ok("gnt-job watch", str(job))
        cluster.check(target)
        assert guest(cluster) == before
        config = jsonio.loads(cluster.paths().config_file.read_bytes())
        assert ("future_option" in config["cluster"]) == (target == NEW)
    assert "does not know cluster/future_option" in ran.out
    assert list(cluster.paths().data.glob("config.data.backup-3.2-*"))
    assert list(cluster.paths().data.glob("config.data.backup-3.3-*"))


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_upgrade_is_resumed(cluster: Upgraded, place: str) -> None:
    before, target = guest(cluster), name_other(cluster)
    cluster.die_at(place)
    killed = cluster.run("gnt-cluster upgrade --to", target)
    assert killed.code == -9
    assert not cluster.is_waiting_to_die()
    assert Intent.from_text(cluster.paths().upgrade_intent.read_text()).new == target
    resumed = cluster.ok("gnt-cluster upgrade --resume")
    print(resumed.out)
    cluster.check(target)
    assert guest(cluster) == before


@pytest.mark.parametrize("place", NODE_PLACES)
def test_a_helper_that_is_killed_on_a_node_is_started_again(cluster: Upgraded, place: str) -> None:
    before, target = guest(cluster), name_other(cluster)
    cluster.die_at(place, "node2")
    failed = cluster.run("gnt-cluster upgrade --to", target)
    assert not cluster.is_waiting_to_die("node2")
    assert failed.code == 1
    assert "gnt-cluster upgrade --resume" in failed.err
    if place == "linked":
        said = cluster.run("gnt-cluster verify").out
        assert f"to {target} did not come to its end: run 'gnt-cluster upgrade --resume'" in said
    cluster.ok("gnt-cluster upgrade --resume")
    cluster.check(target)
    assert guest(cluster) == before


def test_the_watcher_goes_on_with_a_killed_upgrade(cluster: Upgraded) -> None:
    target = name_other(cluster)
    cluster.die_at("converted")
    assert cluster.run("gnt-cluster upgrade --to", target).code == -9
    cluster.ok("ganeti-watcher")
    cluster.check(target)


def test_an_upgrade_that_was_killed_can_be_taken_back(cluster: Upgraded) -> None:
    former, target = read_version(cluster), name_other(cluster)
    cluster.die_at("node" if target == NEW else "master")
    assert cluster.run("gnt-cluster upgrade --to", target).code == -9
    cluster.ok("gnt-cluster upgrade --to", former)
    cluster.check(former)


def test_a_node_that_was_away_follows(cluster: Upgraded) -> None:
    if read_version(cluster) == NEW:
        cluster.ok("gnt-cluster upgrade --to", OLD)
    before = guest(cluster)
    pid = daemon.running_pid(cluster.paths("node2").pid_file(constants.NODED))
    assert pid is not None
    process.kill_group(pid)
    process.wait_exit(pid, 10)
    cluster.ok("gnt-node modify --offline yes --force node2.example.com")
    ran = cluster.ok("gnt-cluster upgrade --to", NEW)
    assert "1 node offline (node2.example.com)" in ran.out
    cluster.ok("ganeti-daemon-util start ganeti-noded", node="node2")
    cluster.ok("gnt-node modify --offline no node2.example.com")
    named = cluster.run("gnt-cluster verify")
    assert "node2.example.com: protocol 3020000, the master has 3030000" in named.out
    assert cluster.ok("gnt-instance list --no-headers -o name,status").out.split()[0] == WEB
    assert cluster.run("ganeti-watcher", node="node2").code == constants.EXIT_NOTMASTER
    cluster.check(NEW)
    assert guest(cluster) == before


def test_what_cannot_be_done_is_refused(cluster: Upgraded) -> None:
    for words, said in (
        (["--to", "3.4"], "not installed"),
        (["--to", "3.9"], "neither the next one"),
        (["--to", "new"], "invalid version 'new'"),
        ([], "--to VERSION or --resume"),
        (["--to", NEW, "--resume"], "--to VERSION or --resume"),
    ):
        ran = cluster.run("gnt-cluster upgrade", *words)
        assert ran.code != 0
        assert said in ran.err, ran.err
    assert cluster.ok("gnt-cluster upgrade --resume").out == "There is no upgrade to resume\n"
    away = cluster.run("gnt-cluster upgrade --to", OLD, node="node2")
    assert away.code == constants.EXIT_NOTMASTER
    cluster.check(read_version(cluster))


def test_a_version_that_does_not_run_is_taken_back(tmp_path: Path) -> None:
    library = tmp_path / "library"
    install(library, broken=True)
    cluster = Upgraded(tmp_path / "c", library, 1)
    try:
        cluster.start()
        failed = cluster.run("gnt-cluster upgrade --to", NEW)
        assert failed.code == 1
        assert "this version is broken" in failed.err
        assert "so 3.2 is in use again" in failed.err
        assert cluster.versions() == {OLD}
        cluster.ok("gnt-cluster upgrade --to", OLD)
        cluster.check(OLD)
    finally:
        cluster.destroy()
