"""The LUXI client of a limited token knows nothing but its scope."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.luxi import calls
from ganeti.luxi.client import Client
from ganeti.model.limits import Limits
from ganeti.rapi.identity import Identity
from ganeti.rapi.scope import limit_client

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


UUID = "00000000-0000-4000-8000-000000000001"


def _op(user: str, source: str = "gnt:library:rlib2:GET") -> dict:
    return {"OP_ID": "OP_TEST_DUMMY", "reason": [["gnt:user", "why", 1], [source, user, 2]]}


#: id, opcodes
JOBS = [
    [1, [_op("token:t")]],
    [2, [_op("token:other")]],
    [3, [_op("token:t", "gnt:client:gnt-instance")]],
    [4, [{"OP_ID": "OP_TEST_DUMMY"}]],
    [5, [{"OP_ID": "OP_TEST_DUMMY", "reason": None}, _op("token:t")]],
    [6, [{"OP_ID": "OP_TEST_DUMMY", "reason": ["gnt:library:rlib2:", ["gnt:library:rlib2:", 1]]}]],
    [7, None],
]


class Master(Client):
    """Remembers what gets through to it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list]] = []

    def _read(self, decode, name, args):
        if name == "Query" and args[0] in ROWS and args[1] != ["asked"]:
            return {"fields": [], "data": [[[0, cell] for cell in row] for row in ROWS[args[0]]]}
        self.seen.append((name, list(args)))
        if name == "QueryJobs" and list(args[1]) == ["id", "ops"]:
            return [row for row in JOBS if not args[0] or row[0] in args[0]]
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
        "instance": "web9",
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
    client = limit_client(master, identity)
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
    client = limit_client(master, token(tag="mine"))
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
        assert limit_client(master, Identity("a", frozenset({held}))) is master


def test_who_may_not_set_parameters_does_not_see_sensitive_ones(master):
    for held in ("read", "instance.startup"):
        limit_client(master, Identity("a", frozenset({held}))).query_cluster_info()
        limit_client(master, Identity("a", frozenset({held}))).query_instances([], ["hvparams"])
    asked = [("QueryClusterInfo", [True]), ("QueryInstances", [[], ["hvparams"], False, True])]
    assert master.seen == asked * 2


# what a list holds


def get_arguments(master: Master) -> list:
    """The arguments of the one request that got through."""
    [(_name, args)] = master.seen
    return args


def names(master: Master, kind: str, identity: Identity, *wanted: str) -> list[str]:
    """The names that a list of a kind asks the master for; none when it is not asked."""
    master.seen.clear()
    method = {"instance": "QueryInstances", "node": "QueryNodes", "disk": "QueryDisks"}
    method["group"] = "QueryGroups"
    limit_client(master, identity).call(method[kind], list(wanted), ["name"], False)
    return get_arguments(master)[0] if master.seen else []


GROUP, TAG = token(group="side"), token(tag="mine")
BOTH = token(group="side", tag="mine")


@pytest.mark.parametrize(
    ("kind", "identity", "known"),
    [
        ("instance", GROUP, ["u1", "u2", "web1", "web2"]),
        ("instance", TAG, ["u1", "u3", "web1", "web3"]),
        ("instance", BOTH, ["u1", "web1"]),
        ("node", GROUP, ["n2", "node2"]),
        ("node", TAG, []),
        ("node", BOTH, []),
        ("disk", GROUP, ["d1", "loose"]),
        ("disk", TAG, ["d1", "d3", "marked"]),
        ("disk", BOTH, ["d1"]),
        ("group", GROUP, ["side"]),
        ("group", TAG, []),
    ],
)
def test_a_list_holds_what_is_in_the_scope(master, kind, identity, known):
    assert names(master, kind, identity) == known


def test_of_names_that_are_asked_for_only_those_of_the_scope_get_through(master):
    assert names(master, "instance", GROUP, "web3", "web2", "web1") == ["web2", "web1"]
    assert names(master, "instance", GROUP, "web3") == []


def test_an_object_is_not_given_twice_by_name_and_uuid(master, monkeypatch):
    monkeypatch.setitem(ROWS, "instance", [("web1", UUID, "side", [])])
    assert names(master, "instance", GROUP) == ["web1"]
    dotted = UUID[:-2] + ".x"
    monkeypatch.setitem(ROWS, "instance", [(dotted, UUID, "side", None)])
    assert names(master, "instance", GROUP) == [dotted]


def test_a_detached_disk_on_nodes_of_several_groups_is_in_no_group(master, monkeypatch):
    monkeypatch.setitem(ROWS, "disk", [("d", None, ["side", "default"], None)])
    assert names(master, "disk", GROUP) == []
    monkeypatch.setitem(ROWS, "disk", [("d", None, [], None), ("e", None, None, None)])
    assert names(master, "disk", GROUP) == []


