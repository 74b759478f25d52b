"""Pacemaker decides about the master: its resource agents, on a cluster with stand-ins for it.

``make check-pacemaker`` has the real one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from local_cluster import Cluster, Ran, copy_cluster, run_program
from stand_in_pacemaker import FENCE, ROLE, StandInPacemaker, write_cib
from waiting import wait_for

from ganeti import constants
from ganeti.base import position, process
from ganeti.config.pacemaker_role import Grant
from ganeti.tools.ocf_agent import Code

pytestmark = pytest.mark.long

MASTERD, NODED = constants.MASTERD, constants.NODED
NODES = ("node1", "node2", "node3")
USE_PACEMAKER = "cluster modify --master-vote=pacemaker"
AGENT = "ganeti.tools.ocf_master_role"
NODES_AGENT = "ganeti.tools.ocf_nodes"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with copy_cluster(3) as made:
        yield made


@pytest.fixture(scope="module")
def pacemaker(cluster: Cluster) -> StandInPacemaker:
    return StandInPacemaker(cluster.directory / "pacemaker", *map(cluster.root, NODES))


def call(cluster: Cluster, node: str, action: str, agent: str = AGENT, **more: str) -> Ran:
    """What Pacemaker does on a node; ``seconds`` is the time-out."""
    env = {
        **cluster.env(node),
        "OCF_ROOT": "/usr/lib/ocf",
        "OCF_RESOURCE_INSTANCE": "role",
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_RESKEY_CRM_meta_timeout": "60000",
        **more,
    }
    return run_program([agent, *action.split()], env)


def check(cluster: Cluster, node: str, action: str, code: Code, *texts: str, **more: str) -> None:
    """An action ends with this code, and says these texts."""
    ran = call(cluster, node, action, **more)
    assert ran.code == code, ran.err + ran.out
    for text in texts:
        assert text in ran.err, ran.err
    assert code is Code.NOT_RUNNING or bool(texts) == ("ocf-exit-reason:" in ran.err), ran.err


def find_vote(cluster: Cluster, node: str = "node1") -> str:
    lines = cluster.ok("cluster info", node=node).lines
    return next(line.split(": ")[1] for line in lines if "decides about the master" in line)


def find_acting(cluster: Cluster) -> list[str]:
    return [node for node in NODES if cluster.pid(MASTERD, node) is not None]


def find_positions(cluster: Cluster) -> set[position.Position]:
    """How new the copies of the candidates are."""
    return {position.read(cluster.paths(node)).position for node in NODES}


def kill(cluster: Cluster, name: str, node: str) -> None:
    pid = cluster.pid(name, node)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 10)


# the change to Pacemaker -------------------------------------------------------------------------


def test_nothing_changes_before_pacemaker_has_the_resource(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    ran = cluster.gnt(USE_PACEMAKER)
    assert ran.code == 1
    assert "does not run ganeti-master-role on this node" in ran.err
    assert find_vote(cluster) == "nodes"


def test_while_the_nodes_decide_the_resource_joins_their_master(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    for node in NODES:
        check(cluster, node, "monitor", Code.NOT_RUNNING)
    check(cluster, "node2", "start", Code.GENERIC, "no master daemon answers here")
    before = cluster.pid(MASTERD)
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    more = {"OCF_RESKEY_CRM_meta_timeout": "4000"}
    check(cluster, "node1", "start", Code.GENERIC, "no master daemon answers here", **more)
    os.kill(before, signal.SIGCONT)
    check(cluster, "node1", "start", Code.SUCCESS)
    check(cluster, "node1", "monitor", Code.SUCCESS)
    check(cluster, "node1", "stop", Code.SUCCESS)
    check(cluster, "node1", "monitor", Code.NOT_RUNNING)
    assert cluster.pid(MASTERD) == before, "the nodes have chosen it"


def test_a_pacemaker_without_stonith_or_with_two_deciders_is_refused(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    check(cluster, "node1", "start", Code.SUCCESS)
    pacemaker.configure(write_cib({"stonith-enabled": "false"}))
    ran = cluster.gnt(USE_PACEMAKER)
    assert ran.code == 1
    assert "node2.example.com: Pacemaker does not fence lost nodes" in ran.err
    pacemaker.configure(write_cib())
    ran = cluster.gnt(f"{USE_PACEMAKER} --auto-failover-after=15")
    assert ran.code == 1
    assert "add --auto-failover-after=0" in ran.err
    assert find_vote(cluster) == "nodes"


def test_the_master_has_the_role_that_pacemaker_gave_it(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    cluster.ok(USE_PACEMAKER)
    assert find_vote(cluster) == "pacemaker"
    status = cluster.ok("cluster recovery status").out
    assert "The master is replaced by: Pacemaker" in status
    assert "Pacemaker decides about the master: term" in status
    cluster.ok("cluster verify")
    ran = cluster.gnt("cluster modify --auto-failover-after=15")
    assert ran.code == 1
    assert "Pacemaker replaces a master by its own rules" in ran.err
    ran = cluster.gnt("cluster modify --master-vote=etcd")
    assert "change it to nodes first" in ran.err


# one master --------------------------------------------------------------------------------------


def test_no_other_node_becomes_the_master_while_one_acts(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    before = cluster.pid(MASTERD)
    check(cluster, "node2", "start", Code.GENERIC, "the master daemon of node1.example.com still")
    check(cluster, "node2", "monitor", Code.NOT_RUNNING)
    ran = cluster.gnt("cluster master-failover", node="node2")
    assert ran.code == constants.EXIT_NOTMASTER
    assert "does not run ganeti-master-role on this node" in ran.err
    ran = cluster.gnt("cluster master-failover --if-silent", node="node2")
    assert ran.code == constants.EXIT_NOTMASTER
    assert cluster.pid(MASTERD) == before
    assert find_acting(cluster) == ["node1"]


def test_the_actions_can_be_repeated_and_the_role_moves(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    check(cluster, "node1", "start", Code.SUCCESS)
    for _ in range(2):
        check(cluster, "node1", "stop", Code.SUCCESS)
    check(cluster, "node1", "monitor", Code.NOT_RUNNING)
    assert find_acting(cluster) == []
    refused = cluster.start_daemon(MASTERD)
    assert refused.code == constants.EXIT_NOTMASTER, "somebody starts it by hand"
    assert "Pacemaker decides about the master" in refused.err
    for _ in range(2):
        check(cluster, "node2", "start", Code.SUCCESS)
    check(cluster, "node2", "monitor", Code.SUCCESS)
    assert find_acting(cluster) == ["node2"]
    assert cluster.ok("cluster getmaster", node="node2").out.strip() == "node2.example.com"
    history = cluster.ok("cluster history", node="node2").out
    assert "master failover by Pacemaker from node1.example.com" in history
    assert cluster.start_daemon(MASTERD).code == constants.EXIT_NOTMASTER


def test_a_master_that_was_killed_is_replaced_on_its_node_or_on_another(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    kill(cluster, MASTERD, "node2")
    check(cluster, "node2", "monitor", Code.NOT_RUNNING)
    check(cluster, "node2", "start", Code.SUCCESS)
    check(cluster, "node2", "monitor", Code.SUCCESS)
    wait_for(lambda: len(find_positions(cluster)) == 1, "all candidates have the same")
    for name in (MASTERD, NODED):
        kill(cluster, name, "node2")  # as by a power cut
    check(cluster, "node3", "start", Code.SUCCESS)
    assert find_acting(cluster) == ["node3"]
    cluster.paths("node2").master_grant.unlink()
    assert cluster.start_daemon(NODED, "node2").code == 0
    check(cluster, "node2", "monitor", Code.NOT_RUNNING)
    cluster.ok("cluster verify", node="node3")


def test_a_node_with_older_data_is_refused_and_the_next_one_is_not(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    kill(cluster, NODED, "node2")
    cluster.ok("cluster add-tags newer", node="node3")
    check(cluster, "node3", "stop", Code.SUCCESS)
    assert cluster.start_daemon(NODED, "node2").code == 0
    check(cluster, "node2", "start", Code.GENERIC, "has newer data")
    check(cluster, "node2", "stop", Code.SUCCESS)
    check(cluster, "node1", "start", Code.SUCCESS)
    assert "newer" in cluster.ok("cluster list-tags").out


def test_a_master_that_hangs_is_not_taken_for_a_healthy_one(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    pid = cluster.pid(MASTERD)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)

    def is_found() -> bool:
        return call(cluster, "node1", "monitor").code == Code.GENERIC

    wait_for(is_found, "the lease of the frozen master ends", 40, pause=0.5)
    check(cluster, "node1", "monitor", Code.GENERIC, "runs here without a lease")
    begun = time.monotonic()
    check(cluster, "node1", "stop", Code.SUCCESS)
    assert time.monotonic() - begun < 10, "it may not act, so it need not end by itself"
    assert cluster.pid(MASTERD) is None
    check(cluster, "node1", "start", Code.SUCCESS)


def test_a_master_without_quorum_ends_by_itself(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    pacemaker.set_quorum(False)
    wait_for(lambda: cluster.pid(MASTERD) is None, "the end of the master", 40)
    log = (cluster.paths().log / "master-daemon.log").read_text()
    assert "is not renewed: this node is in a part of Pacemaker without quorum" in log
    check(
        cluster,
        "node1",
        "start",
        Code.GENERIC,
        "a part of Pacemaker without quorum",
        OCF_RESKEY_CRM_meta_timeout="5000",
    )
    pacemaker.set_quorum(True)
    check(cluster, "node1", "start", Code.SUCCESS)


# what is missing ---------------------------------------------------------------------------------


def test_wrong_calls_have_the_exit_codes_of_the_api(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    for action in ("notify", "promote", "reload"):
        assert call(cluster, "node1", action).code == Code.UNIMPLEMENTED
    for action in ("", "start now"):
        assert call(cluster, "node1", action).code == Code.ARGS
    for text in ("soon", "0", "-5"):
        more = {"OCF_RESKEY_CRM_meta_timeout": text}
        check(cluster, "node1", "monitor", Code.ARGS, "not a number of milliseconds", **more)
    check(cluster, "node1", "start", Code.CONFIGURED, "a clone", OCF_RESKEY_CRM_meta_clone="0")
    check(cluster, "node1", "validate-all", Code.SUCCESS)
    check(cluster, "node1", "monitor", Code.SUCCESS)


def test_what_is_missing_keeps_the_resource_from_a_node_or_from_all(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    pacemaker.configure(write_cib({"stonith-enabled": "false"}))
    check(cluster, "node2", "start", Code.CONFIGURED, "does not fence lost nodes")
    pacemaker.configure(None)
    check(cluster, "node2", "validate-all", Code.INSTALLED, "Pacemaker does not answer")
    pacemaker.configure(write_cib())
    cluster.ok("node modify --master-candidate=no node3")
    for action in ("start", "validate-all"):
        check(cluster, "node3", action, Code.INSTALLED, "is not a master candidate")
    check(cluster, "node3", "monitor", Code.NOT_RUNNING)
    check(cluster, "node3", "stop", Code.SUCCESS)
    cluster.ok("node modify --master-candidate=yes node3")
    cluster.ok("node modify --node-parameters witness=true node3")
    check(cluster, "node3", "start", Code.INSTALLED, "is a witness")
    cluster.ok("node modify --node-parameters witness=default node3")


def test_verify_names_what_is_wrong_with_pacemaker(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    def verify() -> str:
        ran = cluster.gnt("cluster verify --error-codes")
        assert ran.code == 1
        return ran.out

    pacemaker.configure(write_cib({"no-quorum-policy": "ignore"}, FENCE))
    out = verify()
    assert out.count("ENODEPACEMAKER") == 2 * len(NODES)
    assert "Pacemaker has no resource of ocf:ganeti:ganeti-master-role" in out
    assert "no-quorum-policy=stop" in out
    pacemaker.configure(write_cib(resources=f"<clone>{ROLE}</clone>"))
    out = verify()
    assert "no fence device" in out
    assert "is a clone" in out
    pacemaker.configure(write_cib())
    program = cluster.root("node2") / "usr/local/sbin/crm_node"
    program.rename(program.with_suffix(".away"))
    out = verify()
    program.with_suffix(".away").rename(program)
    assert "ENODEPACEMAKER:node:node2.example.com:Pacemaker does not answer: c" in out
    cluster.paths("node2").master_grant.write_bytes(b"")
    assert "although the master is node1.example.com" in verify()
    cluster.paths("node2").master_grant.unlink()
    cluster.ok("cluster verify")


# node daemons ------------------------------------------------------------------------------------


def test_the_node_daemon_is_started_stopped_and_asked(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    def check_nodes(action: str, code: Code, *texts: str, **more: str) -> None:
        more |= {"agent": NODES_AGENT, "OCF_RESKEY_CRM_meta_clone": "2"}
        check(cluster, "node3", action, code, *texts, **more)

    for action in ("validate-all", "monitor", "start", "stop", "stop"):
        check_nodes(action, Code.SUCCESS)
    check_nodes("monitor", Code.NOT_RUNNING)
    assert cluster.pid(NODED, "node3") is None
    for action in ("start", "start", "monitor"):
        check_nodes(action, Code.SUCCESS)
    pid = cluster.pid(NODED, "node3")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    check_nodes("monitor", Code.GENERIC, "node3", OCF_RESKEY_CRM_meta_timeout="3000")
    os.kill(pid, signal.SIGCONT)
    check_nodes("monitor", Code.SUCCESS)
    certificate = cluster.paths("node3").server_cert
    certificate.rename(certificate.with_suffix(".away"))
    check_nodes("start", Code.INSTALLED, "is not a node of a cluster")
    certificate.with_suffix(".away").rename(certificate)


def test_a_node_that_is_not_a_candidate_is_asked_too(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    cluster.ok("node modify --master-candidate=no node3")
    check(cluster, "node3", "monitor", Code.SUCCESS, agent=NODES_AGENT)
    cluster.ok("node modify --master-candidate=yes node3")


# the way back ------------------------------------------------------------------------------------


def test_an_administrator_goes_back_to_the_vote_of_the_nodes(
    cluster: Cluster, pacemaker: StandInPacemaker
) -> None:
    pacemaker.set_quorum(None)
    wait_for(lambda: cluster.pid(MASTERD) is None, "the end of the master", 40)
    assert cluster.start_daemon(MASTERD, "node1", "--no-voting", "--yes-do-it").code == 0
    status = cluster.ok("cluster recovery status").out
    assert "Pacemaker does not renew the role of the master: Pacemaker does not answer" in status
    cluster.ok("cluster modify --master-vote=nodes")
    pacemaker.set_quorum(True)

    def is_over() -> bool:
        record = Grant(cluster.paths()).read()
        return record is not None and record.holder is None

    wait_for(is_over, "the lease of the master that has ended is over", 20)
    check(cluster, "node1", "stop", Code.SUCCESS)
    assert find_acting(cluster) == ["node1"], "it is the master of the nodes"
    cluster.kill_master()
    assert cluster.start_master().code == 0
    assert find_vote(cluster) == "nodes"
