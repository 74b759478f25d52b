"""The LUXI client of a limited token knows nothing but its scope."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.luxi import calls
from ganeti.luxi.client import Client, FieldDef, QueryResult
from ganeti.rapi.identity import Identity
from ganeti.rapi.scope import limited

#: name, uuid, group, tags
ROWS = {
    "instance": [("web1", "u1", "side", ["mine"]), ("web2", "u2", "side", []),
                 ("web3", "u3", "default", ["mine"])],
    # uuid, instance, groups, tags
    "disk": [("d1", "web1", ["side"], []), ("d3", "web3", ["default"], []),
             ("loose", None, ["side"], []), ("marked", None, ["default"], ["mine"])],
    "node": [("node1", "n1", "default"), ("node2", "n2", "side")],
}  # fmt: skip


class Master(Client):
    """Remembers what gets through to it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list]] = []

    def query(self, what, fields, qfilter=None):
        rows = [[(0, cell) for cell in row] for row in ROWS[what]]
        return QueryResult([FieldDef(name, name, "text") for name in fields], rows)

    def _read(self, decode, name, args):
        self.seen.append((name, list(args)))
        return 7 if name.startswith("Submit") else []


@pytest.fixture
def master() -> Master:
    return Master()


def token(group=None, tag=None) -> Identity:
    return Identity("token:t", frozenset({"write"}), group, tag)


@pytest.mark.parametrize("identity", [token(group="side"), token(tag="mine")])
@pytest.mark.parametrize("name", sorted(calls.METHODS))
def test_no_request_gets_through_that_is_not_known(master, identity, name):
    """With senseless arguments each method is refused, narrowed, empty or harmless."""
    method = calls.METHODS[name]
    arguments = {"names": ["web9"], "ids": [5], "job": 5, "ops": [{"OP_ID": "OP_CLUSTER_DESTROY"}],
                 "what": "lock", "kind": "network", "name": "net1", "fields": ["name"],
                 "qfilter": None, "lock": False, "tmout": 1}  # fmt: skip
    args = [arguments.get(arg.name) for arg in method.args if not arg.optional]
    client = limited(master, identity)
    if name in ("QueryClusterInfo", "QueryFields"):
        client.call(name, *args)
        assert master.seen
    elif name in ("QueryInstances", "QueryNodes", "QueryGroups", "QueryDisks"):
        assert client.call(name, *args) == []
        assert master.seen == []
    elif name in ("QueryJobs", "CancelJob", "WaitForJobChange"):
        client.call(name, *args)
        assert master.seen[0][0] == "QueryJobs"
    else:
        with pytest.raises(errors.AccessError, match="is limited to"):
            client.call(name, *args)
        assert master.seen == []


def modification(*changes) -> dict:
    return {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1", "disks": list(changes)}


@pytest.mark.parametrize(
    ("identity", "op", "allowed"),
    [
        (token(group="side"), {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web2"}, True),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web2"}, False),
        (token(group="side", tag="mine"),
         {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}, True),
        (token(group="side", tag="mine"),
         {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web3"}, False),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1",
                             "instance_uuid": "u2"}, False),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_STARTUP"}, False),
        (token(group="side"), {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1",
                               "target_node": "node1"}, False),
        (token(group="side"), {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1",
                               "target_node": "node2"}, True),
        (token(group="side"), {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node2"}, True),
        (token(group="side"), {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node1"}, False),
        (token(tag="mine"), {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "node2"}, False),
        (token(tag="mine"), {"OP_ID": "OP_TAGS_SET", "kind": "instance", "name": "web3"}, True),
        (token(tag="mine"), {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": ""}, False),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create",
                             "tags": ["mine"], "disks": [{"size": 1}]}, True),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create",
                             "tags": ["mine"], "disks": [{"adopt": "vm-of-others"}]}, False),
        (token(tag="mine"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "import",
                             "tags": ["mine"]}, False),
        (token(group="side"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create",
                               "group_name": "side"}, True),
        (token(group="side"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create",
                               "pnode": "node2", "snode": "node1"}, False),
        (token(group="side"), {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create"}, False),
        (token(tag="mine"), modification(["attach", -1, {"uuid": "marked"}]), True),
        (token(tag="mine"), modification(["attach", {"uuid": "loose"}]), False),
        (token(tag="mine"), modification(["attach", 0, {"name": "anything"}]), False),
        (token(tag="mine"), modification(["attach", 0, {}]), False),
        (token(group="side"), modification(["attach", 0, {"uuid": "loose"}]), True),
        (token(tag="mine"), modification(["add", -1, {"size": 4}], ["detach", 0, {}]), True),
        (token(tag="mine"), {"OP_ID": "OP_DISK_REMOVE", "disk_name": "marked"}, True),
        (token(tag="mine"), {"OP_ID": "OP_DISK_REMOVE", "disk_name": "loose"}, False),
        (token(tag="mine"), {"OP_ID": "OP_DISK_GROW", "disk_name": "d1"}, True),
        (token(tag="mine"), {"OP_ID": "OP_DISK_GROW", "disk_name": "web1/0"}, False),
        (token(tag="mine"), {"OP_ID": "OP_DISK_ATTACH", "disk_name": "marked",
                             "instance_name": "web1"}, True),
        (token(tag="mine"), {"OP_ID": "OP_DISK_ATTACH", "disk_name": "marked",
                             "instance_name": "web2"}, False),
        (token(tag="mine"), {"OP_ID": "OP_DISK_ATTACH", "disk_name": "marked"}, False),
        (token(tag="mine"), {"OP_ID": "OP_DISK_CREATE", "tags": ["mine"]}, True),
        (token(tag="mine"), {"OP_ID": "OP_DISK_CREATE", "tags": []}, False),
        (token(group="side"), {"OP_ID": "OP_DISK_CREATE", "nodes": ["node2"]}, True),
        (token(group="side"), {"OP_ID": "OP_DISK_CREATE", "nodes": ["node1"]}, False),
        (token(group="side"), {"OP_ID": "OP_DISK_CREATE"}, False),
        (token(tag="mine"), {"OP_ID": "OP_TAGS_SET", "kind": "disk", "name": "loose"}, False),
    ],
)  # fmt: skip
def test_which_jobs_may_be_handed_in(master, identity, op, allowed):
    client = limited(master, identity)
    if allowed:
        assert client.submit_job([op]) == 7
    else:
        with pytest.raises(errors.AccessError):
            client.submit_job([{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}, op])
        assert master.seen == []


def test_who_is_not_limited_has_the_client_itself(master):
    assert limited(master, Identity("a", frozenset())) is master
