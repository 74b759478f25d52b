"""What is set aside on a node counts as not there."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti.htools import objects
from ganeti.model.node_state import fill_states, limit_resources, limit_room

HAS = {
    "memory_total": 8000,
    "memory_dom0": 1000,
    "memory_free": 5000,
    "cpu_total": 16,
    "cpu_dom0": 1,
}


@pytest.mark.parametrize(
    ("state", "changed"),
    [
        ({}, {}),
        # what Ganeti records where nobody said anything
        ({"mem_total": 0, "mem_node": 0, "mem_hv": 0, "cpu_total": 1, "cpu_node": 1}, {}),
        ({"mem_node": 800}, {}),
        ({"mem_node": 1500}, {"memory_dom0": 1500, "memory_free": 4500}),
        ({"mem_node": 1500, "mem_hv": 500}, {"memory_dom0": 2000, "memory_free": 4000}),
        ({"mem_total": 6000}, {"memory_total": 6000, "memory_free": 3000}),
        ({"mem_total": 9000}, {}),
        ({"mem_node": 7000}, {"memory_dom0": 7000, "memory_free": 0}),
        ({"cpu_total": 4, "cpu_node": 2}, {"cpu_total": 4, "cpu_dom0": 2}),
        ({"cpu_total": 64}, {}),
    ],
)
def test_state_of_a_hypervisor(state: dict[str, int], changed: dict[str, int]) -> None:
    assert limit_resources(HAS, state) == {**HAS, **changed}


def test_what_the_hypervisor_uses_itself_counts_for_what_is_kept() -> None:
    assert limit_resources({**HAS, "memory_hv": 300}, {"mem_node": 1000, "mem_hv": 300}) == {
        **HAS,
        "memory_hv": 300,
    }


def test_what_a_node_does_not_report_stays_missing() -> None:
    assert limit_resources({}, {"mem_node": 100, "cpu_total": 4}) == {}


def test_state_of_a_volume_group() -> None:
    assert limit_room((1000, 300), {}) == (1000, 300)
    assert limit_room((1000, 300), {"disk_reserved": 100, "disk_overhead": 50}) == (1000, 150)
    assert limit_room((1000, 300), {"disk_total": 800}) == (800, 100)
    assert limit_room((1000, 300), {"disk_reserved": 400}) == (1000, 0)


def test_a_single_key_of_a_node_wins() -> None:
    cluster = {"kvm": {"mem_node": 1, "cpu_node": 2}, "fake": {"mem_node": 5}}
    assert fill_states(cluster, None, {"kvm": {"mem_node": 9}}) == {
        "kvm": {"mem_node": 9, "cpu_node": 2},
        "fake": {"mem_node": 5},
    }


@pytest.mark.parametrize(
    ("templates", "disk"), [(["plain", "file"], (900, 300)), (["file", "plain"], (1000, 500))]
)
def test_programs_plan_with_it(templates: list[str], disk: tuple[int, int]) -> None:
    """``hbal`` and ``hspace`` read the states with the nodes."""
    node: dict[str, Any] = {
        "name": "node1",
        "group.uuid": "g",
        "mtotal": 8000,
        "mnode": 1000,
        "mfree": 5000,
        "ctotal": 16,
        "cnos": 1,
        "dtotal": 1000,
        "dfree": 500,
        "hv_state": {"kvm": {"mem_node": 2000, "cpu_total": 4}, "fake": {"mem_node": 4000}},
        "disk_state": {"plain": {"xenvg": {"disk_total": 900, "disk_reserved": 100}}},
    }
    info = {
        "default_hypervisor": "kvm",
        "volume_group_name": "xenvg",
        "enabled_disk_templates": templates,
        "ipolicy": None,
        "tags": [],
    }
    group = {"name": "default", "uuid": "g", "alloc_policy": "preferred", "tags": []}
    [found] = objects.build([group], [node], [], info, 0).nodes
    assert (found.memory, found.node_memory, found.free_memory) == (8000, 2000, 4000)
    assert (found.cpus, found.node_cpus) == (4, 1)
    assert (found.disk, found.free_disk) == disk