@pytest.mark.parametrize(
    ("what", "field", "known"),
    [
        ("instance", "name", ["u1", "u2", "web1", "web2"]),
        ("node", "name", ["n2", "node2"]),
        ("group", "name", ["side"]),
        ("disk", "uuid", ["d1", "loose"]),
    ],
)
def test_a_query_is_narrowed_by_a_filter(master, what, field, known):
    mine = ["|", *(["==", field, name] for name in known)]
    client = limit_client(master, GROUP)
    for qfilter, sent in ((None, mine), (["?", "x"], ["&", mine, ["?", "x"]])):
        master.seen.clear()
        client.call("Query", what, ["asked"], qfilter)
        assert get_arguments(master) == [what, ["asked"], sent, True]


def test_operating_systems_belong_to_nobody(master):
    limit_client(master, GROUP).call("Query", "os", ["name"], None)
    assert get_arguments(master) == ["os", ["name"], None, True]


def test_a_query_with_nothing_in_the_scope_asks_for_nothing(master):
    limit_client(master, TAG).call("Query", "group", ["name"], ["?", "x"])
    _what, _fields, (operator, nothing, rest), _redacted = get_arguments(master)
    assert (operator, rest) == ("&", ["?", "x"])
    assert not any(_passes(nothing, name) for name in ("", "default", "side"))


def _passes(qfilter: list, name: str) -> bool:
    """What the master says to a filter on names."""
    operator, *parts = qfilter
    match operator:
        case "&":
            return all(_passes(part, name) for part in parts)
        case "|":
            return any(_passes(part, name) for part in parts)
        case "==":
            return parts == ["name", name]
        case "!=":
            return parts != ["name", name]
    raise AssertionError(operator)


@pytest.mark.parametrize("what", ["job", "lock", "network", "filter", "export", "cluster"])
def test_a_query_of_another_kind_is_refused(master, what):
    with pytest.raises(errors.AccessError, match=f"may not do queries of kind {what}"):
        limit_client(master, GROUP).call("Query", what, ["name"], None)


# jobs


def test_jobs_are_those_that_the_token_handed_in_itself(master):
    limit_client(master, GROUP).call("QueryJobs", None, ["id"])
    assert master.seen[-1] == ("QueryJobs", [[1, 5], ["id"], True])


def test_jobs_of_others_are_refused_when_they_are_asked_for(master):
    client = limit_client(master, GROUP)
    client.call("QueryJobs", [1, 5], ["id"])
    assert master.seen[-1] == ("QueryJobs", [[1, 5], ["id"], True])
    for ids in ([1, 2], [3], [4], [6], [7]):
        with pytest.raises(errors.AccessError, match="anything with the jobs of others"):
            client.call("QueryJobs", ids, ["id"])


def test_who_has_no_jobs_gets_an_empty_list(master):
    other = Identity("token:new", frozenset({"write"}), Limits(name="token:new", group="side"))
    assert limit_client(master, other).call("QueryJobs", None, ["id"]) == []
    assert len(master.seen) == 1, "only its own question got through"


def test_only_an_own_job_is_canceled_or_watched(master):
    client = limit_client(master, GROUP)
    client.call("CancelJob", 1)
    assert master.seen[-1] == ("CancelJob", [1])
    client.call("WaitForJobChange", 5, ["status"], None, None, 0)
    assert master.seen[-1] == ("WaitForJobChange", [5, ["status"], None, None, 0, True])
    master.seen.clear()
    for name, rest in (("CancelJob", []), ("WaitForJobChange", [["status"], None, None, 0])):
        with pytest.raises(errors.AccessError):
            client.call(name, 2, *rest)
    assert {name for name, _args in master.seen} == {"QueryJobs"}


# tags


@pytest.mark.parametrize(
    ("kind", "name", "may"),
    [
        ("cluster", "", True),
        ("instance", "web1", True),
        ("instance", "u2", True),
        ("instance", "web3", False),
        ("node", "node2", True),
        ("node", "node1", False),
        ("disk", "d1", True),
        ("disk", "d3", False),
        ("nodegroup", "side", True),
        ("nodegroup", "default", False),
        ("network", "side", False),
    ],
)
def test_tags_of_what_is_in_the_scope(master, kind, name, may):
    client = limit_client(master, GROUP)
    if may:
        client.query_tags(kind, name)
        assert get_arguments(master)[:2] == [kind, name]
    else:
        with pytest.raises(errors.AccessError, match=f"{kind} '{name}'"):
            client.query_tags(kind, name)
        assert master.seen == []
