"""What ganeti-confd answers to each kind of request."""

from __future__ import annotations

from typing import Any

import contract
import pytest
from confd_cluster import SECRET, config
from forms import find_difference

from ganeti import constants
from ganeti.base import jsonio
from ganeti.confd import answers, messages
from ganeti.confd.messages import Kind, Reply, Request

NAME = "node1.example.com"
OK, ERROR, NOT_IMPLEMENTED = 0, 1, 2
UNKNOWN, WRONG = (ERROR, 0, 0), (ERROR, 2, 0)


def ask(kind: int, query: Any = None, protocol: int = 1) -> tuple[int, Any, int]:
    request = Request(protocol=protocol, type=kind, query=query, rsalt="x")
    reply = answers.answer(answers.View(config()), request)
    assert isinstance(reply, Reply)
    jsonio.dumps(reply.answer)
    return int(reply.status), reply.answer, reply.serial


@pytest.mark.parametrize(
    ("kind", "query", "reply"),
    [
        (Kind.PING, None, (OK, constants.CONFIG_VERSION, 7)),
        (Kind.NODE_ROLE, NAME, (OK, 0, 11)),
        (Kind.NODE_ROLE, "node2.example.com", (OK, 1, 12)),
        (Kind.NODE_ROLE, "node4.example.com", (OK, 2, 14)),
        (Kind.NODE_ROLE, "node5.example.com", (OK, 3, 15)),
        (Kind.NODE_ROLE, "node3.example.com", (OK, 4, 13)),
        (Kind.NODE_ROLE, "node1", UNKNOWN),
        (Kind.NODE_IP_BY_INSTANCE_IP, {"1": "10.0.0.1"}, (OK, "192.0.2.1", 11)),
        (Kind.NODE_IP_BY_INSTANCE_IP, {"0": "br1", "1": "10.1.0.1"}, (OK, "192.0.2.1", 11)),
        (Kind.NODE_IP_BY_INSTANCE_IP, {"0": None, "1": "10.1.0.1"}, UNKNOWN),
        (Kind.NODE_IP_BY_INSTANCE_IP, {"1": "10.9.0.1"}, UNKNOWN),
        (
            Kind.NODE_IP_BY_INSTANCE_IP,
            {"2": ["10.0.0.1", "10.9.0.1"]},
            (OK, [[0, "192.0.2.1", 11], [1, 0, 0]], 7),
        ),
        (Kind.CLUSTER_MASTER, None, (OK, NAME, 7)),
        (Kind.CLUSTER_MASTER, {"3": [1, 0, 2]}, (OK, ["192.0.2.250", NAME, "192.0.2.1"], 7)),
        (Kind.NODE_IPS, None, (OK, [f"192.0.2.{n}" for n in range(1, 6)], 7)),
        (Kind.CANDIDATE_IPS, None, (OK, ["192.0.2.1", "192.0.2.2"], 7)),
        (Kind.INSTANCE_IPS, None, (OK, ["10.0.0.1"], 7)),
        (Kind.INSTANCE_IPS, "br1", (OK, ["10.1.0.1"], 7)),
        (Kind.INSTANCE_IPS, "br9", (OK, [], 7)),
        (
            Kind.NODE_MINORS,
            NAME,
            (OK, [[NAME, 3, "web1.example.com", "disk/0", "primary", "node2.example.com"]], 11),
        ),
        (
            Kind.NODE_MINORS,
            "node2.example.com",
            (OK, [["node2.example.com", 4, "web1.example.com", "disk/0", "secondary", NAME]], 12),
        ),
        (Kind.NODE_MINORS, "node3.example.com", (OK, [], 13)),
        (Kind.NODE_MINORS, "nosuch", UNKNOWN),
        (Kind.CONFIG_VALUE, "/cluster/uuid", (OK, "cluster-1", 7)),
        (Kind.CONFIG_VALUE, "/cluster/nosuch", UNKNOWN),
        (Kind.DATA_COLLECTORS, None, (OK, {"drbd": {"active": True, "interval": 5000000}}, 7)),
        (Kind.INSTANCE_DISKS, "nosuch", UNKNOWN),
        (Kind.NODE_INSTANCES, "nosuch", UNKNOWN),
    ],
)
def test_answers(kind: Kind, query: Any, reply: tuple[int, Any, int]) -> None:
    assert ask(kind, query) == reply


