"""What proves that a node is dead, and who starts elsewhere then."""

from __future__ import annotations

from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.config import ssconf
from ganeti.config.changes import Author, Draft
from ganeti.model.drivers import DiskTemplate
from ganeti.node import fence_agents
from ganeti.opcodes import registry, wire
from ganeti.opcodes.cluster import OpClusterPauseRecovery, OpClusterPlanRecovery
from ganeti.opcodes.node import OpNodeFence
from ganeti.ops.services import LeaseEnd
from ganeti.storage.registry import TEMPLATES

NODE2 = "node2.example.com"
WEB, DB, FILES = "web1.example.com", "db1.example.com", "files1.example.com"
#: A switch of power: a file says whether the host is on. ``lies``: it stays on, and off is said.
AGENT = """#!/bin/sh
read_all=$(cat)
echo "$read_all" >> {log}
case "$read_all" in
  *passwd=wrong*) echo "login failed" >&2; exit 1;;
  *action=off*) {off};;
  *action=status*) {status};;
esac
"""


class Agent:
    """``fence_stub`` for node2."""

    def __init__(self, cluster: OneProcess, off: str = "rm -f {power}") -> None:
        paths = cluster.paths["node1"]
        self.power, self.log = paths.root / "power", paths.root / "agent.log"
        self.power.touch()
        program = paths.fence_agent_search_path[0] / "fence_stub"
        program.parent.mkdir(parents=True)
        program.write_text(
            AGENT.format(
                log=self.log,
                off=off.format(power=self.power),
                status=f"test -e {self.power} || exit 2",
            )
        )
        program.chmod(0o755)
        self.parameters = paths.fence_parameters / NODE2
        self.parameters.parent.mkdir(parents=True)
        self.write("# the rack\nip=192.0.2.9\npasswd=secret\n")
        set_ndparams(cluster, fence_agent="fence_stub")

    def write(self, text: str, mode: int = 0o600) -> None:
        self.parameters.write_text(text)
        self.parameters.chmod(mode)


def set_ndparams(cluster: OneProcess, **values: Any) -> None:
    node = cluster.node(2)
    cluster.store.change("test", Author(), lambda draft: draft.update(node, ndparams=values))


def add(cluster: OneProcess, name: str, template: str = "sharedfile", **more: Any) -> None:
    params: dict[str, Any] = {
        "instance_name": name,
        "mode": "create",
        "os_type": "noop",
        "disk_template": template,
        "disks": [{"size": 1}],
        "nics": [],
        "pnode": NODE2,
        **more,
    }
    cluster.run(wire.decode(registry.find("OP_INSTANCE_CREATE"), params))


def fence(cluster: OneProcess, **how: Any) -> dict[str, Any]:
    result: dict[str, Any] = cluster.run(OpNodeFence(node_name=NODE2, **how))
    return result


def kill(cluster: OneProcess) -> None:
    cluster.silent.add(cluster.node(2).uuid)


def test_the_agent_switches_the_node_off(cluster: OneProcess) -> None:
    agent = Agent(cluster)
    kill(cluster)
    done = fence(cluster)
    assert done["proof"] == "fence_stub has switched it off, and says that it is off"
    assert not agent.power.exists()
    assert "ip=192.0.2.9\npasswd=secret\naction=off\n" in agent.log.read_text()
    assert cluster.held_back.count(cluster.node(2).uuid) >= 1
    assert not any("secret" in line for line in cluster.log)


def test_an_agent_that_leaves_the_node_on_proves_nothing(cluster: OneProcess) -> None:
    Agent(cluster, off=":")
    kill(cluster)
    with pytest.raises(errors.OpExecError, match="says that it is still on"):
        fence(cluster)


def test_a_device_that_lies_meets_a_node_that_answers(cluster: OneProcess) -> None:
    """It says off and is on: the lease is waited for, and then the node is called again."""
    Agent(cluster)
    kill(cluster)
    cluster.lease_end = LeaseEnd(cluster.clock.monotonic() + 0.6, watchdog=False)
    node, before = cluster.node(2).uuid, len(cluster.steps)
    cluster.store.step = lambda _what: None  # type: ignore[method-assign]

    def revive(text: str) -> None:
        if "lease of node" in text:
            cluster.silent.discard(node)

    class Log(list[str]):
        def append(self, text: str) -> None:
            revive(text)
            super().append(text)

    cluster.log = Log()
    with pytest.raises(errors.OpExecError, match="the node answers, so it is not dead"):
        fence(cluster)
    assert len(cluster.steps) > before
    assert not cluster.node(2).offline


