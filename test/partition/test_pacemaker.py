"""A real Pacemaker on three nodes decides about the master; ``make check-pacemaker`` runs it.

``PACEMAKER_FAULTS`` is how many random faults follow the fixed ones (default: none, and nothing is
run), ``PACEMAKER_SEED`` the seed, and ``PACEMAKER_LOGS`` a directory for the logs of a failure.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import needs_programs
from net_cluster import NetNode, needs_networks
from pacemaker_lab import Lab
from waiting import wait_for

from ganeti import constants
from ganeti.config.pacemaker_role import Grant

FAULTS = os.environ.get("PACEMAKER_FAULTS", "")
SEED = int(os.environ.get("PACEMAKER_SEED", "1"))
MASTERD, NODED = constants.MASTERD, constants.NODED
#: Seconds until Pacemaker has dealt with a fault.
PATIENCE = 180
#: What an administrator types; the fence device is that of the lab.
SET_UP = """\
pcs stonith create fence-node1 fence_lab plug=node1.example.com pcmk_host_list=node1.example.com
pcs stonith create fence-node2 fence_lab plug=node2.example.com pcmk_host_list=node2.example.com
pcs stonith create fence-node3 fence_lab plug=node3.example.com pcmk_host_list=node3.example.com
pcs resource create ganeti-nodes ocf:ganeti:ganeti-nodes meta requires=nothing clone
pcs resource create ganeti-master ocf:ganeti:ganeti-master-role \
    meta resource-stickiness=100 failure-timeout=10min
pcs constraint order ganeti-nodes-clone then ganeti-master kind=Optional
pcs constraint colocation add ganeti-master with ganeti-nodes-clone
"""
USE_PACEMAKER = "cluster modify --auto-failover-after=0 --master-vote=pacemaker"

pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not FAULTS, reason="make check-pacemaker runs it"),
    needs_programs("corosync", "pacemakerd", "pcs", "xmllint"),
    needs_networks(),
]


class Witness(threading.Thread):
    """Looks all the time at which nodes have the role."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(name="witness", daemon=True)
        self._grants = {n: Grant(node.paths) for n, node in lab.nodes.items()}
        self._ended = threading.Event()
        self.looks = 0
        self.doubles: list[list[int]] = []

    def run(self) -> None:
        while not self._ended.wait(0.02):
            holders = [n for n, grant in self._grants.items() if self._has_role(grant)]
            self.looks += 1
            if len(holders) > 1:
                self.doubles.append(holders)

    def _has_role(self, grant: Grant) -> bool:
        record = grant.read()
        return record is not None and record.holder is not None

    def end(self) -> None:
        self._ended.set()
        self.join()


