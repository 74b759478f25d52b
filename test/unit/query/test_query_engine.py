"""The engine: columns, filters, look-ups, order, and when nodes are asked."""

import threading

import pytest
from query_cluster import StubSources, config, instance, large, node

from ganeti.errors import OpPrereqError, ParameterError
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.model.group import NodeGroup
from ganeti.query import engine
from ganeti.rpc.objects import Console, InstanceInfo


def names(answer):
    return [row[0][1] for row in answer["data"]]


def ask(sources, what, fields, qfilter=None):
    return engine.query(sources, what, fields, qfilter)


@pytest.fixture
def sources():
    """Three nodes, of which the third is offline, and some instances."""
    disks = [
        Disk(uuid="d1", dev_type=DiskTemplate.PLAIN, nodes=("n1",), iv_name="disk/0", size=1024),
        Disk(uuid="d2", dev_type=DiskTemplate.DRBD, nodes=("n1", "n2"), iv_name="disk/0", size=20),
        Disk(uuid="d3", dev_type=DiskTemplate.PLAIN, nodes=("n3",), iv_name="disk/0", size=1024),
    ]
    return StubSources(
        config(
            [node(1), node(2), node(3, offline=True)],
            [
                instance(10, disks=("d1",), tags=("prod", "web")),
                instance(2, disks=("d2",), tags=("test",), admin_state=AdminState.DOWN),
                instance(1, disks=("d3",), primary_node="n3", beparams={"maxmem": 512}),
            ],
            disks=disks,
        )
    )


# columns -------------------------------------------------------------------------------------


def test_answer_has_definitions_and_cells_in_the_order_asked(sources):
    answer = ask(sources, "instance", ["uuid", "name", "nosuch", "nic.ip/0", "uuid"])
    assert [each["name"] for each in answer["fields"]] == [
        "uuid",
        "name",
        "nosuch",
        "nic.ip/0",
        "uuid",
    ]
    assert [each["kind"] for each in answer["fields"]] == ["text", "text", "unknown"] + ["text"] * 2
    name = (0, "inst1.example.com")
    assert answer["data"][0] == [(0, "i1"), name, (1, None), (3, None), (0, "i1")]


def test_no_fields_give_an_empty_list_for_each_row(sources):
    assert ask(sources, "node", []) == {"fields": [], "data": [[], [], []]}


@pytest.mark.parametrize("fields", ["name", [1], [None], None, [["name"]]])
def test_fields_must_be_names(sources, fields):
    with pytest.raises(ParameterError, match="must be a list of names"):
        ask(sources, "node", fields)


def test_too_many_fields_are_refused(sources):
    with pytest.raises(ParameterError, match="1000 fields at most"):
        ask(sources, "node", ["name"] * 1001)


def test_rows_come_in_natural_order(sources):
    assert names(ask(sources, "instance", ["name"])) == [
        "inst1.example.com",
        "inst2.example.com",
        "inst10.example.com",
    ]
    many = StubSources(config([node(number) for number in (10, 9, 1, 100, 2)]))
    assert names(ask(many, "node", ["name"])) == [
        f"node{number}.example.com" for number in (1, 2, 9, 10, 100)
    ]


# filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qfilter", "expected"),
    [
        (["=[]", "tags", "prod"], [10]),
        (["!", ["=[]", "tags", "prod"]], [1, 2]),
        (["=~", "name", "^inst1"], [1, 10]),
        (["=~", "name", "(?i)INST2"], [2]),
        (["==", "pnode", "node1"], [2, 10]),
        (["!=", "pnode", "node1"], [1]),
        (["=", "os", "debian+minimal"], [1, 2, 10]),
        ([">", "be/maxmem", 128], [1]),
        ([">=", "be/maxmem", 128], [1, 2, 10]),
        (["<", "disk.size/0", 100], [2]),
        (["?", "admin_up"], [1, 10]),
        (["&", ["?", "admin_up"], ["==", "pnode", "node1.example.com"]], [10]),
        (["|", ["=[]", "tags", "test"], [">", "be/maxmem", 128]], [1, 2]),
        (["!", ["|", ["=[]", "tags", "test"], [">", "be/maxmem", 128]]], [10]),
        (["&", ["|", ["==", "name", "inst1"], ["==", "uuid", "i2"]], ["?", "admin_up"]], [1]),
        (["|", ["==", "name", "inst2"], ["==", "uuid", "i1"]], [1, 2]),
        (["&"], [1, 2, 10]),
        (["|"], []),
        (["==", "disk_template", "drbd"], [2]),
        # a condition on a value that is not there is true, so its negation is false
        (["==", "disk.size/3", 5], [1, 2, 10]),
        (["!", ["==", "disk.size/3", 5]], []),
        # a name that another condition stands beside selects, and may be missing
        (["&", ["==", "name", "gone"], ["?", "admin_up"]], []),
        (["|", ["==", "name", "gone"], ["=[]", "tags", "prod"]], [10]),
        (["!=", "name", "gone"], [1, 2, 10]),
    ],
)
def test_filters(sources, qfilter, expected):
    found = names(ask(sources, "instance", ["name"], qfilter))
    assert found == [f"inst{number}.example.com" for number in expected]
    assert sources.calls == []


