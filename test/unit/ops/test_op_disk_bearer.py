"""What stands for the instance of a detached disk, and where such a disk is worked on."""

from __future__ import annotations

import pytest
from op_samples import config, node

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.ops.planning import disk_bearer


def disk(*nodes: str, kind: DiskTemplate = DiskTemplate.FILE, name: str | None = None) -> Disk:
    return Disk(uuid="d1", dev_type=kind, logical_id=("loop", "/x"), nodes=nodes, size=8, name=name)


def change_node(of: Config, uuid: str, **facts: bool) -> Config:
    found = base.replace(of.nodes[uuid], **facts)
    return of.apply([("nodes", uuid, found)], [], None, mtime=3.0)


def test_the_instance_has_this_one_disk_and_lives_on_its_first_node() -> None:
    of = config(node(2), node(3))
    bearer = disk_bearer.make_bearer(of, disk("node-3", "node-2"))
    assert (bearer.name, bearer.uuid, bearer.disks) == ("d1", "d1", ("d1",))
    assert bearer.primary_node == "node-3"
    assert str(bearer.hypervisor) == "fake"


def test_nodes_of_a_disk_that_left_the_cluster_are_left_out() -> None:
    seats = disk_bearer.list_nodes(config(node(2)), disk("node-9", "node-2"))
    assert [found.uuid for found in seats] == ["node-2"]


def test_what_every_node_reaches_is_worked_on_by_the_master_if_it_can() -> None:
    of = config(node(2), node(3))
    shared = disk(kind=DiskTemplate.SHAREDFILE)
    assert disk_bearer.list_nodes(of, shared) == [of.master]
    of = change_node(of, of.cluster.master_node, vm_capable=False)
    of = change_node(of, "node-2", offline=True)
    assert [found.uuid for found in disk_bearer.list_nodes(of, shared)] == ["node-3"]
    of = change_node(of, "node-3", offline=True)
    with pytest.raises(errors.OpPrereqError, match="a disk of template sharedfile") as caught:
        disk_bearer.make_bearer(of, shared)
    assert caught.value.args[1] == errors.ErrorCode.STATE


def test_a_disk_is_called_by_its_name_with_its_uuid() -> None:
    assert disk_bearer.title(disk("node-1")) == "d1"
    assert disk_bearer.title(disk("node-1", name="data")) == "data (d1)"
