"""This version works together with the recorded one before it: nodes, clients, files.

A failure here while the recorded release is not out yet: run ``tools/record-forms`` and review what
changes in the record. Else the change breaks clusters in the middle of an upgrade: give new
arguments and members a default, and keep those that the other version needs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import wire_forms
from wire_forms import Record

from ganeti import errors
from ganeti.base.releases import OWN, parse
from ganeti.config.upgrade.accept import accept, decode
from ganeti.model import job as job_model
from ganeti.rpc import wire

RELEASES = Path(__file__).parents[1] / "recorded" / "releases"
BESIDE = [path for path in sorted(RELEASES.glob("*.json")) if parse(path.stem).is_beside(OWN)]


@pytest.fixture(scope="module")
def ours() -> Record:
    found: Record = json.loads(json.dumps(wire_forms.describe()))
    return found


@pytest.fixture(params=BESIDE, ids=lambda path: str(path.stem))
def theirs(request: pytest.FixtureRequest) -> Record:
    found: Record = json.loads(request.param.read_text())
    return found


def file_problems(reader: Record, writer: Record, what: str) -> list[str]:
    return wire_forms.find_unreadable(
        reader[what], reader["objects"], writer[what], writer["objects"], drops=True
    )


def test_there_is_a_record() -> None:
    assert BESIDE


def test_an_old_master_calls_new_nodes(ours: Record, theirs: Record) -> None:
    assert set(theirs["node_calls"]) <= set(ours["node_calls"])
    assert wire_forms.find_call_problems(theirs, ours) == []


def test_a_new_master_calls_old_nodes(ours: Record, theirs: Record) -> None:
    assert wire_forms.find_call_problems(ours, theirs) == []


def test_old_clients_ask_a_new_master(ours: Record, theirs: Record) -> None:
    for name, arguments in theirs["luxi"].items():
        present = ours["luxi"][name]
        assert present[: len(arguments)] == arguments, name
        assert all(optional for _name, _type, optional in present[len(arguments) :]), name


def test_opcodes_of_old_clients_and_old_jobs_are_understood(ours: Record, theirs: Record) -> None:
    found = []
    for name, form in theirs["opcodes"].items():
        assert name in ours["opcodes"]
        problems = wire_forms.find_unreadable(
            ours["opcodes"][name], ours["objects"], form, theirs["objects"]
        )
        found += [f"{name}{text}" for text in problems]
    assert found == []


@pytest.mark.parametrize("what", ["config", "job"])
def test_files_are_read_up_and_down(ours: Record, theirs: Record, what: str) -> None:
    assert file_problems(ours, theirs, what) == []
    assert file_problems(theirs, ours, what) == []


def add_needed_argument(record: Record) -> None:
    call = record["node_calls"]["node_has_ip_address"]
    call["arguments"].append("bool")
    call["needed"] += 1


def drop_member(record: Record) -> None:
    del record["objects"]["rpc.objects.NodeInstance"]["members"]["uuid"]


def change_type(record: Record) -> None:
    record["objects"]["rpc.objects.NodeDisk"]["members"]["size"][1] = "str"


def change_answer(record: Record) -> None:
    record["node_calls"]["version"]["result"] = "str"


def add_value(record: Record) -> None:
    members = record["objects"]["rpc.objects.NodeDisk"]["members"]
    members["dev_type"][1][1].append("tape")


@pytest.mark.parametrize(
    "spoil", [add_needed_argument, drop_member, change_type, change_answer, add_value]
)
def test_a_new_master_that_old_nodes_would_refuse_is_noticed(
    ours: Record, spoil: Callable[[Record], None]
) -> None:
    newer = copy.deepcopy(ours)
    spoil(newer)
    assert wire_forms.find_call_problems(newer, ours)


def test_what_a_newer_version_may_add_is_no_problem(ours: Record) -> None:
    newer = copy.deepcopy(ours)
    newer["node_calls"]["node_has_ip_address"]["arguments"].append("bool")
    newer["node_calls"]["future"] = newer["node_calls"]["version"]
    newer["objects"]["rpc.objects.NodeDisk"]["members"]["future"] = [False, "str"]
    newer["objects"]["model.cluster.Cluster"]["members"]["future"] = [False, "str"]
    for left, right in ((ours, newer), (newer, ours)):
        assert wire_forms.find_call_problems(left, right) == []
        assert file_problems(left, right, "config") == []


def test_a_needed_member_of_the_configuration_is_noticed(ours: Record) -> None:
    newer = copy.deepcopy(ours)
    newer["objects"]["model.cluster.Cluster"]["members"]["future"] = [True, "str"]
    assert file_problems(newer, ours, "config") == ["/cluster/future: is needed, and not written"]


# what the code does with it


def test_last_arguments_may_be_missing_in_both_directions() -> None:
    spec = wire.CallSpec("call", object, 1.0, tuple[int, str, bool], type(None), "", ("", False))
    assert wire.decode_args(spec, [1]) == (1, "", False)
    assert wire.decode_args(spec, [1, "a"]) == (1, "a", False)
    for wrong in ([], [1, "a", True, 5], [1, 2]):
        with pytest.raises(errors.ParameterError, match="call call"):
            wire.decode_args(spec, wrong)
    assert wire.trim_args(spec, [1, "", False]) == [1]
    assert wire.trim_args(spec, [1, "a", False]) == [1, "a"]
    assert wire.trim_args(spec, [1, "", True]) == [1, "", True]


def test_a_node_ignores_members_that_only_a_newer_master_knows() -> None:
    spec = wire.specs()["blockdev_remove"]
    disk = {"uuid": "d", "dev_type": "file", "logical_id": ["file", "/x"], "size": 8, "future": 1}
    (decoded,) = wire.decode_args(spec, [disk])
    assert decoded.uuid == "d"
    answer = {"running": "3.2", "release": "3.2.0", "active": "", "installed": [], "future": {}}
    assert wire.decode_result(wire.specs()["version_state"], answer).running == "3.2"


def test_a_job_file_of_a_newer_version_is_read() -> None:
    op = {"input": {"OP_ID": "OP_FUTURE", "new": 1}, "status": "queued", "future": 1}
    submitter = {"uid": 0, "future": 1}
    job = job_model.from_wire({"id": 5, "ops": [op], "submitter": submitter, "future": 1})
    assert (job.id, job.ops[0].input["OP_ID"]) == (5, "OP_FUTURE")


def test_accept_refuses_what_it_cannot_mean() -> None:
    for raw in (None, [], {}, {"version": 1}, {"version": (OWN.major + 7) * 1_000_000}):
        with pytest.raises(errors.ConfigurationError):
            accept(raw)
    for text in ("", "{}", "[1", '{"config": 5}'):
        with pytest.raises(errors.ConfigurationError):
            decode(text)
