"""The allocator inside, in a cluster of one process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.locking.levels import LockLevel
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import EvacMode, InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate, OpInstanceMultiAlloc
from ganeti.opcodes.instance_disks import OpInstanceRecreateDisks
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.opcodes.node import OpNodeEvacuate, OpNodeSetParams
from ganeti.opcodes.reservation import OpReservationAdd
from ganeti.ops.allocator import ask, gather
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.board.keeper import Boards
from ganeti.ops.board.node_answers import Answers
from ganeti.ops.operation import Context
from ganeti.ops.runner import OpExecution, Runner


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(
        tmp_path / "cluster",
        count=3,
        default_iallocator="hail",
        default_iallocator_params={"no-capacity-checks": None},
    )
    free(made, 3000, 3000, 3000)
    yield made
    made.close()


def free(cluster: OneProcess, *memory: int) -> None:
    """What each node says of its free memory, in MiB."""
    for paths, amount in zip(cluster.paths.values(), memory):
        lie = {"memory_free": amount, "memory_total": 10000, "memory_dom0": 0, "cpu_total": 8}
        rules = {"node_info": {"*": {"lie": lie}}}
        (paths.conf / "fake-hypervisor.json").write_text(json.dumps(rules))


def create(name: str, memory: int = 2000, **more: Any) -> OpInstanceCreate:
    values: dict[str, Any] = {
        "instance_name": f"{name}.example.com",
        "mode": InstCreateMode.CREATE,
        "nics": [],
        "disks": [DiskParams(size=8)],
        "os_type": "noop",
        "disk_template": DiskTemplate.SHAREDFILE,
        "beparams": {"maxmem": memory, "minmem": memory, "vcpus": 1},
        "start": False,
        **more,
    }
    return OpInstanceCreate(**values)


def primary(cluster: OneProcess, name: str) -> str:
    item = cluster.instance(f"{name}.example.com")
    return cluster.config.nodes[item.primary_node].name.partition(".")[0]


def job(cluster: OneProcess, number: int) -> Any:
    return SimpleNamespace(
        job_id=number,
        priority=0,
        submitter=None,
        cancel_asked=threading.Event(),
        log=lambda text, kind="message": cluster.log.append(str(text)),
        stop_requested=lambda: False,
    )


def test_no_program_is_run(cluster: OneProcess) -> None:
    free(cluster, 3000, 9000, 3000)
    cluster.run(create("web1"))
    assert primary(cluster, "web1") == "node2"
    assert not any("iallocator_runner" in step for step in cluster.steps)


def test_a_program_of_that_name_takes_its_place(cluster: OneProcess) -> None:
    directory = cluster.paths["node1"].iallocator_search_path[0]
    directory.mkdir(parents=True)
    path = directory / "hail"
    path.write_text(
        '#!/bin/sh\necho \'{"success": true, "info": "", "result": ["node3.example.com"]}\'\n'
    )
    path.chmod(0o755)
    free(cluster, 3000, 9000, 3000)
    cluster.run(create("web1"))
    assert primary(cluster, "web1") == "node3"


def test_a_program_is_told_of_places_that_were_chosen_a_moment_ago(cluster: OneProcess) -> None:
    first, places = begin(cluster, 101, create("web1"))
    [name] = [node.name for node in cluster.config.nodes.values() if node.uuid in places]
    told = json.loads(ask.format_request(cluster._context(job(cluster, 102)), {}))
    assert {key: node["free_memory"] for key, node in told["nodes"].items()} == {
        f"node{n}.example.com": 1000 if f"node{n}.example.com" == name else 3000 for n in (1, 2, 3)
    }
    assert told["instances"]["web1.example.com"]["nodes"] == [name]
    first.close()
    later = json.loads(ask.format_request(cluster._context(job(cluster, 103)), {}))
    assert later["nodes"][name]["free_memory"] == 3000


def test_what_is_set_aside_on_a_node_is_not_chosen(cluster: OneProcess) -> None:
    """``hv_state`` of a node, and of the whole cluster."""
    free(cluster, 3000, 9000, 3500)
    aside = {"fake": {"mem_node": 8000}}
    cluster.run(OpNodeSetParams(node_name="node2.example.com", hv_state=aside))
    cluster.run(create("web1"))
    assert primary(cluster, "web1") == "node3"
    cluster.run(OpClusterSetParams(hv_state=aside))
    with pytest.raises(errors.OpPrereqError, match=r"needs another .* MiB of memory"):
        cluster.run(create("web2"))
    cluster.run(OpNodeSetParams(node_name="node1.example.com", hv_state={"fake": {"mem_node": 0}}))
    cluster.run(create("web3"))
    assert primary(cluster, "web3") == "node1"


def test_what_is_set_aside_of_a_volume_group_is_not_free(cluster: OneProcess) -> None:
    """``disk_state``, which also bounds the size."""
    state = {"plain": {"xenvg": {"disk_reserved": 100, "disk_overhead": 20, "disk_total": 900}}}
    cluster.run(OpNodeSetParams(node_name="node2.example.com", disk_state=state))
    told = {"storage_size": 1000, "storage_free": 500}
    rooms = {}
    for node in cluster.config.nodes.values():
        for name in ("xenvg", "other"):
            units = [("lvm-vg", name, [])]
            facts = gather.describe(cluster.config, node, units, [told], {}, {})
            rooms[node.name.partition(".")[0], name] = facts.room
    assert rooms.pop(("node2", "xenvg")) == (900, 500 - 100 - 120)
    assert set(rooms.values()) == {(1000, 500)}


# at the same moment ------------------------------------------------------------------------------


def begin(cluster: OneProcess, number: int, op: OpInstanceCreate) -> tuple[OpExecution, set[str]]:
    """A job up to the moment when it has chosen nodes; with the nodes."""
    execution = Runner(cluster._context).start(op, job(cluster, number))
    while (need := execution.advance()) is not None:
        if need.level == LockLevel.NODE_RES:
            return execution, set(need.names or ())
        cluster._lock(number, need)
    raise AssertionError("no nodes were chosen")


def test_a_chosen_place_counts_before_it_is_recorded(cluster: OneProcess) -> None:
    first, places = begin(cluster, 101, create("web1"))
    second, others = begin(cluster, 102, create("web2"))
    third, rest = begin(cluster, 103, create("web3"))
    assert len(places | others | rest) == 3
    with pytest.raises(errors.OpPrereqError, match="needs another 1001 MiB of memory"):
        begin(cluster, 104, create("web4"))
    cluster.locks.release(104)
    second.close()
    _fourth, again = begin(cluster, 105, create("web4"))
    assert again == others
    for execution in (first, third):
        execution.close()


def test_two_requests_that_saw_the_same_do_not_get_the_same(
    cluster: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ask the nodes, and only when all have their answers the first one decides."""
    everybody = threading.Barrier(3)
    asked = gather.ask_nodes

    def ask_nodes(ctx: Context, *args: Any) -> Answers:
        found = asked(ctx, *args)
        everybody.wait(20)
        return found

    monkeypatch.setattr(gather, "ask_nodes", ask_nodes)
    found: dict[int, str] = {}

    def choose(number: int) -> None:
        new = NewInstance(f"web{number}", "diskless", 2000, 1, [], [], "fake")
        [node] = ask.place(cluster._context(job(cluster, number)), "hail", new)
        found[number] = node.name

    threads = [threading.Thread(target=choose, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == len(set(found.values())) == 3


def test_a_place_is_kept_for_the_jobs_of_a_batch(cluster: OneProcess) -> None:
    ended: set[int] = set()
    cluster.boards = Boards(ended.__contains__)
    result = cluster.run(OpInstanceMultiAlloc(instances=[create("web1"), create("web2")]))
    assert result["allocatable"] == ["web1.example.com", "web2.example.com"]
    first, rest = begin(cluster, 101, create("web3"))
    first.close()
    other, _ = begin(cluster, 102, create("web4"))
    with pytest.raises(errors.OpPrereqError, match="needs another"):
        begin(cluster, 103, create("web5"))
    assert len(rest) == 1
    ended |= {job_id for _accepted, job_id in result["jobs"]}
    other.close()
    cluster.locks.release(103)
    places = [begin(cluster, number, create(f"new{number}"))[1] for number in (111, 112, 113)]
    assert len(set.union(*places)) == 3


# what it is asked --------------------------------------------------------------------------------


def test_a_refusal_is_told_as_data(cluster: OneProcess) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        cluster.run(create("web1", 4000))
    text, code, data = caught.value.args
    assert code == "insufficient_resources"
    assert "node1.example.com needs another 1001 MiB of memory" in text
    [group] = data["groups"]
    assert {node["node"]: node["missing"] for node in group["nodes"]} == {
        f"node{n}.example.com": {"memory": 1001} for n in (1, 2, 3)
    }
    assert errors.decode(json.loads(json.dumps(errors.encode(caught.value)))) is not None


def test_the_refusals_of_a_batch_are_told_as_data(cluster: OneProcess) -> None:
    small, large = create("web1"), create("web2", 4000)
    found = cluster.run(OpInstanceMultiAlloc(instances=[small, large], iallocator="hail"))
    assert found["failed"] == ["web2.example.com"]
    [group] = found["refusals"]["web2.example.com"]["groups"]
    assert {tuple(node["missing"]) for node in group["nodes"]} == {("memory",)}
    with pytest.raises(errors.OpPrereqError, match="so none is reserved") as caught:
        cluster.run(OpReservationAdd(instances=[small, large], iallocator="hail"))
    assert list(caught.value.args[2]) == ["web2.example.com"]


def test_the_loss_of_a_node_can_be_made_good(tmp_path: Path) -> None:
    made = OneProcess(tmp_path / "careful", count=3, default_iallocator="hail")
    free(made, 3000, 3000, 3000)
    made.run(create("web1"))
    made.run(create("web2"))
    with pytest.raises(errors.OpPrereqError, match=r"then nothing could replace .*\(N\+1\)"):
        made.run(create("web3"))
    made.close()


def test_nodes_that_do_not_answer_get_nothing(cluster: OneProcess) -> None:
    free(cluster, 3000, 9000, 9000)
    cluster.silent.add(cluster.node(2).uuid)
    cluster.run(create("web1"))
    assert primary(cluster, "web1") == "node3"
    assert any("left out of the choice" in line for line in cluster.log)


def test_policy_is_only_ignored_when_that_is_asked_for(cluster: OneProcess) -> None:
    with pytest.raises(errors.OpPrereqError, match="is not between"):
        cluster.run(create("web1", beparams={"vcpus": 9}))
    cluster.run(create("web1", beparams={"vcpus": 9}, ignore_ipolicy=True))
    assert cluster.instance("web1.example.com").primary_node


def test_a_batch_of_reservations_is_one_decision(cluster: OneProcess) -> None:
    many = [create(f"r{n}", forthcoming=True) for n in range(3)]
    cluster.run(OpReservationAdd(instances=many))
    assert {primary(cluster, f"r{n}") for n in range(3)} == {"node1", "node2", "node3"}
    with pytest.raises(errors.OpPrereqError, match="needs another"):
        cluster.run(OpReservationAdd(instances=[create("r9", forthcoming=True)]))


def test_a_reservation_without_a_node_hinders_nobody(cluster: OneProcess) -> None:
    bare = OpInstanceCreate(
        instance_name="bare.example.com",
        mode=InstCreateMode.CREATE,
        nics=[],
        disks=[],
        forthcoming=True,
        disk_template=None,
    )
    cluster.run(bare)
    cluster.run(create("web1"))
    assert cluster.instance("web1.example.com").primary_node


def test_a_node_is_left_by_all(cluster: OneProcess) -> None:
    cluster.run(create("web1", 500, pnode="node1.example.com"))
    cluster.run(create("web2", 500, pnode="node1.example.com"))
    cluster.run(OpNodeSetParams(node_name="node1.example.com", master_candidate=True))
    op = OpNodeEvacuate(node_name="node1.example.com", mode=EvacMode.ALL)
    result = cluster.run(op)
    assert len(result["jobs"]) == 2
    assert any("Moving web1.example.com to node(s)" in line for line in cluster.log)


def test_a_shared_instance_moves_to_another_node(cluster: OneProcess) -> None:
    cluster.run(create("web1", 500, pnode="node1.example.com", start=True))
    free(cluster, 3000, 100, 9000)
    cluster.run(OpInstanceMigrate(instance_name="web1.example.com"))
    assert primary(cluster, "web1") == "node3"


def test_lost_disks_are_made_again_where_there_is_room(cluster: OneProcess) -> None:
    made = create("web1", 500, pnode="node1.example.com", disk_template=DiskTemplate.FILE)
    cluster.run(made)
    free(cluster, 600, 100, 9000)
    [disk] = cluster.instance("web1.example.com").disks
    cluster.image(disk).unlink()
    op = OpInstanceRecreateDisks(instance_name="web1.example.com", iallocator="hail")
    cluster.run(op)
    assert primary(cluster, "web1") == "node3"
    assert cluster.image(disk).exists()
