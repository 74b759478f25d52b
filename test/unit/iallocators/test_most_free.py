"""The allocator that comes with the system: what it chooses, what it refuses, N+1."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

PROGRAM = Path(__file__).parents[3] / "iallocators" / "most-free"
Json = dict[str, Any]
answer = runpy.run_path(str(PROGRAM))["answer"]


def node(memory: int, **more: Any) -> Json:
    return {
        "offline": False,
        "drained": False,
        "vm_capable": True,
        "group": "g",
        "tags": [],
        "total_memory": 10000,
        "free_memory": memory,
        "total_disk": 10000,
        "free_disk": 9000,
        **more,
    }


def item(memory: int, *nodes: str, template: str = "drbd") -> Json:
    return {
        "memory": memory,
        "nodes": list(nodes),
        "disk_template": template,
        "admin_state": "up",
        "disk_space_total": 100,
    }


def ask(nodes: dict[str, Json], instances: dict[str, Json], /, **request: Any) -> Json:
    groups = {"g": {"name": "default", "alloc_policy": "preferred"}}
    found: Json = answer(
        {"nodes": nodes, "nodegroups": groups, "instances": instances, "request": request}
    )
    return found


def make_request(memory: int, template: str = "drbd", nodes: int = 2) -> Json:
    return {
        "type": "allocate",
        "name": "new",
        "disk_template": template,
        "memory": memory,
        "disk_space_total": 100,
        "required_nodes": nodes,
        "group_name": None,
    }


def test_most_memory_first_and_another_node_second() -> None:
    nodes = {"a": node(100), "b": node(900), "c": node(500)}
    assert ask(nodes, {}, **make_request(50))["result"] == ["b", "c"]


def test_unusable_nodes_are_named_with_the_reason() -> None:
    nodes = {"a": node(900, offline=True), "b": node(900, drained=True), "c": node(10)}
    found = ask(nodes, {}, **make_request(50, "plain", 1))
    assert not found["success"]
    for text in ("a: offline", "b: drained", "c: memory: needs 50 MiB, free 10"):
        assert text in found["info"]


def test_processors_are_limited_by_the_policy_for_new_instances() -> None:
    nodes = {"a": node(900, total_cpus=1)}
    groups = {"g": {"name": "default", "alloc_policy": "preferred", "ipolicy": {"vcpu-ratio": 2.0}}}
    taken = {"web1": {**item(100, "a", template="plain"), "vcpus": 1}}
    question = make_request(50, "plain", 1)
    outcomes = []
    for vcpus in (1, 2):
        request = {**question, "vcpus": vcpus}
        data = {
            "nodes": dict(nodes),
            "nodegroups": groups,
            "instances": dict(taken),
            "request": request,
        }
        outcomes.append(answer(data))
    fits, refused = outcomes
    assert fits["result"] == ["a"]
    assert "a: cpu: needs 2, free 1 within the vcpu-ratio of the policy" in refused["info"]


def test_n_plus_one() -> None:
    """b holds two mirrored instances whose secondary is c: c must be able to take both."""
    nodes = {"b": node(600), "c": node(450)}
    instances = {"web1": item(400, "b", "c")}
    refused = ask(nodes, instances, **make_request(100))
    assert not refused["success"]
    assert "N+1: 50 MiB more would be short" in refused["info"]
    assert ask(nodes, instances, **make_request(50))["result"] == ["b", "c"]


def test_evacuation_by_what_disks_can_do() -> None:
    nodes = {"a": node(900), "b": node(900), "c": node(900)}
    instances = {
        "mirrored": item(50, "a", "b"),
        "shared": item(50, "a", template="sharedfile"),
        "local": item(50, "a", template="plain"),
    }
    found = ask(
        nodes, instances, type="node-evacuate", instances=list(instances), evac_mode="primary-only"
    )["result"]
    assert [name for name, _group, _nodes in found[0]] == ["mirrored", "shared"]
    assert found[1][0][0] == "local"
    assert found[2][0][0]["OP_ID"] == "OP_INSTANCE_MIGRATE"


def test_program_and_its_exit_codes(tmp_path: Path) -> None:
    file = tmp_path / "request"

    def run(text: str) -> subprocess.CompletedProcess[str]:
        file.write_text(text)
        argv = [sys.executable, str(PROGRAM), "--option=1", "--flag", str(file)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    data = {
        "nodes": {"a": node(900)},
        "instances": {},
        "request": make_request(5, "plain", 1),
        "nodegroups": {"g": {"name": "d", "alloc_policy": "preferred"}},
    }
    good = run(json.dumps(data))
    assert json.loads(good.stdout)["result"] == ["a"]
    for text in ("", "[]", "{}", '{"request": {"type": "allocate"}}'):
        bad = run(text)
        assert (bad.returncode, bad.stdout) == (1, "")
        assert "is no usable request" in bad.stderr
        assert "Traceback" not in bad.stderr


@examples(100)
@given(
    free=st.lists(st.integers(0, 1000), min_size=1, max_size=5),
    memory=st.lists(st.integers(1, 400), max_size=5),
)
def test_no_node_is_promised_more_than_it_has(free: list[int], memory: list[int]) -> None:
    nodes = {f"n{i}": node(amount) for i, amount in enumerate(free)}
    wanted = [{**make_request(m, "plain", 1), "name": f"i{n}"} for n, m in enumerate(memory)]
    found = ask(nodes, {}, type="multi-allocate", instances=wanted)
    placed, failed = found["result"]
    used: dict[str, int] = {}
    for name, [where] in placed:
        used[where] = used.get(where, 0) + memory[int(name[1:])]
    assert all(amount <= free[int(where[1:])] for where, amount in used.items())
    assert len(placed) + len(failed) == len(wanted)