class Site:
    """The lab, and what an administrator and faults do with it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.tags: list[str] = []

    def find_master(self) -> int | None:
        """The node whose master daemon answers."""
        for number in self.lab.find_masters():
            ran = self.lab.nodes[number].gnt("cluster getmaster", 20)
            if ran.code == 0 and ran.out.strip() == self.lab.nodes[number].name:
                info = self.lab.nodes[number].gnt("cluster info", 20)
                if info.code == 0:
                    return number
        return None

    def wait_for_master(self, *, without: int = 0) -> int:
        """Wait until one acts on another node than ``without``, with all that was acknowledged."""
        found: list[int] = []

        def is_there() -> bool:
            number = self.find_master()
            found[:] = [] if number in (None, without) else [number]  # type: ignore[list-item]
            return bool(found)

        wait_for(is_there, lambda: f"no master\n{self.describe()}", PATIENCE, pause=0.5)
        listed = self.node(found[0]).gnt("cluster list-tags").out.split()
        assert set(self.tags) <= set(listed)
        return found[0]

    def wait_for_health(self) -> int:
        """Wait until all nodes are back, and the master does what it is told to; its number."""
        online = f"Online: [ {' '.join(node.name for node in self.lab.nodes.values())} ]"

        def is_quiet() -> bool:
            nodes = self.lab.nodes
            for number in nodes:
                if nodes[number].run(["crm_node", "--quorum"]).code != 0:
                    self.lab.power_on(number)  # it may be fenced once more for its last death
            return all(online in n.run(["crm_mon", "--one-shot"]).out for n in nodes.values())

        wait_for(is_quiet, lambda: f"a node is away\n{self.describe()}", PATIENCE, pause=0.5)
        self.lab.do("pcs resource cleanup")
        self.lab.do("crm_resource --wait --timeout=120s")
        number = self.wait_for_master()
        self.change(number)
        wait_for(
            lambda: self.node(number).gnt("cluster verify").code == 0,
            lambda: self.node(number).gnt("cluster verify").out + self.describe(),
            60,
            pause=1.0,
        )
        return number

    def change(self, number: int) -> None:
        """Make a change that must never be lost."""
        tag = f"change{len(self.tags)}"
        ran = self.node(number).gnt(f"cluster add-tags {tag}")
        assert ran.code == 0, ran.err
        self.tags.append(tag)

    def node(self, number: int) -> NetNode:
        return self.lab.nodes[number]

    def list_others(self, number: int) -> list[int]:
        return [n for n in self.lab.nodes if n != number]

    def isolate(self, number: int) -> None:
        pairs = [(number, n) for n in self.list_others(number)]
        self.lab.cluster.cut([*pairs, *((b, a) for a, b in pairs)])

    def describe(self) -> str:
        return "\n".join(
            f"{node.name}: {node.run(['crm_mon', '--one-shot']).out}"
            for node in self.lab.nodes.values()
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    lab = Lab(tmp_path_factory.mktemp("p") / "l")
    witness = Witness(lab)
    try:
        for number in lab.nodes:
            assert lab.power_on(number)
            (lab.nodes[number].root / "srv/ganeti/shared-file-storage").mkdir(exist_ok=True)
        wait_for(
            lambda: "with quorum" in lab.nodes[1].run(["crm_mon", "--one-shot"]).out,
            lambda: lab.nodes[1].run(["crm_mon", "--one-shot"]).out,
            PATIENCE,
            pause=0.5,
        )
        witness.start()
        yield Site(lab)
    finally:
        if witness.is_alive():
            witness.end()
        if target := os.environ.get("PACEMAKER_LOGS"):
            for path in (*lab.directory.glob("*.log"), *lab.directory.glob("nodes/*/var/log/*/*")):
                copy = Path(target) / path.relative_to(lab.directory)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.is_file():
                    shutil.copyfile(path, copy)
        lab.destroy()
    assert witness.looks > 100
    assert witness.doubles == [], "two nodes had the role at the same time"


def test_the_meta_data_are_what_pacemaker_and_pcs_read(site: Site) -> None:
    for name in ("ganeti-master-role", "ganeti-nodes"):
        text = site.lab.do(f"crm_resource --show-metadata ocf:ganeti:{name}")
        assert f'<resource-agent name="{name}"' in text
        assert f"ocf:ganeti:{name}" in site.lab.do(f"pcs resource describe ocf:ganeti:{name}")
        for words in (
            ["--dtdvalid", "/usr/share/resource-agents/ra-api-1.dtd"],
            ["--relaxng", "/usr/share/pcs/data/ocf-1.1.rng"],
        ):
            if Path(words[1]).exists():
                argv = ["xmllint", "--noout", *words, "-"]
                done = subprocess.run(argv, input=text.encode(), capture_output=True, check=False)
                assert done.returncode == 0, done.stderr


def test_the_resources_join_the_running_daemons(site: Site) -> None:
    pids = [site.node(1).pid(MASTERD), *(node.pid(NODED) for node in site.lab.nodes.values())]
    site.lab.do(SET_UP)
    site.lab.do("crm_resource --wait --timeout=60s")
    assert "ganeti-master is running on: node1.example.com" in site.lab.do(
        "crm_resource --locate --resource=ganeti-master 2>&1"
    ).replace("resource ", "")
    ran = site.node(1).gnt(USE_PACEMAKER)
    assert ran.code == 0, ran.err
    after = [site.node(1).pid(MASTERD), *(node.pid(NODED) for node in site.lab.nodes.values())]
    assert after == pids, "nothing was started again"
    assert site.wait_for_health() == 1


def test_an_administrator_moves_the_master(site: Site) -> None:
    refused = site.node(2).gnt("cluster master-failover")
    assert refused.code == constants.EXIT_NOTMASTER
    site.lab.do("crm_resource --move --resource=ganeti-master --node=node2.example.com")
    assert site.wait_for_master(without=1) == 2
    site.lab.do("crm_resource --clear --resource=ganeti-master")
    assert site.wait_for_health() == 2
    assert site.lab.list_fenced() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_master_daemon_that_dies_or_hangs_is_replaced(site: Site, number: signal.Signals) -> None:
    master = site.wait_for_master()
    before = site.node(master).pid(MASTERD)
    assert site.node(master).signal(MASTERD, number)
    wait_for(lambda: site.node(master).pid(MASTERD) != before, "its end", PATIENCE, pause=0.2)
    site.wait_for_health()
    assert site.lab.list_fenced() == []


def test_a_master_that_is_cut_off_is_fenced_and_replaced(site: Site) -> None:
    old = site.wait_for_master()
    site.isolate(old)
    new = site.wait_for_master(without=old)
    assert site.lab.list_fenced()[-1:] == [site.node(old).name]
    site.change(new)
    site.lab.cluster.heal()
    site.wait_for_health()


def test_a_master_whose_pacemaker_dies_is_fenced(site: Site) -> None:
    old = site.wait_for_master()
    count = len(site.lab.list_fenced())
    site.lab.do("kill -9 $(cat /run/corosync.pid)", old)
    site.wait_for_master(without=old)
    assert site.lab.list_fenced()[count:] == [site.node(old).name]
    site.wait_for_health()


def test_without_quorum_there_is_no_master(site: Site) -> None:
    last = site.wait_for_master()
    for number in site.list_others(last):
        site.lab.cut_power(number)
    wait_for(lambda: site.lab.find_masters() == [], "the end of the master", 60, pause=0.2)
    assert site.node(last).pid(NODED) is not None, "it looks after the guests"
    refused = site.node(last).start(MASTERD)
    assert refused.code in (constants.EXIT_FAILURE, constants.EXIT_NOTMASTER)
    site.wait_for_health()


def test_random_faults(site: Site) -> None:
    chance = random.Random(SEED)
    for number in range(int(FAULTS)):
        master = site.wait_for_health()
        node = chance.choice([master, master, *site.list_others(master)])
        fault = chance.choice(["cut", "cut", "power", "kill", "freeze", "kill noded", "leave"])
        print(f"{number}: {fault} at node{node}, the master is node{master}", flush=True)
        begun = time.monotonic()
        if fault == "cut":
            site.isolate(node)
        elif fault == "power":
            site.lab.cut_power(node)
        elif fault == "kill":
            site.node(master).signal(MASTERD, signal.SIGKILL)
        elif fault == "freeze":
            site.node(master).signal(MASTERD, signal.SIGSTOP)
        elif fault == "kill noded":
            site.node(node).signal(NODED, signal.SIGKILL)
        else:
            site.node(node).run(["crm_standby", "-v", "on"])
        gone = fault in ("cut", "power", "leave") and node == master
        new = site.wait_for_master(without=master if gone else 0)
        print(f"   node{new} after {time.monotonic() - begun:.0f} s", flush=True)
        site.change(new)
        site.lab.cluster.heal()
        if fault == "leave":
            site.node(node).run(["crm_standby", "-D"])
    site.wait_for_health()


def test_the_nodes_vote_again(site: Site) -> None:
    master = site.wait_for_health()
    pid = site.node(master).pid(MASTERD)
    ran = site.node(master).gnt("cluster modify --master-vote=nodes")
    assert ran.code == 0, ran.err
    site.lab.do("pcs resource delete ganeti-master")
    assert site.node(master).pid(MASTERD) == pid
    assert not site.node(master).paths.master_grant.exists()
    assert site.node(master).gnt("cluster verify").code == 0