@pytest.mark.parametrize("name", ["web1.example.com", "inst-1"])
def test_disks_of_an_instance(name: str) -> None:
    status, [disk], serial = ask(Kind.INSTANCE_DISKS, name)
    assert (status, serial) == (OK, 21)
    assert disk["logical_id"] == ["node-1", "node-2", 11000, 3, 4, "<redacted>"]


def test_instances_of_a_node() -> None:
    status, [primary, secondary], serial = ask(Kind.NODE_INSTANCES, NAME)
    assert (status, [item["name"] for item in primary], secondary, serial) == (
        OK,
        ["web1.example.com"],
        [],
        11,
    )
    _status, [primary, secondary], _serial = ask(Kind.NODE_INSTANCES, "node2.example.com")
    assert (primary, [item["uuid"] for item in secondary]) == ([], ["inst-1"])


def test_no_answer_has_a_secret() -> None:
    shown = [
        ask(Kind.NODE_INSTANCES, NAME),
        ask(Kind.INSTANCE_DISKS, "web1.example.com"),
        ask(Kind.CONFIG_VALUE, ""),
        ask(Kind.CONFIG_VALUE, "/instances/inst-1/osparams_private/root"),
        ask(Kind.CONFIG_VALUE, "/disks/disk-1/logical_id/5"),
    ]
    text = jsonio.dumps(shown)
    assert "hush" not in text
    assert SECRET not in text


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name not in ("PING",)])
@pytest.mark.parametrize("query", [7, [], {"0": 7}, {"1": 7}, {"2": "x"}, {"3": [9]}, True, 1.5])
def test_wrong_queries(kind: Kind, query: Any) -> None:
    if kind in (Kind.NODE_IPS, Kind.CANDIDATE_IPS, Kind.DATA_COLLECTORS):
        assert ask(kind, query)[0] == OK
        return
    assert ask(kind, query) == WRONG


def test_requests_of_the_future() -> None:
    assert ask(12)[0] == NOT_IMPLEMENTED
    assert ask(-1)[0] == NOT_IMPLEMENTED
    assert ask(Kind.PING, protocol=2) == (ERROR, "only protocol 1 is known", 0)


def test_a_node_without_configuration() -> None:
    request = Request(protocol=1, type=Kind.PING, rsalt="x")
    assert answers.answer(None, request) == answers.DISABLED


def test_requests_and_answers_field_by_field() -> None:
    """Each has the recorded members, of the recorded kinds."""
    forms = contract.read_recorded("monitoring")["confd"]
    names = {"NODE": NAME, "INSTANCE": "web1.example.com"}
    for request in forms["requests"]:
        query = request["query"]
        query = names.get(query, query) if isinstance(query, str) else query
        status, answer, serial = ask(request["type"], query)
        assert (status, type(serial)) == (OK, int), request
        assert answer not in ([], {}), request
        plain = jsonio.loads(jsonio.dumps(answer))
        assert find_difference(plain, request["answer"], f"type {request['type']}") == ""
    assert {item["type"] for item in forms["requests"]} == set(map(int, Kind))
    key = b"key"
    asked = Request(protocol=1, type=Kind.PING, rsalt="x")
    reply = answers.answer(answers.View(config()), asked)
    for inner, form in ((asked, forms["request"]), (reply, forms["reply"])):
        packet = messages.seal(inner, "1700000000", key)
        assert packet[:4] == b"plj0"
        outer = jsonio.loads(packet[4:].decode())
        assert find_difference(outer, forms["envelope"], "envelope") == ""
        assert find_difference(jsonio.loads(outer["msg"]), form, type(inner).__name__) == ""
    assert sorted(forms["faults"].values()) == sorted(map(int, messages.Fault))
    assert (list(forms["roles"].values())) == [
        answers.MASTER,
        answers.CANDIDATE,
        answers.OFFLINE,
        answers.DRAINED,
        answers.REGULAR,
    ]
