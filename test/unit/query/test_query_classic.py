"""The old calls with bare values."""

import pytest
from query_cluster import StubSources, config, instance, node

from ganeti.errors import OpPrereqError
from ganeti.model.group import NodeGroup
from ganeti.model.job import from_wire
from ganeti.query.classic import EXPORT_FIELDS, classic, compile_query
from ganeti.query.live import JobView


@pytest.fixture
def sources():
    return StubSources(
        config(
            [node(1), node(2, offline=True)],
            [instance(number) for number in (10, 2, 1)],
            groups=[NodeGroup(uuid="g1", name="default")],
        )
    )


def test_values_are_bare_and_null_without_normal_status(sources):
    rows = classic(sources, "node", [], ["name", "offline", "mfree", "powered"])
    assert rows == [
        ["node1.example.com", False, None, None],
        ["node2.example.com", True, None, None],
    ]


@pytest.mark.parametrize("names", [[], None])
def test_no_names_mean_all_in_natural_order(sources, names):
    rows = classic(sources, "instance", names, ["name"])
    assert [row[0].partition(".")[0] for row in rows] == ["inst1", "inst2", "inst10"]


def test_names_select_and_missing_ones_are_silently_absent(sources):
    wanted = ["inst10", "gone", "inst2.example.com", "i1"]
    rows = classic(sources, "instance", wanted, ["uuid"])
    assert rows == [["i1"], ["i2"], ["i10"]]
    assert classic(sources, "instance", ["gone"], ["uuid"]) == []
    assert classic(sources, "group", ["g1"], ["name"]) == [["default"]]


@pytest.mark.parametrize("what", ["instance", "node", "group", "network", "export"])
def test_locking_is_refused(sources, what):
    with pytest.raises(OpPrereqError) as err:
        compile_query(sources, what, [], ["name"], True)
    assert err.value.args[1] == "wrong_input"


def test_unknown_fields_are_listed(sources):
    with pytest.raises(OpPrereqError) as err:
        classic(sources, "node", [], ["name", "foo", "bar"])
    assert err.value.args == ("Unknown output fields selected: foo, bar", "wrong_input")


def test_exports_by_name_short_name_or_uuid(sources):
    sources.exported["n1"] = ["web"]
    expected = [["node1.example.com", "web"]]
    for name in ("node1.example.com", "node1", "n1"):
        assert classic(sources, "export", [name], EXPORT_FIELDS) == expected
    assert classic(sources, "export", ["gone"], EXPORT_FIELDS) == []
    assert classic(sources, "export", [], EXPORT_FIELDS) == [*expected, ["node2.example.com", None]]


def test_jobs_by_id_have_a_row_each(sources):
    ops = [{"input": {"OP_ID": "OP_TEST_DELAY"}, "status": "success", "priority": 0}]
    sources.queue = {number: JobView(from_wire({"id": number, "ops": ops})) for number in (3, 20)}
    fields = ["id", "status"]
    assert classic(sources, "job", [20, 7, 3], fields) == [
        [20, "success"],
        [7, None],
        [3, "success"],
    ]
    assert classic(sources, "job", None, fields) == [[3, "success"], [20, "success"]]
