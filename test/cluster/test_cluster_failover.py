"""Another node becomes the master: by the vote, by force, and not when it must not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from https_server import Reply, Request, serve
from local_cluster import Cluster, Ran, copy_cluster, tool
from waiting import wait_for

from ganeti import constants
from ganeti.base import process
from ganeti.config.store import read_config
from ganeti.model.config import ConfigData

pytestmark = pytest.mark.long(120)

MASTERD = constants.MASTERD
FAILOVER = "cluster master-failover"


class Hook:
    """A webhook that the cluster notifies; while it is not ``open``, it refuses."""

    def __init__(self) -> None:
        self.open = True
        self.bodies: list[dict[str, Any]] = []

    def answer(self, request: Request) -> Reply:
        if not self.open:
            return Reply(503)
        self.bodies.append(json.loads(request.body))
        return Reply()

    def events(self) -> list[str]:
        return [notice["event"] for body in self.bodies for notice in body["notices"]]

    def await_event(self, name: str) -> None:
        wait_for(lambda: name in self.events(), lambda: f"{name} among {self.events()}", 40)


@pytest.fixture(scope="module")
def hook(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    directory = tmp_path_factory.mktemp("hook")
    made = Hook()
    with serve(directory, made.answer) as server:
        (directory / "ca.pem").write_text(server.authority)
        (directory / "url").write_text(f"{server.url}/s3cr3t\n")
        words = [f"--webhook=@{directory}/url", f"--ca-file={directory}/ca.pem", "chat"]
        added = cluster.ok("cluster notify add --interval=0", *words)
        assert "not shown again" in added.out
        yield made
        cluster.ok("cluster notify remove chat")


def masterd(cluster: Cluster, node: str, *options: str) -> Ran:
    """Start the master daemon of a node by hand."""
    return cluster.start_daemon(MASTERD, node, *options)


def kill_node(cluster: Cluster, node: str) -> None:
    assert tool("kill-node", cluster.directory, node).code == 0


def revive(cluster: Cluster, node: str) -> None:
    """Start the node daemon again, and nothing else."""
    started = cluster.start_daemon(constants.NODED, node)
    assert started.code == 0, started.err


def stop_daemon(cluster: Cluster, name: str, node: str, how: int = signal.SIGTERM) -> None:
    pid = cluster.pid(name, node)
    assert pid is not None
    os.kill(pid, how)
    assert process.wait_exit(pid, 20)


def masters(cluster: Cluster) -> list[str]:
    """Nodes on which a master daemon runs."""
    short = [name.partition(".")[0] for name in cluster.names]
    return [node for node in short if cluster.pid(MASTERD, node) is not None]


def tags(cluster: Cluster, node: str) -> list[str]:
    return cluster.ok("cluster list-tags", node=node).lines


def same_state(cluster: Cluster, *nodes: str) -> bool:
    """Whether the copies of these nodes have the same configuration."""
    return len({read_config(cluster.paths(node)).data.serial_no for node in nodes}) == 1


def write_hook(cluster: Cluster, node: str, phase: str, text: str) -> None:
    directory = cluster.paths(node).hooks / f"master-failover-{phase}.d"
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "10-test"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)


# what is refused, and changes nothing ------------------------------------------------------


def test_dry_run_says_what_it_would_do(cluster: Cluster) -> None:
    before = cluster.config()
    ran = cluster.gnt(f"{FAILOVER} --dry-run", node="node2")
    assert ran.code == 0, ran.err
    assert "The old master node1.example.com answers: its daemon is stopped first" in ran.err
    assert "node2.example.com becomes the master" in ran.err
    assert "nothing was changed" in ran.err
    assert cluster.config() == before
    assert masters(cluster) == ["node1"]
    assert cluster.gnt("cluster master-ping").code == 0


def test_no_voting_must_be_confirmed(cluster: Cluster) -> None:
    ran = cluster.gnt(f"{FAILOVER} --no-voting", node="node2")
    assert ran.code == 1
    assert "--yes-do-it" in ran.err
    assert masterd(cluster, "node2", "--no-voting").code == 2
    assert masters(cluster) == ["node1"]


def test_refused_on_the_master(cluster: Cluster) -> None:
    ran = cluster.gnt(FAILOVER)
    assert ran.code == 1
    assert "node1.example.com is the master already" in ran.err
    assert masters(cluster) == ["node1"]


def test_no_second_daemon(cluster: Cluster) -> None:
    again = masterd(cluster, "node1")
    assert again.code == 1
    assert "already running" in again.err
    assert str(cluster.pid(MASTERD)) in again.err
    other = masterd(cluster, "node3")
    assert other.code == constants.EXIT_NOTMASTER
    assert "the master is node1.example.com" in other.err
    wait_for(lambda: masters(cluster) == ["node1"], "the refused daemon to end")


def test_master_ping(cluster: Cluster) -> None:
    ping = cluster.gnt("cluster master-ping")
    assert (ping.code, ping.out, ping.err) == (0, "", "")
    elsewhere = cluster.gnt("cluster master-ping", node="node2")
    assert elsewhere.code == constants.EXIT_NOTMASTER
    assert "node1.example.com" in elsewhere.err


def test_redist_conf(cluster: Cluster) -> None:
    lost = cluster.paths("node3").ssconf("master_node")
    lost.unlink()
    cluster.ok("cluster redist-conf")
    assert lost.read_text() == "node1.example.com\n"


def test_pre_hook_can_refuse(cluster: Cluster) -> None:
    write_hook(cluster, "node2", "pre", "echo not on a Friday; exit 1")
    try:
        ran = cluster.gnt(FAILOVER, node="node2")
    finally:
        (cluster.paths("node2").hooks / "master-failover-pre.d/10-test").unlink()
    assert ran.code == 1
    assert "not on a Friday" in ran.err
    assert masters(cluster) == ["node1"]
    assert cluster.gnt("cluster master-ping").code == 0


def test_refused_on_a_node_that_is_no_candidate(cluster: Cluster) -> None:
    cluster.ok("node modify -C no --auto-promote", "node3")
    try:
        ran = cluster.gnt(FAILOVER, node="node3")
        assert ran.code != 0
        assert "master candidate" in ran.err
        assert masters(cluster) == ["node1"]
    finally:
        cluster.ok("node modify -C yes", "node3")


def test_a_master_without_its_daemon_gets_it_back(cluster: Cluster, hook: Hook) -> None:
    """So that a failover which ended early can simply be run again. Notices are sent then."""
    cluster.ok("cluster notify test chat")
    assert hook.events() == ["test"]
    hook.open = False
    assert cluster.gnt("cluster notify test chat").code == 1
    wait_for(
        lambda: "503" in cluster.cells("cluster notify list")[0][-1],
        lambda: f"a failure: {cluster.cells('cluster notify list')}",
    )
    wait_for(
        lambda: b"job-failed" in cluster.paths().notifications.read_bytes(), "the file of notices"
    )
    cluster.kill_master()
    plan = cluster.gnt(f"{FAILOVER} --dry-run")
    assert "node1.example.com is the master already, but its daemon does not run" in plan.err
    assert masters(cluster) == []
    again = cluster.gnt(FAILOVER)
    assert again.code == 0, again.err
    assert cluster.gnt("cluster master-ping").code == 0
    hook.open = True
    hook.await_event("job-failed")
    assert hook.events() == ["test", "job-failed"]


# with the old master -----------------------------------------------------------------------


def test_there_and_back(cluster: Cluster, hook: Hook) -> None:
    """The old master is stopped; what it had, the new one has. It tells that it is the master."""
    told = cluster.directory / "hooks"
    for phase in ("pre", "post"):
        write_hook(cluster, "node2", phase, f"env | grep GANETI | sort >> {told}-{phase}")
    cluster.ok("cluster add-tags", "before")
    old = cluster.pid(MASTERD)
    assert old
    moved = cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert moved.code == 0, moved.err
    assert not process.is_alive(old)
    assert masters(cluster) == ["node2"]
    assert tags(cluster, "node2") == ["before"]
    for phase in ("pre", "post"):
        text = Path(f"{told}-{phase}").read_text()
        assert "GANETI_HOOKS_PATH=master-failover\n" in text
        assert f"GANETI_HOOKS_PHASE={phase}\n" in text
        assert "GANETI_NEW_MASTER=node2.example.com\n" in text
    cluster.ok("cluster add-tags", "after", node="node2")
    hook.await_event("master-changed")
    assert hook.events().count("job-failed") == 1

    refused = masterd(cluster, "node1")
    assert refused.code == constants.EXIT_NOTMASTER
    assert "node2.example.com" in refused.err
    wrong = cluster.gnt("instance list", node="node1")
    assert wrong.code == constants.EXIT_NOTMASTER
    assert "node2.example.com" in wrong.err

    back = cluster.gnt(FAILOVER, node="node1", timeout=90)
    assert back.code == 0, back.err
    assert masters(cluster) == ["node1"]
    assert tags(cluster, "node1") == ["after", "before"]
    assert cluster.gnt("cluster verify").code == 0


def test_under_load(cluster: Cluster) -> None:
    """Changes come all the time; those that were acknowledged survive the failover."""
    script = (
        f"n=0; while {sys.executable} -m ganeti.cli gnt-cluster add-tags load$n; do"
        f" echo load$n; n=$((n+1)); done"
    )
    load = subprocess.Popen(
        ["/bin/sh", "-c", script],
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert load.stdout is not None
    first = load.stdout.readline()
    moved = cluster.gnt(FAILOVER, node="node3", timeout=90)
    # The last command waits a minute for a master daemon on the old node.
    os.killpg(load.pid, signal.SIGTERM)
    rest = load.communicate(timeout=90)[0]
    assert moved.code == 0, moved.err
    assert masters(cluster) == ["node3"]
    assert {*first.split(), *rest.split()} <= set(tags(cluster, "node3"))
    assert cluster.gnt(FAILOVER, node="node1", timeout=90).code == 0


# without the old master --------------------------------------------------------------------


def recovery_status(cluster: Cluster, node: str) -> dict[str, list[str]]:
    """The rows of the nodes, by short name; the end of a pause is below ``pause``."""
    lines = cluster.ok("cluster recovery status", node=node).lines
    rows = {words[0].partition(".")[0]: words for line in lines if (words := line.split())}
    return {**rows, "pause": [line for line in lines if line.startswith("Recovery pauses until")]}


def test_old_master_is_dead_and_returns(fresh_cluster: Cluster) -> None:
    """A pause of recovery that began under it holds under the new master."""
    fresh_cluster.ok("node modify --node-parameters oob_program=/bin/false node1")
    fresh_cluster.ok("cluster modify --auto-fence-after=30")
    fresh_cluster.ok("cluster recovery pause 1h")
    pause = recovery_status(fresh_cluster, "node1")["pause"]
    assert len(pause) == 1
    running = fresh_cluster.ok("debug delay --submit", "600").err.split()[-1]
    wait_for(
        lambda: fresh_cluster.cells("job list --running -o id") == [[running]], "the job to run"
    )
    fresh_cluster.ok("filter add --action PAUSE --predicates", '[["jobid", [">", "id", 0]]]')
    queued = fresh_cluster.ok("debug delay --submit", "0.01").err.split()[-1]
    rule = fresh_cluster.cells("filter list -o uuid")[0][0]
    kill_node(fresh_cluster, "node1")

    plan = fresh_cluster.gnt(f"{FAILOVER} --dry-run", node="node2")
    assert "The old master node1.example.com does not answer" in plan.err
    moved = fresh_cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert moved.code == 0, moved.err
    assert masters(fresh_cluster) == ["node2"]
    paused = recovery_status(fresh_cluster, "node2")
    assert paused["pause"] == pause
    assert " ".join(paused["node1"]).endswith("is not fenced: recovery pauses")
    assert paused["node1"][2].endswith("s"), "nobody has told it that it needs no lease"
    wait_for(
        lambda: recovery_status(fresh_cluster, "node2")["node3"][2] == "-",
        "node3 to be released",
        20,
    )

    def status(number: str) -> str:
        return fresh_cluster.ok("job list --no-headers -o status", number, node="node2").out.strip()

    assert status(running) == "error"
    assert "the master daemon stopped" in fresh_cluster.ok("job info", running, node="node2").out
    assert status(queued) == "queued"
    fresh_cluster.ok("filter delete", rule, node="node2")
    wait_for(lambda: status(queued) == "success", "the queued job to go on")

    revive(fresh_cluster, "node1")
    refused = masterd(fresh_cluster, "node1")
    assert refused.code == constants.EXIT_NOTMASTER
    assert "node2.example.com" in refused.err
    wait_for(lambda: masters(fresh_cluster) == ["node2"], "the refused daemon to end")

    def is_sent_away() -> bool:
        ran = fresh_cluster.gnt("cluster info", node="node1")
        return ran.code == constants.EXIT_NOTMASTER and "node2.example.com" in ran.err

    wait_for(is_sent_away, "node1 to know the master", timeout=40)
    ours = fresh_cluster.paths("node2").queue / f"job-{queued}"
    copy = fresh_cluster.paths("node1").queue / f"job-{queued}"
    wait_for(
        lambda: ours.exists() and copy.exists() and copy.read_bytes() == ours.read_bytes(),
        "the jobs to be on node1",
    )
    fresh_cluster.ok("cluster recovery continue", node="node2")
    granted = recovery_status(fresh_cluster, "node2")
    assert granted["pause"] == []
    assert granted["node3"][2].endswith("s")


def test_a_candidate_takes_what_only_the_witness_has(fresh_cluster: Cluster) -> None:
    fresh_cluster.ok("node modify --node-parameters witness=true node3")
    job = fresh_cluster.ok("debug delay --submit 0.01").err.split()[-1]
    fresh_cluster.ok("job wait", job)
    kill_node(fresh_cluster, "node2")
    fresh_cluster.ok("cluster add-tags", "new")  # the master and the witness have it
    later = fresh_cluster.ok("debug delay --submit 0.01").err.split()[-1]
    fresh_cluster.ok("job wait", later)
    kill_node(fresh_cluster, "node1")
    revive(fresh_cluster, "node2")

    by_itself = fresh_cluster.gnt(f"{FAILOVER} --if-silent", node="node3")
    assert by_itself.code == 1
    assert "node3.example.com is a witness, which does not become the master" in by_itself.err
    taken = "The newest state is on the witness node3.example.com"
    before = fresh_cluster.paths("node2").config_file.read_bytes()
    assert taken in fresh_cluster.gnt(f"{FAILOVER} --dry-run", node="node2").err
    assert fresh_cluster.paths("node2").config_file.read_bytes() == before
    moved = fresh_cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert moved.code == 0, moved.err
    assert taken in moved.err
    assert masters(fresh_cluster) == ["node2"]
    assert tags(fresh_cluster, "node2") == ["new"]
    found = fresh_cluster.ok("job list --no-headers -o id,status", job, later, node="node2")
    assert found.out.split() == [job, "success", later, "success"]
    revive(fresh_cluster, "node1")
    wait_for(lambda: same_state(fresh_cluster, "node2", "node1"), "node1 to have a copy")


def test_frozen_master_is_fenced(fresh_cluster: Cluster) -> None:
    """A master daemon that sleeps through its own end does no harm when it wakes up."""
    pid = fresh_cluster.pid(MASTERD)
    assert pid
    os.kill(pid, signal.SIGSTOP)
    kill_noded = fresh_cluster.pid(constants.NODED)
    assert kill_noded
    os.kill(kill_noded, signal.SIGKILL)  # so that nobody can stop the master daemon
    process.wait_exit(kill_noded, 10)
    assert fresh_cluster.gnt(FAILOVER, node="node3", timeout=90).code == 0
    fresh_cluster.ok("cluster add-tags", "new", node="node3")
    os.kill(pid, signal.SIGCONT)
    late = fresh_cluster.gnt("cluster add-tags", "old")
    assert late.code != 0
    wait_for(lambda: not process.is_alive(pid), "the old master to step down")
    revive(fresh_cluster, "node1")
    assert tags(fresh_cluster, "node3") == ["new"]

    def state(node: str) -> ConfigData:
        return read_config(fresh_cluster.paths(node)).data

    wait_for(lambda: state("node1") == state("node3"), "node1 to have the state")


def test_an_old_master_that_was_set_offline_hears_that_nodes_refuse_it(
    fresh_cluster: Cluster,
) -> None:
    kill_node(fresh_cluster, "node1")
    assert fresh_cluster.gnt(FAILOVER, node="node2", timeout=90).code == 0
    fresh_cluster.ok("node modify --offline yes node1", node="node2")
    revive(fresh_cluster, "node1")
    ended = masterd(fresh_cluster, "node1")
    assert ended.code != 0
    assert "nodes answer, but refuse this one" in ended.err
    assert "recover-quorum" not in ended.err


def test_a_claim_that_too_few_still_know_of_is_made_again(fresh_cluster: Cluster) -> None:
    """Of those that follow a dead master one is lost, and another one never heard of it."""
    stopped = fresh_cluster.paths("node1").master_stopped_file
    stop_daemon(fresh_cluster, MASTERD, "node1")
    assert stopped.exists()
    kill_node(fresh_cluster, "node1")
    assert fresh_cluster.gnt(FAILOVER, node="node2", timeout=90).code == 0
    stop_daemon(fresh_cluster, MASTERD, "node2", signal.SIGKILL)
    kill_node(fresh_cluster, "node3")
    revive(fresh_cluster, "node1")
    for node, voice in (("node1", "node2"), ("node2", "node1")):
        refused = masterd(fresh_cluster, node)
        assert refused.code == constants.EXIT_NOTMASTER
        assert f"1 say that it is {voice}.example.com" in refused.err
    assert not stopped.exists(), "the mark of a stopped master is still there after a start"
    again = fresh_cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert again.code == 0, again.err
    assert masters(fresh_cluster) == ["node2"]


def test_needs_a_majority(fresh_cluster: Cluster) -> None:
    kill_node(fresh_cluster, "node1")
    kill_node(fresh_cluster, "node3")
    before = fresh_cluster.paths("node2").config_file.read_bytes()
    refused = fresh_cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert refused.code == constants.EXIT_NOTMASTER
    assert "only 1 of 3 nodes answered, 2 are needed" in refused.err
    assert masters(fresh_cluster) == []
    assert fresh_cluster.paths("node2").config_file.read_bytes() == before
    forced = fresh_cluster.gnt(f"{FAILOVER} --no-voting --yes-do-it", node="node2", timeout=90)
    assert forced.code == 0, forced.err
    fresh_cluster.ok("cluster add-tags", "alone", node="node2")
    for node in ("node1", "node3"):
        revive(fresh_cluster, node)
    assert masterd(fresh_cluster, "node1").code == constants.EXIT_NOTMASTER
    wait_for(lambda: masters(fresh_cluster) == ["node2"], "the refused daemon to end")


def test_not_without_what_others_know(fresh_cluster: Cluster) -> None:
    """A candidate that slept while changes were acknowledged must not take over."""
    kill_node(fresh_cluster, "node2")
    fresh_cluster.ok("cluster add-tags", "later")
    kill_node(fresh_cluster, "node1")
    revive(fresh_cluster, "node2")
    refused = fresh_cluster.gnt(FAILOVER, node="node2", timeout=90)
    assert refused.code == constants.EXIT_NOTMASTER
    assert "node3.example.com has newer data" in refused.err
    assert fresh_cluster.gnt(FAILOVER, node="node3", timeout=90).code == 0
    assert tags(fresh_cluster, "node3") == ["later"]


def test_the_drain_flag_is_that_of_the_last_command(fresh_cluster: Cluster) -> None:
    """Whatever a candidate missed, or kept from the time when it was the master itself."""

    def flag(node: str) -> str:
        return fresh_cluster.ok("cluster queue info", node=node).out.split()[-1]

    def marked(node: str) -> bool:
        return (fresh_cluster.paths(node).queue / "drain").exists()

    kill_node(fresh_cluster, "node2")
    fresh_cluster.ok("cluster queue drain")
    revive(fresh_cluster, "node2")
    wait_for(lambda: marked("node2"), "node2 to get the flag that it missed", 60)
    kill_node(fresh_cluster, "node1")
    assert fresh_cluster.gnt(FAILOVER, node="node2", timeout=90).code == 0
    assert flag("node2") == "set"
    kill_node(fresh_cluster, "node3")
    revive(fresh_cluster, "node1")  # with the flag of its own term
    wait_for(
        lambda: fresh_cluster.gnt("cluster queue undrain", node="node2", timeout=90).code == 0,
        "node1 to be a candidate with a copy",
        60,
    )
    wait_for(lambda: not marked("node1"), "node1 to lose the flag of its own term", 60)
    revive(fresh_cluster, "node3")  # it missed that the flag was removed
    wait_for(lambda: not marked("node3"), "node3 to hear that the flag was removed", 60)
    assert fresh_cluster.gnt(FAILOVER, node="node3", timeout=90).code == 0
    assert flag("node3") == "unset"


def test_two_nodes() -> None:
    with copy_cluster(2) as pair:
        pair.ok("cluster add-tags", "kept")
        kill_node(pair, "node1")
        refused = pair.gnt(FAILOVER, node="node2", timeout=90)
        assert refused.code == constants.EXIT_NOTMASTER
        assert "2 are needed" in refused.err
        forced = pair.gnt(f"{FAILOVER} --no-voting --yes-do-it", node="node2", timeout=90)
        assert forced.code == 0, forced.err
        assert "No vote" in forced.err
        assert tags(pair, "node2") == ["kept"]
        revive(pair, "node1")
        assert masterd(pair, "node1").code == constants.EXIT_NOTMASTER


def test_alone_without_any_node_daemon_it_goes_on_from_its_own_term(fresh_cluster: Cluster) -> None:
    for node in ("node2", "node3"):
        kill_node(fresh_cluster, node)
    fresh_cluster.kill_master()
    early = masterd(fresh_cluster, "node1", "--vote-patience", "0")
    assert early.code == 1  # systemd starts it again
    assert "only 1 of 3 nodes answered" in early.err
    kill_node(fresh_cluster, "node1")
    alone = masterd(fresh_cluster, "node1", "--no-voting", "--yes-do-it")
    assert alone.code == 0, alone.err
    fresh_cluster.ok("cluster add-tags", "kept")
    fresh_cluster.kill_master()
    for node in ("node1", "node2", "node3"):
        revive(fresh_cluster, node)
    again = masterd(fresh_cluster, "node1")
    assert again.code == 0, again.err
    assert tags(fresh_cluster, "node1") == ["kept"]


def test_the_administrator_may_give_changes_up(fresh_cluster: Cluster) -> None:
    """With --no-voting it does not matter what other nodes know."""
    kill_node(fresh_cluster, "node2")
    fresh_cluster.ok("cluster add-tags", "given-up")
    kill_node(fresh_cluster, "node1")
    revive(fresh_cluster, "node2")
    forced = fresh_cluster.gnt(f"{FAILOVER} --no-voting --yes-do-it", node="node2", timeout=90)
    assert forced.code == 0, forced.err
    assert tags(fresh_cluster, "node2") == []
    fresh_cluster.ok("cluster add-tags", "kept", node="node2")
    wait_for(
        lambda: read_config(fresh_cluster.paths("node3")).cluster.tags == ("kept",),
        "node3 to follow the new master",
    )
