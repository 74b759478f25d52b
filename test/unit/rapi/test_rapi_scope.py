"""The LUXI client of a limited token knows nothing but its scope."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.luxi import calls
from ganeti.luxi.client import Client
from ganeti.model.limits import Limits
from ganeti.rapi.identity import Identity
from ganeti.rapi.scope import limited

#: name, uuid, group, tags
ROWS = {
    "instance": [
        ("web1", "u1", "side", ["mine"]),
        ("web2", "u2", "side", []),
        ("web3", "u3", "default", ["mine"]),
    ],
    # uuid, instance, groups, tags
    "disk": [
        ("d1", "web1", ["side"], []),
        ("d3", "web3", ["default"], []),
        ("loose", None, ["side"], []),
        ("marked", None, ["default"], ["mine"]),
    ],
    "node": [("node1", "n1", "default"), ("node2", "n2", "side")],
}


class Master(Client):
    """Remembers what gets through to it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list]] = []

    def _read(self, decode, name, args):
        if name == "Query" and args[0] in ROWS:
            return {"fields": [], "data": [[[0, cell] for cell in row] for row in ROWS[args[0]]]}
        self.seen.append((name, list(args)))
        return 7 if name.startswith("Submit") else []


@pytest.fixture
def master() -> Master:
    return Master()


def token(group=None, tag=None) -> Identity:
    return Identity("token:t", frozenset({"write"}), Limits(name="token:t", group=group, tag=tag))


@pytest.mark.parametrize("identity", [token(group="side"), token(tag="mine")])
@pytest.mark.parametrize("name", sorted(calls.METHODS))
def test_no_request_gets_through_that_is_not_known(master, identity, name):
    """With senseless arguments each method is refused, narrowed, empty or harmless."""
    method = calls.METHODS[name]
    arguments = {
        "names": ["web9"],
        "ids": [5],
        "job": 5,
        "ops": [{"OP_ID": "OP_CLUSTER_DESTROY"}],
        "what": "lock",
        "kind": "network",
        "name": "net1",
        "fields": ["name"],
        "qfilter": None,
        "lock": False,
        "tmout": 1,
    }
    args = [arguments.get(arg.name) for arg in method.args if not arg.optional]
    client = limited(master, identity)
    if name in ("QueryClusterInfo", "QueryFields"):
        client.call(name, *args)
        assert master.seen
    elif name in ("QueryInstances", "QueryNodes", "QueryGroups", "QueryDisks"):
        assert client.call(name, *args) == []
        assert master.seen == []
    elif name == "SubmitJob":
        # What is in a job is the master's decision.
        client.call(name, *args)
        assert master.seen[0][1][-1]["name"] == "token:t"
    elif name in ("QueryJobs", "CancelJob", "WaitForJobChange"):
        client.call(name, *args)
        assert master.seen[0][0] == "QueryJobs"
    else:
        with pytest.raises(errors.AccessError, match="is limited to"):
            client.call(name, *args)
        assert master.seen == []


def test_the_limits_go_to_the_master_with_each_job(master):
    client = limited(master, token(tag="mine"))
    op = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web9"}
    assert client.submit_job([op]) == 7
    assert client.submit_job([op], "key", user="rapi:t") == 7
    limits = {"name": "token:t", "tag": "mine"}
    assert master.seen == [
        ("SubmitJob", [[op], None, None, limits]),
        ("SubmitJob", [[op], "key", "rapi:t", limits]),
    ]


def test_who_is_not_limited_has_the_client_itself(master):
    for held in ("write", "instance.modify"):
        assert limited(master, Identity("a", frozenset({held}))) is master


def test_who_may_not_set_parameters_does_not_see_sensitive_ones(master):
    for held in ("read", "instance.startup"):
        limited(master, Identity("a", frozenset({held}))).query_cluster_info()
        limited(master, Identity("a", frozenset({held}))).query_instances([], ["hvparams"])
    asked = [("QueryClusterInfo", [True]), ("QueryInstances", [[], ["hvparams"], False, True])]
    assert master.seen == asked * 2
