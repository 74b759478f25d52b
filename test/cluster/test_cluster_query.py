"""Queries of a cluster of which one node is offline and another one dead.

The example of the design of queries, with all five statuses: fields that exist, one that does not,
values that a thing lacks, a node that is marked offline and one that does not answer.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster, copy_cluster, tool

from ganeti import constants
from ganeti.base import retry
from ganeti.luxi.client import Client, QueryResult

#: Seconds after which a node that says nothing counts as dead, with some for everything else.
ONE_TIMEOUT = 10.0 + 5.0
OK, UNKNOWN, NODATA, UNAVAIL, OFFLINE = range(5)
FIELDS = ["name", "oper_ram", "xyz", "be/maxmem", "nic0.ip", "nic1.ip", "nic2.ip"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """node3 is marked offline, node4 is dead; each node has one instance."""
    with copy_cluster(4) as made:
        for number, addresses in ((1, 2), (2, 3), (3, 1), (4, 2)):
            nets = [f"--net={n}:ip=192.0.2.{10 * number + n}" for n in range(addresses)]
            made.ok(
                f"instance add -n node{number} -o noop -t file --disk 0:size=8M -B memory=96M",
                *nets,
                f"web{number}.example.com",
            )
        made.ok(
            "instance add -n node1 -o noop -t file --disk 0:size=8M --no-nics --no-start",
            "web10.example.com",
        )
        made.ok("node modify -O yes --force", "node3")
        assert tool("kill-node", made.directory, "node4").code == 0
        yield made


def rows(result: QueryResult) -> dict[str, list[tuple[int, Any]]]:
    return {str(row[0][1]).partition(".")[0]: row for row in result.data}


def wait_until_jobs_are_accepted(cluster: Cluster) -> None:
    """node4 is dead: until the master tries node2 again, a second later, no majority has a job."""
    assert retry.retry_until(lambda: cluster.gnt("os list").code == 0 or None, timeout=10)


def test_the_example_with_instances(client: Client) -> None:
    begin = time.monotonic()
    result = client.query("instance", FIELDS)
    assert time.monotonic() - begin < ONE_TIMEOUT
    assert [(item.name, item.kind) for item in result.fields] == [
        ("name", "text"),
        ("oper_ram", "unit"),
        ("xyz", "unknown"),
        ("be/maxmem", "unit"),
        ("nic0.ip", "text"),
        ("nic1.ip", "text"),
        ("nic2.ip", "text"),
    ]
    none: Any = None
    nothing, lacking = (UNKNOWN, none), (UNAVAIL, none)
    assert {name: row[1:] for name, row in rows(result).items()} == {
        "web1": [(OK, 96), nothing, (OK, 96), (OK, "192.0.2.10"), (OK, "192.0.2.11"), lacking],
        "web2": [
            (OK, 96),
            nothing,
            (OK, 96),
            (OK, "192.0.2.20"),
            (OK, "192.0.2.21"),
            (OK, "192.0.2.22"),
        ],
        "web3": [(OFFLINE, none), nothing, (OK, 96), (OK, "192.0.2.30"), lacking, lacking],
        "web4": [
            (NODATA, none),
            nothing,
            (OK, 96),
            (OK, "192.0.2.40"),
            (OK, "192.0.2.41"),
            lacking,
        ],
        "web10": [lacking, nothing, (OK, 64), lacking, lacking, lacking],
    }
    seen = {status for row in result.data for status, _ in row}
    assert seen == {OK, UNKNOWN, NODATA, UNAVAIL, OFFLINE}
    assert all(value is None for row in result.data for status, value in row if status != OK)


def test_the_example_with_nodes(client: Client) -> None:
    result = client.query("node", ["name", "mfree", "xyz", "mtotal", "pip"])
    found = rows(result)
    assert list(found) == ["node1", "node2", "node3", "node4"]
    for name in ("node1", "node2"):
        assert [status for status, _ in found[name]] == [OK, OK, UNKNOWN, OK, OK]
        assert 0 <= found[name][1][1] <= found[name][3][1]
    assert [status for status, _ in found["node3"]] == [OK, OFFLINE, UNKNOWN, OFFLINE, OK]
    assert [status for status, _ in found["node4"]] == [OK, NODATA, UNKNOWN, NODATA, OK]


def test_what_instances_do_on_such_nodes(client: Client) -> None:
    found = rows(client.query("instance", ["name", "status", "oper_state", "console"]))
    assert {name: row[1] for name, row in found.items()} == {
        "web1": (OK, "running"),
        "web2": (OK, "running"),
        "web3": (OK, "ERROR_nodeoffline"),
        "web4": (OK, "ERROR_nodedown"),
        "web10": (OK, "ADMIN_down"),
    }
    assert {name: row[2] for name, row in found.items()} == {
        "web1": (OK, True),
        "web2": (OK, True),
        "web3": (OFFLINE, None),
        "web4": (NODATA, None),
        "web10": (OK, False),
    }
    assert [found[name][3][0] for name in ("web1", "web3", "web4")] == [OK, OFFLINE, NODATA]


def test_a_condition_on_a_missing_value_holds(client: Client) -> None:
    found = client.query("instance", ["name"], [">", "oper_ram", 1_000_000])
    assert list(rows(found)) == ["web3", "web4", "web10"]


def test_configuration_needs_no_node(cluster: Cluster, client: Client) -> None:
    """With every node silent, what the configuration knows comes at once."""
    pid = cluster.pid(constants.NODED, "node2")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        assert len(client.query("instance", ["name", "pnode", "nic.ips"]).data) == 5
        assert time.monotonic() - begin < 2
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_silent_node_costs_one_timeout_and_its_own_rows(cluster: Cluster, client: Client) -> None:
    pid = cluster.pid(constants.NODED, "node2")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        found = rows(client.query("instance", ["name", "oper_ram", "status", "console"]))
        assert time.monotonic() - begin < ONE_TIMEOUT
    finally:
        os.kill(pid, signal.SIGCONT)
        wait_until_jobs_are_accepted(cluster)
    assert found["web1"][1:3] == [(OK, 96), (OK, "running")]
    assert found["web2"][1:] == [(NODATA, None), (OK, "ERROR_nodedown"), (NODATA, None)]
    assert found["web10"][2] == (OK, "ADMIN_down")


# commands -------------------------------------------------------------------------------------

LINE = "instance list -o name,oper_ram,xyz,nic.ip/1"


def test_short_and_long_forms(cluster: Cluster) -> None:
    ran = cluster.gnt(f"{LINE} --separator=|")
    assert ran.code == 14
    assert ran.err == "Warning: Queried for unknown fields xyz\n"
    assert ran.lines == [
        "Instance|Memory|xyz|NicIP/1",
        "web1.example.com|96|??|192.0.2.11",
        "web2.example.com|96|??|192.0.2.21",
        "web3.example.com|*|??|-",
        "web4.example.com|?|??|192.0.2.41",
        "web10.example.com|-|??|-",
    ]
    assert cluster.gnt(f"{LINE} --no-headers -v").lines == [
        "web1.example.com        96M (unknown) 192.0.2.11",
        "web2.example.com        96M (unknown) 192.0.2.21",
        "web3.example.com  (offline) (unknown) (unavail)",
        "web4.example.com   (nodata) (unknown) 192.0.2.41",
        "web10.example.com (unavail) (unknown) (unavail)",
    ]


def test_default_columns(cluster: Cluster) -> None:
    titles = {
        "instance list": "Instance Hypervisor OS Primary_node Status Memory",
        "node list": "Node DTotal DFree MTotal MNode MFree Pinst Sinst",
        "group list": "Group Nodes Instances AllocPolicy NDParams",
        "job list": "ID Status Summary",
        "filter list": "UUID Watermark Priority Predicates Action ReasonTrail",
        "debug locks": "Name Mode Owner Pending",
        "os list": "Name",
    }
    for line, title in titles.items():
        assert cluster.ok(line).lines[0].split() == title.split(), line


def test_plus_units_and_order(cluster: Cluster) -> None:
    ran = cluster.ok("instance list -o +nic.count --units=m", "web10", "web2")
    assert ran.lines[0].split() == [
        "Instance",
        "Hypervisor",
        "OS",
        "Primary_node",
        "Status",
        "Memory",
        "NICs",
    ]
    assert [line.split()[0] for line in ran.lines[1:]] == ["web10.example.com", "web2.example.com"]
    assert ran.lines[2].split()[5:] == ["96", "3"]
    natural = [row[0].partition(".")[0] for row in cluster.cells("instance list -o name")]
    assert natural == ["web1", "web2", "web3", "web4", "web10"]
    cells = cluster.cells("instance list -o name --filter", 'nic.count == 2 and pnode == "node1"')
    assert cells == [["web1.example.com"]]
    assert cluster.cells("instance list -F -o name", "admin_up")[-1] == ["web4.example.com"]


def test_json_has_the_reasons_beside_the_values(cluster: Cluster) -> None:
    ran = cluster.gnt(f"{LINE} --format json")
    assert ran.code == 14
    assert ran.err == "Warning: Queried for unknown fields xyz\n"
    found = json.loads(ran.out)
    assert found[0] == {
        "name": "web1.example.com",
        "oper_ram": 96,
        "xyz": None,
        "nic.ip/1": "192.0.2.11",
        "Missing": {"xyz": "unknown"},
    }
    assert [item["Missing"].get("oper_ram") for item in found] == [
        None,
        None,
        "offline",
        "nodata",
        "unavail",
    ]
    plain = json.loads(cluster.ok("instance list --format json", "web1").out)
    assert plain == [
        {
            "name": "web1.example.com",
            "hypervisor": "fake",
            "os": "noop",
            "pnode": "node1.example.com",
            "status": "running",
            "oper_ram": 96,
        }
    ]


def test_every_list_command_speaks_json(cluster: Cluster) -> None:
    for line in (
        "instance list",
        "node list",
        "group list",
        "job list",
        "filter list",
        "debug locks",
        "os list",
    ):
        found = json.loads(cluster.ok(f"{line} --format json").out)
        assert isinstance(found, list), line
        assert all(isinstance(item, dict) for item in found), line
    for program in ("instance", "node", "group", "job", "filter"):
        known = json.loads(cluster.ok(f"{program} list-fields --format json").out)
        assert {tuple(item) for item in known} == {("name", "title", "kind", "doc")}
    fields = json.loads(cluster.ok("node list-fields --format json", "name", "mfree").out)
    assert [(item["name"], item["kind"]) for item in fields] == [
        ("name", "text"),
        ("mfree", "unit"),
    ]


def test_csv(cluster: Cluster) -> None:
    out = cluster.ok("instance list --format csv -o name,oper_ram,nic.ips", "web2", "web3").out
    assert list(csv.reader(io.StringIO(out))) == [
        ["name", "oper_ram", "nic.ips"],
        ["web2.example.com", "96", '["192.0.2.20","192.0.2.21","192.0.2.22"]'],
        ["web3.example.com", "", '["192.0.2.30"]'],
    ]


def test_options_of_tables_do_not_go_with_other_forms(cluster: Cluster) -> None:
    for word in ("--separator=:", "--units=g"):
        ran = cluster.gnt("instance list --format json", word)
        assert ran.code == 1
        assert "is for tables" in ran.err
        assert ran.out == ""