def test_a_watchdog_proves_death_when_the_lease_is_over(cluster: OneProcess) -> None:
    kill(cluster)
    end = cluster.clock.monotonic() + 0.3
    cluster.lease_end = LeaseEnd(end, watchdog=True)
    assert fence(cluster)["proof"] == "its lease is over, and its watchdog has reset it by then"
    assert cluster.clock.monotonic() >= end


def test_silence_alone_proves_nothing(cluster: OneProcess) -> None:
    kill(cluster)
    cluster.lease_end = LeaseEnd(0.0, watchdog=False)
    with pytest.raises(errors.OpPrereqError, match="nothing can prove that node node2"):
        fence(cluster)
    assert "confirmed" in fence(cluster, confirm=True)["proof"]


def test_the_policy_says_who_fails_over(cluster: OneProcess) -> None:
    add(cluster, WEB, beparams={"ha": "failover"})
    add(cluster, DB, beparams={"ha": "restart"})
    add(cluster, FILES)
    kill(cluster)
    done = fence(cluster, confirm=True)
    assert len(done["jobs"]) == 2  # the role of the node, and web1
    assert {item["instance"]: item["reason"] for item in done["left"]} == {
        DB: "its backend parameter ha is restart, so it starts when the node is back",
        FILES: "tag ganeti:watcher:autorepair:failover is missing on it, its group and the cluster",
    }


def test_a_test_of_the_devices_changes_nothing(cluster: OneProcess) -> None:
    with pytest.raises(errors.OpExecError, match="no fence agent, no out-of-band helper and no"):
        fence(cluster, test=True)
    agent = Agent(cluster)
    assert fence(cluster, test=True)["test"] == [
        "fence agent fence_stub says that it is on",
        "watchdog: none is on",
        "the node answers",
    ]
    agent.power.unlink()
    with pytest.raises(errors.OpExecError, match="says that it is off, but it answers"):
        fence(cluster, test=True)
    agent.write("passwd=wrong\n")
    with pytest.raises(errors.OpExecError, match="login failed"):
        fence(cluster, test=True)


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("passwd=secret\n", 0o640, "can be read by others than root: chmod 600"),
        ("passwd secret\n", 0o600, "entry 1 of .* is not name=value"),
        ("ip=1\naction=on\n", 0o600, "entry 2 of .* sets the action"),
    ],
)
def test_parameters_that_cannot_be_used(
    cluster: OneProcess, text: str, mode: int, problem: str
) -> None:
    agent = Agent(cluster)
    agent.write(text, mode)
    with pytest.raises(errors.ParameterError, match=problem) as caught:
        fence_agents.run(cluster.paths["node1"], "fence_stub", "status", NODE2, 5)
    assert "secret" not in str(caught.value)


def test_agents_and_nodes_are_names_only(cluster: OneProcess) -> None:
    paths = cluster.paths["node1"]
    for agent, node in (("../bin/sh", NODE2), ("fence_stub", "../passwd"), ("sh", NODE2)):
        with pytest.raises(errors.ParameterError):
            fence_agents.run(paths, agent, "status", node, 5)
    with pytest.raises(errors.ParameterError, match="package fence-agents"):
        fence_agents.run(paths, "fence_nothing_here", "status", NODE2, 5)


# what is remembered ----------------------------------------------------------------------------


def set_offline(cluster: OneProcess, *, offline: bool, proof: str | None = None) -> None:
    params = {"node_name": NODE2, "offline": offline, "auto_promote": True, "proof": proof}
    cluster.run(wire.decode(registry.find("OP_NODE_SET_PARAMS"), params))


def test_a_proof_counts_until_the_node_is_back(cluster: OneProcess) -> None:
    set_offline(cluster, offline=True, proof="the rack burned")
    assert cluster.node(2).is_proven_dead
    kill(cluster)
    assert fence(cluster)["proof"] == "the rack burned"
    cluster.silent.clear()
    set_offline(cluster, offline=False)
    fenced = cluster.node(2).fenced
    assert fenced is not None
    assert fenced.over is not None
    set_offline(cluster, offline=True)  # it may be alive now
    assert not cluster.node(2).is_proven_dead
    with pytest.raises(errors.OpPrereqError, match="only a node that is set offline"):
        set_offline(cluster, offline=False, proof="none")


