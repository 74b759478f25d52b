"""Which queries the master answers at once."""

from __future__ import annotations

import pytest
from query_cluster import StubSources, config, instance, node

from ganeti.query import engine

BY_NAME = ["==", "name", "web1"]


@pytest.mark.parametrize(
    ("what", "fields", "qfilter"),
    [
        ("instance", ["name", "pnode", "nic.ips", "nic0.ip"], BY_NAME),
        ("instance", [], ["=", "name", "web1"]),
        ("instance", ["name"], ["|", BY_NAME]),
        ("node", ["name", "pinst_cnt"], ["==", "name", 5]),
    ],
)
def test_quick(what, fields, qfilter):
    assert engine.is_quick(what, fields, qfilter)


@pytest.mark.parametrize(
    ("what", "fields", "qfilter"),
    [
        ("instance", ["name", "status"], BY_NAME),
        ("node", ["mfree"], BY_NAME),
        ("job", ["id"], ["==", "id", 1]),
        ("instance", ["name"], None),
        ("instance", ["name"], ["==", "pnode", "node1"]),
        ("instance", ["name"], ["=~", "name", "web1"]),
        ("instance", ["name"], ["|", BY_NAME, BY_NAME]),
        ("instance", ["name"], ["|", ["|", BY_NAME]]),
        ("instance", ["nosuch"], BY_NAME),
        ("instance", ["name"] * 100, BY_NAME),
        ("instance", "name", BY_NAME),
        ("instance", [None, {}], BY_NAME),
        ("instances", ["name"], BY_NAME),
        (None, None, None),
        ([], {}, []),
        ({}, [[]], [[], [], []]),
        ("node", ["name"], ["|", {}]),
        ("node", ["name"], [{}, [], 1]),
    ],
)
def test_not_quick_and_never_an_error(what, fields, qfilter):
    assert not engine.is_quick(what, fields, qfilter)


def test_a_quick_query_asks_nobody():
    sources = StubSources(config([node(1)], [instance(1)]))
    name = "inst1.example.com"
    fields = ["name", "pnode", "nic.ips", "be/maxmem", "disk.sizes"]
    assert engine.is_quick("instance", fields, ["==", "name", name])
    answer = engine.query(sources, "instance", fields, ["==", "name", name])
    assert answer["data"][0][0] == (0, name)
    assert not sources.calls