def test_a_filter_on_an_unknown_field_is_an_error(sources):
    with pytest.raises(ParameterError, match=r"unknown instance field 'pnodes'.*pnode"):
        ask(sources, "instance", ["name"], ["==", "pnodes", "a"])


@pytest.mark.parametrize(
    "qfilter",
    [
        ["==", "be/maxmem", "x"],
        ["?", "name"],
        ["==", "admin_up", 1],
        ["=~", "disk.count", "x"],
        ["=[]", "name", "x"],
        ["=[]", "beparams", "x"],
        ["=[]", "disk.sizes", "x"],
        ["=~", "name", "("],
    ],
)
def test_a_filter_of_the_wrong_type_is_an_error(sources, qfilter):
    with pytest.raises(ParameterError):
        ask(sources, "instance", ["name"], qfilter)


def test_a_malformed_filter_is_an_error(sources):
    with pytest.raises(OpPrereqError):
        ask(sources, "instance", ["name"], ["=="])


@pytest.mark.parametrize("number", ["9" * 19, "9" * 60_000, "x", "-1", "1.0", ""])
def test_a_job_id_that_is_no_number_is_an_error(sources, number):
    with pytest.raises(ParameterError, match="is a number"):
        ask(sources, "job", ["id"], ["==", "id", number])


# look-ups ------------------------------------------------------------------------------------


def test_names_are_looked_up_in_their_order(sources):
    wanted = ["|", *(["==", "name", name] for name in ("inst10", "inst1.example.com", "i2"))]
    found = names(ask(sources, "instance", ["name"], wanted))
    assert found == ["inst10.example.com", "inst1.example.com", "inst2.example.com"]


@pytest.mark.parametrize("what", ["instance", "node", "group", "network"])
def test_a_name_that_does_not_exist_is_an_error(sources, what):
    with pytest.raises(OpPrereqError) as err:
        ask(sources, what, ["name"], ["==", "name", "gone"])
    assert err.value.args[1] == "unknown_entity"
    with pytest.raises(OpPrereqError):
        ask(sources, what, ["name"], ["|", ["|", ["==", "name", "gone"]]])


def test_an_export_or_rule_that_does_not_exist_is_an_error(sources):
    for what, field in (("export", "node"), ("filter", "uuid")):
        with pytest.raises(OpPrereqError) as err:
            ask(sources, what, [field], ["==", field, "gone"])
        assert err.value.args[1] == "unknown_entity"


def test_a_lock_that_does_not_exist_is_no_error(sources):
    assert ask(sources, "lock", ["name"], ["==", "name", "node/x"])["data"] == []


def test_exact_names_win_over_short_ones_and_several_are_an_error():
    dotted = [instance(1, name="web"), instance(2, name="web.a"), instance(3, name="db.a")]
    sources = StubSources(config([], [*dotted, instance(4, name="db.b")]))
    assert names(ask(sources, "instance", ["name"], ["==", "name", "web"])) == ["web"]
    with pytest.raises(OpPrereqError, match=r"ambiguous: db\.a, db\.b"):
        ask(sources, "instance", ["name"], ["==", "name", "db"])
    selected = ask(sources, "instance", ["name"], ["&", ["==", "name", "db"]])
    assert names(selected) == ["db.a", "db.b"]


def test_an_instance_without_name_is_not_found_by_an_empty_name():
    sources = StubSources(config([], [instance(1, name="", forthcoming=True)]))
    assert names(ask(sources, "instance", ["uuid"])) == ["i1"]
    with pytest.raises(OpPrereqError):
        ask(sources, "instance", ["uuid"], ["==", "name", ""])