def test_attempts_are_counted_for_each_death(cluster: OneProcess) -> None:
    add(cluster, WEB, beparams={"ha": "failover"})
    set_offline(cluster, offline=True, proof="one")
    kill(cluster)
    numbers = []
    for _ in range(2):
        fence(cluster)
        attempt = cluster.config.instance(WEB).recovery
        assert attempt is not None
        assert attempt.source == cluster.node(2).uuid
        numbers.append(attempt.number)
    cluster.silent.clear()
    set_offline(cluster, offline=False)
    set_offline(cluster, offline=True, proof="two")
    kill(cluster)
    fence(cluster)
    attempt = cluster.config.instance(WEB).recovery
    assert attempt is not None
    assert [*numbers, attempt.number] == [1, 2, 1]


@pytest.mark.parametrize("moment", ["before change node-fence-claim", "before change node-fence"])
def test_two_jobs_that_fence_a_node_start_each_instance_once(
    cluster: OneProcess, moment: str
) -> None:
    """The master and an administrator fence the node at the same moment, and again later."""
    for name in (WEB, DB):
        add(cluster, name, beparams={"ha": "failover"})
    kill(cluster)
    cluster.unended = range(1000)
    other: list[dict[str, Any]] = []

    def fence_too(what: str) -> None:
        if what == moment and not other:
            other.append({})
            other[0] = fence(cluster, confirm=True)

    cluster.store.step = fence_too  # type: ignore[method-assign]
    done = fence(cluster, confirm=True)
    fence(cluster, confirm=True)
    assert sorted(op.instance_name for op in list_failovers(cluster)) == [DB, WEB]
    assert sorted([len(done["jobs"]), len(other[0]["jobs"])]) == [1, 3]
    set_offline(cluster, offline=True, proof="x")
    cluster.unended = ()
    fence(cluster, confirm=True)  # those jobs ended, and the instances are still there
    assert len(list_failovers(cluster)) == 4


def test_recovery_pauses_and_goes_on(cluster: OneProcess) -> None:
    until = cluster.run(OpClusterPauseRecovery(duration=60))
    assert cluster.config.cluster.find_recovery_pause(until - 1) == until
    assert cluster.config.cluster.find_recovery_pause(until) is None
    assert cluster.run(OpClusterPauseRecovery(duration=0)) is None
    assert cluster.config.cluster.recovery_paused_until is None
    with pytest.raises(errors.OpPrereqError, match="more than 30 days"):
        cluster.run(OpClusterPauseRecovery(duration=10**9))


# where they start ------------------------------------------------------------------------------


def change(cluster: OneProcess, name: str, **values: Any) -> None:
    item = cluster.config.instance(name)
    cluster.store.change("test", Author(), lambda draft: draft.update(item, **values))


def plan(cluster: OneProcess, node: str = NODE2) -> dict[str, Any]:
    result: dict[str, Any] = cluster.run(OpClusterPlanRecovery(node_name=node))
    return result


def test_the_plan_of_a_death_is_what_the_death_does(cluster: OneProcess) -> None:
    for name, order in ((WEB, 20), (DB, 10)):
        add(cluster, name, beparams={"ha": "failover"})
        change(cluster, name, tags=(f"ganeti:order:{order}",))
    add(cluster, FILES, template="file")
    change(cluster, FILES, beparams={"ha": "failover"})
    found = plan(cluster)
    assert [(item["instance"], item["order"]) for item in found["starts"]] == [(DB, 10), (WEB, 20)]
    assert [item["instance"] for item in found["left"]] == [FILES]
    assert found["moments"][-1]["text"] == "nothing more by itself: auto_fence_after is not set"
    assert not cluster.node(2).offline
    kill(cluster)
    fence(cluster, confirm=True)
    done = list_failovers(cluster)
    assert [op.instance_name for op in done] == [item["instance"] for item in found["starts"]]
    # Which of the two is better depends on the memory that this machine has free at the moment.
    goals = {op.target_node for op in done} | {item["node"] for item in found["starts"]}
    assert goals <= {"node1.example.com", "node3.example.com"}
    set_offline(cluster, offline=True, proof="x")
    with pytest.raises(errors.OpPrereqError, match="is offline; gnt-cluster recovery status"):
        plan(cluster)


def list_failovers(cluster: OneProcess) -> list[Any]:
    return [op for job in cluster.submitted for op in job if op.op_id == "OP_INSTANCE_FAILOVER"]


