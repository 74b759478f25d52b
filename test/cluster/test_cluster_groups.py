"""Node groups, from gnt-group to the files of the nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from local_cluster import Cluster


@pytest.fixture(autouse=True)
def restored_group(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.ok("group assign-nodes default", "node1", "node2", "node3")
    for [name] in cluster.cells("group list -o name"):
        if name != "default":
            cluster.ok("group remove", name)
    cluster.ok("cluster verify")


def members(cluster: Cluster) -> dict[str, str]:
    return dict(cluster.cells("group list -o name,node_list"))


def test_a_life(cluster: Cluster) -> None:
    cluster.ok("group add --alloc-policy last_resort --node-parameters spindle_count=3", "rack1")
    assert cluster.cells("group list -o name,node_cnt,alloc_policy", "rack1") == [
        ["rack1", "0", "last_resort"]
    ]
    cluster.ok("group assign-nodes", "rack1", "node2", "node3")
    assert members(cluster) == {
        "default": "node1.example.com",
        "rack1": "node2.example.com,node3.example.com",
    }
    assert cluster.cells("node list -o name,group,ndp/spindle_count", "node2") == [
        ["node2.example.com", "rack1", "3"]
    ]
    assert "rack1" in cluster.paths("node3").ssconf("nodegroups").read_text()
    refused = cluster.gnt("group remove", "rack1")
    assert refused.code == 1
    assert "node2.example.com" in refused.err
    cluster.ok("group rename", "rack1", "rack2")
    assert "rack2" in cluster.paths("node3").ssconf("nodegroups").read_text()
    cluster.ok("group assign-nodes", "default", "node2", "node3")
    cluster.ok("group remove", "rack2")
    assert members(cluster).keys() == {"default"}
    assert "rack2" not in cluster.paths("node3").ssconf("nodegroups").read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("add", "default"), "already"),
        (("add", "two words"), "cannot be the name"),
        (("add", "--node-parameters", "colour=red", "x"), "colour"),
        (("add", "--ipolicy-vcpu-ratio", "-1", "x"), "vcpu-ratio"),
        (("add", "--ipolicy-bounds-specs", "min:cpu-count=9999/max:cpu-count=1", "x"), "cpu-count"),
        (("add", "-D", "plain:colour=red", "x"), "colour"),
        (("remove", "nosuch"), "nosuch"),
        (("remove", "default"), "default"),
        (("rename", "nosuch", "x"), "nosuch"),
        (("rename", "default", "a b"), "cannot be the name"),
        (("modify", "default"), "Nothing to change"),
        (("modify", "--alloc-policy", "preferred", "nosuch"), "nosuch"),
        (("assign-nodes", "default"), "no nodes"),
        (("assign-nodes", "nosuch", "node1"), "nosuch"),
        (("assign-nodes", "default", "node9"), "node9"),
        (("info", "nosuch"), "nosuch"),
    ],
)
def test_refused(cluster: Cluster, words: tuple[str, ...], text: str) -> None:
    before = cluster.config()
    ran = cluster.gnt("group", *words)
    assert ran.code == 1, ran
    assert text in ran.err
    assert cluster.config() == before


def test_settings(cluster: Cluster) -> None:
    cluster.ok("group add", "rack1")
    ran = cluster.ok(
        "group modify --alloc-policy unallocable --node-parameters exclusive_storage=true"
        " -D plain:stripes=4 --ipolicy-vcpu-ratio 2",
        "rack1",
    )
    assert "alloc_policy -> unallocable" in ran.out
    shown = cluster.ok("group info", "rack1").out
    for text in ("exclusive_storage: True", "stripes: 4", "vcpu-ratio: 2.0", "default (32.0)"):
        assert text in shown
    command = cluster.ok("group show-ispecs-cmd", "rack1").out
    assert command == "gnt-group add --ipolicy-vcpu-ratio 2.0 rack1\n"
    cluster.ok("group modify --ipolicy-vcpu-ratio default", "rack1")
    assert cluster.ok("group show-ispecs-cmd", "rack1").out == "gnt-group add rack1\n"
    assert cluster.ok("group modify --alloc-policy unallocable", "rack1").out == ""


def test_a_stricter_policy_only_warns(cluster: Cluster) -> None:
    assert cluster.add("web1.example.com").code == 0
    words = "group modify --ipolicy-bounds-specs"
    strict = "min:disk-size=512/max:disk-size=100000"
    try:
        ran = cluster.ok(words, strict, "default")
        assert "WARNING: instance web1.example.com violates" in ran.out
        refused = cluster.add("web2.example.com")
        assert refused.code == 1
        assert "disk-size" in refused.err
    finally:
        cluster.ok(words, "min:disk-size=1/max:disk-size=100000", "default")
        cluster.ok("instance remove -f", "web1.example.com")


def test_tags(cluster: Cluster) -> None:
    cluster.ok("group add-tags default", "b", "a")
    assert cluster.ok("group list-tags default").lines == ["a", "b"]
    cluster.ok("group remove-tags default", "a", "b")
    assert cluster.ok("group list-tags default").lines == []


def test_dry_run_changes_nothing(cluster: Cluster) -> None:
    before = members(cluster)
    for words in (("add", "--dry-run", "rack1"), ("rename", "--dry-run", "default", "rack1")):
        assert "nothing was changed" in cluster.ok("group", *words).out
    assert members(cluster) == before
    # the name is free again
    cluster.ok("group add", "rack1")


def test_a_group_is_evacuated(cluster: Cluster) -> None:
    said = cluster.directory / "evacuated"
    hook = cluster.paths("node3").hooks / "group-evacuate-pre.d" / "tell"
    hook.parent.mkdir(parents=True)
    hook.write_text(
        f'#!/bin/sh\necho "$GANETI_OBJECT_TYPE $GANETI_GROUP_NAME $GANETI_TARGET_GROUPS" >>{said}\n'
    )
    hook.chmod(0o755)
    assert "no other node group" in cluster.gnt("group evacuate", "default").err
    cluster.ok("group add", "rack1")
    assert cluster.ok("group evacuate", "rack1").lines == [
        "Node group rack1 has no instances to evacuate"
    ]
    cluster.ok("group assign-nodes", "rack1", "node3")
    for name in ("web1.example.com", "web2.example.com"):
        cluster.ok("instance add -n node3 -o noop -t sharedfile --disk 0:size=8M --no-nics", name)
    ran = cluster.gnt("group evacuate --to rack1", "rack1")
    assert (ran.code, "the instances are in group rack1 already" in ran.err) == (1, True)
    ran = cluster.gnt("group evacuate --to nosuch", "rack1")
    assert (ran.code, "nosuch" in ran.err) == (1, True)
    before = cluster.config()
    planned = cluster.ok("group evacuate --dry-run --force-failover", "rack1").lines
    assert [line.partition(" to node(s) ")[0] for line in planned] == [
        "web1.example.com: failover",
        "web2.example.com: failover",
    ]
    assert cluster.config() == before
    done = cluster.ok("group evacuate --sequential --to default", "rack1")
    assert done.lines[-1] == "All instances were evacuated"
    places = cluster.cells("instance list -o name,pnode.group,status")
    assert places == [[f"web{n}.example.com", "default", "running"] for n in (1, 2)]
    first, second = json.loads(cluster.ok("job list --format json -o id,ops --limit 2").out)
    assert first["ops"][0]["depends"] is None
    assert second["ops"][0]["depends"] == [[first["id"], []]]
    [uuid] = [row[0] for row in cluster.cells("group list -o uuid", "default")]
    assert said.read_text().splitlines()[-1].split() == ["GROUP", "rack1", uuid]
    for name in ("web1.example.com", "web2.example.com"):
        cluster.ok("instance remove -f", name)


def test_hooks(cluster: Cluster) -> None:
    said = cluster.directory / "said"
    for verb in ("add", "rename", "modify", "remove"):
        hook = cluster.paths().hooks / f"group-{verb}-post.d" / "tell"
        hook.parent.mkdir(parents=True)
        hook.write_text(
            f'#!/bin/sh\necho "{verb} $GANETI_GROUP_NAME $GANETI_OLD_NAME $GANETI_NEW_NAME'
            f' $GANETI_NEW_ALLOC_POLICY" >>{said}\n'
        )
        hook.chmod(0o755)
    cluster.ok("group add", "rack1")
    cluster.ok("group rename", "rack1", "rack2")
    cluster.ok("group modify --alloc-policy preferred", "rack2")
    cluster.ok("group modify --node-parameters spindle_count=2", "rack2")
    cluster.ok("group remove", "rack2")
    assert [line.split() for line in said.read_text().splitlines()] == [
        ["add", "rack1"],
        ["rename", "rack1", "rack2"],
        ["modify", "rack2", "preferred"],
        ["modify", "rack2", "None"],
        ["remove", "rack2"],
    ]