def test_groups_have_no_short_names():
    sources = StubSources(config(groups=[NodeGroup(uuid="g1", name="rack.one")]))
    assert names(ask(sources, "group", ["name"], ["==", "name", "g1"])) == ["rack.one"]
    with pytest.raises(OpPrereqError):
        ask(sources, "group", ["name"], ["==", "name", "rack"])


# live data -----------------------------------------------------------------------------------


def test_static_queries_ask_nobody(sources):
    for what in ("instance", "node", "group", "network", "filter"):
        kind = engine.kind_of(what)
        static = [name for name, field in kind.fields.items() if not field.needs]
        assert ask(sources, what, static)["fields"]
    assert sources.calls == []


def test_nodes_are_asked_once_and_only_those_that_are_needed(sources):
    ask(sources, "instance", ["status", "oper_ram", "oper_vcpus", "oper_state"])
    assert sources.calls == [("instances_info", ["n1", "n2"])]


def test_conditions_on_the_configuration_come_before_nodes_are_asked(sources):
    wanted = ["&", ["=[]", "tags", "prod"], ["==", "status", "running"]]
    ask(sources, "instance", ["name"], wanted)
    assert sources.calls == [("instances_info", ["n1"])]
    sources.calls.clear()
    ask(sources, "instance", ["status"], ["==", "name", "inst2"])
    assert sources.calls == [("instances_info", ["n1", "n2"])]
    sources.calls.clear()
    assert ask(sources, "instance", ["status"], ["=[]", "tags", "none"])["data"] == []
    assert sources.calls == []


def test_nobody_is_asked_for_instances_of_an_offline_node(sources):
    answer = ask(sources, "instance", ["status", "oper_ram", "console"], ["==", "name", "inst1"])
    assert answer["data"] == [[(0, "ERROR_nodeoffline"), (4, None), (4, None)]]
    assert sources.calls == []


def test_live_filters_select_by_what_the_nodes_say(sources):
    running = InstanceInfo(memory=256, vcpus=2, state=0)
    sources.running["n1"] = {"inst10.example.com": running}
    found = ask(sources, "instance", ["name"], ["==", "status", "running"])
    assert names(found) == ["inst10.example.com"]
    more = ask(sources, "instance", ["name"], ["!", [">", "oper_ram", 200]])
    assert names(more) == []


def test_different_calls_run_side_by_side(sources):
    meeting = threading.Barrier(2, timeout=5)
    sources.console_of["i10"] = Console(instance="inst10.example.com", kind="msg", message="hello")
    plain_info, plain_consoles = sources.instances_info, sources.consoles

    def instances_info(nodes, hypervisors):
        meeting.wait()
        return plain_info(nodes, hypervisors)

    def consoles(instances):
        meeting.wait()
        return plain_consoles(instances)

    sources.instances_info, sources.consoles = instances_info, consoles
    before = set(threading.enumerate())
    answer = ask(sources, "instance", ["status", "console"], ["==", "name", "inst10"])
    console = {"instance": "inst10.example.com", "kind": "msg", "message": "hello"}
    assert answer["data"] == [[(0, "ERROR_down"), (0, console)]]
    assert set(threading.enumerate()) <= before


def test_an_error_of_a_call_reaches_the_caller(sources):
    def broken(nodes, hypervisors):
        raise ParameterError("broken")

    sources.instances_info = broken
    for fields in (["status"], ["status", "console"]):
        with pytest.raises(ParameterError, match="broken"):
            ask(sources, "instance", fields)


# one snapshot --------------------------------------------------------------------------------


def test_every_field_of_a_large_cluster_has_a_cell_of_the_promised_form():
    sources = StubSources(large(60))
    for what in ("instance", "node", "group"):
        kind = engine.kind_of(what)
        answer = ask(sources, what, list(kind.fields))
        shapes = {
            "text": str,
            "bool": bool,
            "number": int,
            "unit": int,
            "float": float,
            "timestamp": float,
        }
        assert answer["data"]
        for row in answer["data"]:
            for definition, (status, value) in zip(answer["fields"], row, strict=True):
                assert status in (0, 2, 3, 4), definition
                if status:
                    assert value is None
                elif definition["kind"] in shapes:
                    assert isinstance(value, shapes[definition["kind"]]), definition


def test_a_disk_that_is_missing_does_not_stop_the_query():
    sources = StubSources(config([], [instance(1, disks=("gone",))]))
    fields = ["snodes", "disk.sizes", "disk.size/0", "disk_usage", "disk_template"]
    assert ask(sources, "instance", fields)["data"] == [
        [(0, []), (0, [None]), (3, None), (0, 0), (0, "diskless")]
    ]