#: Each template, and two mixtures: whether an instance with such disks starts elsewhere.
STARTS: dict[tuple[str, ...], bool] = {
    (): True,
    ("blockdev",): True,
    ("drbd",): True,
    ("ext",): True,
    ("file",): False,
    ("gluster",): True,
    ("plain",): False,
    ("rbd",): True,
    ("sharedfile",): True,
    ("rbd", "ext"): True,
    ("drbd", "gluster"): True,
    ("rbd", "plain"): False,
}


def set_disks(cluster: OneProcess, name: str, kinds: tuple[str, ...]) -> None:
    """Make the disks of an instance those of other templates, in the configuration only."""
    item = cluster.config.instance(name)

    def edit(draft: Draft) -> None:
        for disk, kind in zip(draft.config.disks_of(item), kinds, strict=True):
            nodes = [cluster.node(n).uuid for n in ((2, 3) if kind == "drbd" else (2,))]
            draft.update(disk, dev_type=DiskTemplate(kind), nodes=tuple(nodes))

    cluster.store.change("test", Author(), edit)


def test_every_template_is_known_here() -> None:
    assert {kind for kinds in STARTS for kind in kinds} == set(TEMPLATES.names())


@pytest.mark.parametrize("kinds", STARTS, ids=lambda kinds: "+".join(kinds) or "diskless")
def test_disks_decide_who_starts_elsewhere(cluster: OneProcess, kinds: tuple[str, ...]) -> None:
    """In the plan and by the fence, each with a node: no default allocator is needed."""
    disks = [{"size": 1} for _kind in kinds]
    template = "sharedfile" if kinds else "diskless"
    add(cluster, WEB, template=template, disks=disks, beparams={"ha": "failover"})
    set_disks(cluster, WEB, kinds)
    assert list_on_nodes(cluster) == (WEB if STARTS[kinds] else "")
    found = plan(cluster)
    kill(cluster)
    done = fence(cluster, confirm=True)
    if not STARTS[kinds]:
        alone = kinds[-1]
        reason = f"its disks ({alone}) are only on that node"
        assert found["left"] == done["left"] == [{"instance": WEB, "reason": reason}]
        assert list_failovers(cluster) == []
        return
    goals = {"node3.example.com"} if "drbd" in kinds else {"node1.example.com", "node3.example.com"}
    assert found["starts"][0]["node"] in goals
    (op,) = list_failovers(cluster)
    assert op.target_node in goals


def test_what_has_no_room_waits_and_takes_none_from_others(cluster: OneProcess) -> None:
    for name in (WEB, DB):
        add(cluster, name, beparams={"ha": "failover"})
    big = {"ha": "failover", "minmem": 2**30, "maxmem": 2**30}
    change(cluster, DB, beparams=big, tags=("ganeti:order:1",))
    found = plan(cluster)
    assert [item["instance"] for item in found["starts"]] == [WEB]
    (waits,) = found["waits"]
    assert waits["instance"] == DB
    assert "needs another" in waits["reason"]
    kill(cluster)
    done = fence(cluster, confirm=True)
    assert [op.instance_name for op in list_failovers(cluster)] == [WEB]
    assert [item["reason"].partition(":")[0] for item in done["left"]] == ["no room"]


def list_on_nodes(cluster: OneProcess) -> str:
    """Instances that a node without a lease ends."""
    return ssconf.values(cluster.config)["ha_instances"]


def test_the_policy_is_that_of_the_instance_then_of_its_group_then_of_the_cluster(
    cluster: OneProcess,
) -> None:
    def start_names() -> list[str]:
        return [item["instance"] for item in plan(cluster)["starts"]]

    add(cluster, WEB)
    add(cluster, DB, beparams={"ha": "restart"})
    assert (start_names(), list_on_nodes(cluster)) == ([], "")
    set_group = wire.decode(
        registry.find("OP_GROUP_SET_PARAMS"),
        {"group_name": "default", "beparams": {"ha": "failover"}},
    )
    cluster.run(set_group)
    assert (start_names(), list_on_nodes(cluster)) == ([WEB], WEB)
    change(cluster, DB, beparams={})
    assert start_names() == [DB, WEB]
    for wrong, text in (
        ({"maxmem": 5}, "has no backend parameter 'maxmem'"),
        ({"ha": "x"}, "'ha'"),
    ):
        op = wire.decode(
            registry.find("OP_GROUP_SET_PARAMS"), {"group_name": "default", "beparams": wrong}
        )
        with pytest.raises(errors.ParameterError, match=text):
            cluster.run(op)
