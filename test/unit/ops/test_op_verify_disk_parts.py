"""Where the disks that are verified have their parts."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, put, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.ops.verification import disk_parts

NODES = (node(2), node(3), node(4))


def disk(of: Config, name: str) -> Disk:
    return of.disks[f"disk-{name}"]  # type: ignore[index]


def list_parts(of: Config) -> list[tuple[str, str | None, str]]:
    """Node, instance and disk of each place."""
    nodes = sorted(
        (n for n in of.nodes.values() if n.name != "node1.example.com"), key=lambda n: n.uuid
    )
    return sorted(
        (where.uuid, owner and owner.name, item.uuid)
        for where, owner, item in disk_parts.places_of(of, nodes)
    )


def make_disk(uuid: str, kind: DiskTemplate, *nodes: str, **more: Any) -> Disk:
    return Disk(uuid=uuid, dev_type=kind, logical_id=("a", "b"), nodes=nodes, size=8, **more)  # type: ignore[arg-type]


def test_a_mirrored_disk_is_on_both_nodes_and_a_file_on_one() -> None:
    of = with_instance(with_instance(config(*NODES), "web1", "node-2", "node-3"), "web2", "node-4")
    assert list_parts(of) == [
        ("node-2", "web1", "disk-web1"),
        ("node-3", "web1", "disk-web1"),
        ("node-4", "web2", "disk-web2"),
    ]


def test_what_is_only_reserved_is_nowhere() -> None:
    of = with_instance(config(*NODES), "web1", "node-2", forthcoming=True)
    of = put(of, "disks", make_disk("disk-own", DiskTemplate.PLAIN, "node-3", forthcoming=True))
    assert list_parts(of) == []


def test_a_file_that_all_nodes_reach_is_looked_for_where_it_is_used() -> None:
    of = with_instance(config(*NODES), "web1", "node-3")
    of = put(of, "disks", base.replace(disk(of, "web1"), dev_type=DiskTemplate.SHAREDFILE))
    of = put(of, "disks", make_disk("disk-own", DiskTemplate.SHAREDFILE))
    assert list_parts(of) == [("node-2", None, "disk-own"), ("node-3", "web1", "disk-web1")]
    assert disk_parts.places_of(of, []) == []


def test_a_finding_is_about_the_instance_or_else_about_the_disk() -> None:
    of = with_instance(config(*NODES), "web1", "node-2")
    assert disk_parts.subject_of(of.instance("web1"), disk(of, "web1")) == (
        "instance",
        "web1",
        "disk/0",
    )
    own = make_disk("disk-own", DiskTemplate.PLAIN, "node-2")
    assert disk_parts.subject_of(None, own) == ("disk", "disk-own", "it")
    assert disk_parts.subject_of(None, base.replace(own, name="data")) == (
        "disk",
        "disk-own",
        "data",
    )


@pytest.mark.parametrize(
    ("kind", "attached", "detached"),
    [
        (DiskTemplate.PLAIN, False, False),  # the list of volumes has its size
        (DiskTemplate.FILE, True, True),
        (DiskTemplate.DRBD, True, False),  # a mirror that nobody uses is not active
    ],
)
def test_which_sizes_are_asked_for(kind: DiskTemplate, attached: bool, detached: bool) -> None:
    of = with_instance(config(*NODES), "web1", "node-2")
    item = make_disk("disk-1", kind, "node-2")
    assert disk_parts.is_measured((NODES[0], of.instance("web1"), item)) == attached
    assert disk_parts.is_measured((NODES[0], None, item)) == detached


def test_a_check_that_failed_as_a_whole_is_one_entry() -> None:
    assert disk_parts.table_of(None) == {}
    assert disk_parts.table_of({"web1": "x"}) == {"web1": "x"}
    assert disk_parts.table_of("no such program") == {"check": "no such program"}
