"""Queries of disks: whose they are, where they lie, and by which words they are found."""

import pytest
from query_cluster import StubSources, config, instance, node

from ganeti.errors import OpPrereqError
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.group import NodeGroup
from ganeti.query.classic import classic
from ganeti.query.engine import Query

MIRROR = Disk(
    uuid="mirror",
    dev_type=DiskTemplate.DRBD,
    nodes=("n1", "n2"),
    size=1024,
    iv_name="disk/0",
    logical_id=("n1", "n2", 11000, 0, 3, "the secret"),
    children=(
        Disk(uuid="d", dev_type=DiskTemplate.PLAIN, logical_id=("xenvg", "data")),
        Disk(uuid="m", dev_type=DiskTemplate.PLAIN, logical_id=("xenvg", "meta")),
    ),
)
FILE = Disk(
    uuid="file",
    name="data",
    dev_type=DiskTemplate.FILE,
    nodes=("n2",),
    size=8,
    iv_name="disk/1",
    logical_id=("loop", "/srv/file/x"),
    tags=("a", "b"),
    params={"access": "kernelspace"},
)
LOOSE = [
    Disk(
        uuid=f"twin{number}",
        name="twin",
        dev_type=DiskTemplate.SHAREDFILE,
        size=4,
        logical_id=("loop", f"/srv/shared/{number}"),
        forthcoming=number == 2 or None,
    )
    for number in (1, 2)
]


@pytest.fixture
def sources():
    return StubSources(
        config(
            [node(1), node(2)],
            [instance(1, disks=("mirror", "file"))],
            groups=[NodeGroup(uuid="g1", name="default")],
            disks=[*LOOSE, FILE, MIRROR],
        )
    )


def rows(sources, fields, qfilter=None):
    answer = Query("disk", fields, qfilter).run(sources)
    return [[value for _status, value in row] for row in answer["data"]]


def test_disks_of_instances_come_first_in_their_order(sources):
    assert rows(sources, ["uuid", "instance", "index", "attached", "forthcoming"]) == [
        ["mirror", "inst1.example.com", 0, True, False],
        ["file", "inst1.example.com", 1, True, False],
        ["twin1", None, None, False, False],
        ["twin2", None, None, False, True],
    ]


def test_where_a_disk_lies_without_its_secret(sources):
    fields = ["nodes", "groups", "path", "volumes", "minors", "logical_id", "params"]
    assert rows(sources, fields, ["==", "uuid", "mirror"]) == [
        [
            ["node1.example.com", "node2.example.com"],
            ["default"],
            None,
            ["xenvg/data", "xenvg/meta"],
            [0, 3],
            ["n1", "n2", 11000, 0, 3],
            {},
        ]
    ]
    assert rows(sources, fields, ["==", "uuid", "file"]) == [
        [
            ["node2.example.com"],
            ["default"],
            "/srv/file/x",
            None,
            None,
            ["loop", "/srv/file/x"],
            {"access": "kernelspace"},
        ]
    ]
    everywhere = rows(sources, ["nodes", "groups"], ["==", "uuid", "twin1"])
    assert everywhere == [[[], []]]


@pytest.mark.parametrize("word", ["file", "data", "inst1/1"])
def test_one_disk_by_each_of_its_names(sources, word):
    assert rows(sources, ["uuid", "tags"], ["==", "uuid", word]) == [["file", ["a", "b"]]]
    assert classic(sources, "disk", [word], ["uuid"]) == [["file"]]


def test_what_is_attached_is_a_filter(sources):
    assert rows(sources, ["uuid"], ["!", ["?", "attached"]]) == [["twin1"], ["twin2"]]
    assert rows(sources, ["uuid"], ["=[]", "tags", "b"]) == [["file"]]


def test_unknown_disks(sources):
    with pytest.raises(OpPrereqError, match="disk 'gone' is not known"):
        rows(sources, ["uuid"], ["==", "uuid", "gone"])
    assert classic(sources, "disk", ["gone"], ["uuid"]) == []
    with pytest.raises(OpPrereqError, match="2 disks are called 'twin'"):
        classic(sources, "disk", ["twin"], ["uuid"])
