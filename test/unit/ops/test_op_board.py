"""What the placement model is told of a cluster."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from op_samples import config, node, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.model.instance import Instance
from ganeti.ops.board.claims import Claim
from ganeti.ops.board.convert import Converter
from ganeti.ops.board.keeper import Boards
from ganeti.ops.board.node_answers import Answers, NodeFacts
from ganeti.placement import facts
from ganeti.rpc.objects import InstanceInfo

UNIT = ("file", "/srv")


def says(free: int = 8000, disk: int = 50_000, **running: int) -> NodeFacts:
    return NodeFacts(
        {"memory_total": 10_000, "memory_dom0": 1000, "memory_free": free, "cpu_total": 8},
        (100_000, disk),
        running={k: InstanceInfo(memory=m, vcpus=1, state=0) for k, m in running.items()},
    )


def answers(of: Config, **more: NodeFacts) -> Answers:
    told = {uuid: says() for uuid in of.nodes}
    return Answers(of, {**told, **{k.replace("_", "-"): v for k, v in more.items()}}, UNIT)


def convert(of: Config, what: Answers | None = None) -> facts.Cluster:
    return Converter().cluster(of, what or answers(of))


def node_of(cluster: facts.Cluster, number: int) -> facts.Node:
    [found] = [one for one in cluster.nodes if one.name.startswith(f"node{number}.")]
    return found


def add_reservation(of: Config, name: str, *places: str, **more: Any) -> Config:
    """A reservation of 128 MiB and a file of 1024 MiB."""
    disk = Disk(
        uuid=f"disk-{name}",  # type: ignore[arg-type]
        dev_type=DiskTemplate.FILE,
        logical_id=("loop", f"/srv/{name}/disk0") if places else (),
        nodes=places,  # type: ignore[arg-type]
        size=1024,
        forthcoming=True,
    )
    item = Instance(
        uuid=f"inst-{name}",  # type: ignore[arg-type]
        name=name,
        primary_node=places[0] if places else "",  # type: ignore[arg-type]
        disks=(disk.uuid,),
        forthcoming=True,
        **more,
    )
    return of.apply(
        [("disks", disk.uuid, disk), ("instances", item.uuid, item)], [], None, mtime=3.0
    )


def test_what_running_instances_may_still_take_is_not_free() -> None:
    of = with_instance(config(node(2)), "web1", "node-2", admin_state=AdminState.UP)
    assert node_of(convert(of), 2).free_memory == 8000 - 128
    partly = answers(of, node_2=says(web1=100))
    assert node_of(convert(of, partly), 2).free_memory == 8000 - 28
    down = with_instance(config(node(2)), "web1", "node-2", admin_state=AdminState.DOWN)
    assert node_of(convert(down), 2).free_memory == 8000


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"offline": True}, says()),
        ({"drained": True}, says()),
        ({"vm_capable": False}, says()),
        ({}, None),
        ({}, NodeFacts({"memory_total": 0, "memory_free": 0})),
        ({}, NodeFacts({"memory_total": None})),
        ({}, NodeFacts()),
    ],
)
def test_what_is_not_known_of_a_node_is_not_free(change: Any, answer: NodeFacts | None) -> None:
    of = config(node(2, **change))
    known = {uuid: says() for uuid in of.nodes if uuid != "node-2"}
    if answer is not None:
        known["node-2"] = answer
    found = node_of(convert(of, Answers(of, known, UNIT)), 2)
    assert (found.offline, found.memory, found.free_disk) == (True, 0, 0)


def test_reservations_are_told_as_such_and_need_no_node() -> None:
    of = add_reservation(add_reservation(config(node(2)), "batch1", "node-2"), "batch2")
    made = convert(of)
    by_name = {item.name: item for item in made.instances}
    assert by_name["batch1"].forthcoming
    assert (by_name["batch1"].primary, by_name["batch1"].disk) == ("node2.example.com", 1024)
    assert (by_name["batch2"].primary, by_name["batch2"].disk) == ("", 0)
    # The model takes them off itself.
    assert node_of(made, 2).free_disk == 50_000
    assert node_of(made, 2).free_memory == 8000


def test_what_is_being_made_counts_as_if_it_was_there() -> None:
    made = convert(add_reservation(config(node(2)), "web1", "node-2", creating=7))
    [item] = made.instances
    assert (item.forthcoming, item.runs) == (False, True)
    assert node_of(made, 2).free_disk == 50_000 - 1024
    assert node_of(made, 2).free_memory == 8000 - 128


def test_disks_made_after_the_nodes_were_asked_are_taken_off() -> None:
    before = add_reservation(config(node(2)), "web1", "node-2")
    asked = answers(before)
    disk, item = before.disks["disk-web1"], before.instances["inst-web1"]
    after = before.apply(
        [
            ("disks", disk.uuid, base.replace(disk, forthcoming=None)),
            ("instances", item.uuid, base.replace(item, forthcoming=None)),
        ],
        [],
        None,
        mtime=4.0,
    )
    assert node_of(convert(after, asked), 2).free_disk == 50_000 - 1024
    assert node_of(convert(after), 2).free_disk == 50_000
    grown = after.apply(
        [("disks", disk.uuid, base.replace(disk, forthcoming=None, size=1500))], [], None, mtime=5.0
    )
    assert node_of(convert(grown, answers(after)), 2).free_disk == 50_000 - 476


def test_the_converter_forgets_what_has_changed() -> None:
    of = with_instance(config(node(2)), "web1", "node-2")
    converter = Converter()
    first = converter.cluster(of, answers(of))
    assert converter.cluster(of, answers(of)).instances is first.instances
    item = of.instances["inst-web1"]
    more = base.replace(item, beparams={"maxmem": 512, "minmem": 512})
    changed = of.apply([("instances", item.uuid, more)], [], None, mtime=3.0)
    assert converter.cluster(changed, answers(of)).instances[0].memory == 512
    other = base.replace(of.nodes["node-2"], name="node9.example.com")  # type: ignore[index]
    renamed = changed.apply([("nodes", other.uuid, other)], [], None, mtime=4.0)
    assert converter.cluster(renamed, answers(renamed)).instances[0].primary == "node9.example.com"
    gone = changed.apply([], [("instances", item.uuid)], None, mtime=5.0)
    assert converter.cluster(gone, answers(of)).instances == ()


# places chosen a moment ago ----------------------------------------------------------------------


def claim(name: str, primary: str) -> Claim:
    takes = facts.Instance(name, 1000, 2000, 1, "running", True, primary, "", "plain")
    return Claim(name, (primary,), (takes,))


def free_on(boards: Boards, of: Config, job_id: int) -> tuple[int, int]:
    found = node_of(boards.cluster(of, answers(of), job_id), 2)
    return found.free_memory, found.free_disk


def test_a_chosen_place_counts_for_others_until_the_job_ends() -> None:
    of = config(node(2))
    boards = Boards()
    boards.claim(1, [claim("web1", "node2.example.com")])
    assert free_on(boards, of, 1) == (8000, 50_000)
    assert free_on(boards, of, 2) == (7000, 48_000)
    boards.release(1)
    assert free_on(boards, of, 2) == (8000, 50_000)


def test_a_chosen_place_counts_once_when_the_configuration_has_it() -> None:
    of = config(node(2))
    boards = Boards()
    boards.claim(1, [claim("web1", "node2.example.com")])
    there = add_reservation(of, "web1", "node-2", creating=1)
    assert free_on(boards, there, 2) == (8000 - 128, 50_000 - 1024)


def test_a_place_that_was_handed_over_lasts_until_that_job_has_ended() -> None:
    of = config(node(2))
    ended: set[int] = set()
    boards = Boards(ended.__contains__)
    boards.claim(1, [claim("web1", "node2.example.com"), claim("web2", "node2.example.com")])
    boards.hand_over(1, {"web1": 5})
    boards.release(1)
    assert free_on(boards, of, 9) == (7000, 48_000)
    assert free_on(boards, of, 5) == (8000, 50_000)
    boards.release(5)
    assert free_on(boards, of, 9) == (7000, 48_000)
    ended.add(5)
    assert free_on(boards, of, 9) == (8000, 50_000)


def test_nobody_looks_or_claims_while_somebody_decides() -> None:
    of = config(node(2))
    boards = Boards()
    looked = threading.Event()

    def read_free() -> None:
        with boards.decision():
            free_on(boards, of, 2)
            looked.set()

    thread = threading.Thread(target=read_free)
    with boards.decision():
        thread.start()
        assert not looked.wait(0.1)
        boards.claim(1, [claim("web1", "node2.example.com")])
    thread.join(10)
    assert looked.is_set()
