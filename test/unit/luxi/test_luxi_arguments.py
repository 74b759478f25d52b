"""What a method accepts: the number of arguments, their types, and one object instead of a list."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from ganeti import errors
from ganeti.luxi import calls

ASKED = {"what": "node", "fields": ["name"], "qfilter": ["==", "name", "node1"]}


def bound(method: str, args: Any) -> dict[str, Any]:
    """As the server reads it."""
    name, read = calls.decode_request(json.dumps({"method": method, "args": args}).encode())
    return calls.bind(calls.find(name), read)


@pytest.mark.parametrize(
    "args",
    [
        ["node", ["name"], ["==", "name", "node1"]],
        {"what": "node", "fields": ["name"], "filter": ["==", "name", "node1"]},
        {"what": "node", "fields": ["name"], "qfilter": ["==", "name", "node1"]},
        [{"what": "node", "fields": ["name"], "filter": ["==", "name", "node1"]}],
        [{"fields": ["name"], "qfilter": ["==", "name", "node1"], "what": "node"}],
    ],
)
def test_a_query_in_every_form(args):
    assert bound("Query", args) == ASKED


@pytest.mark.parametrize("args", [["node", None], [{"what": "node"}], {"what": "node"}])
def test_what_may_be_null_may_be_missing(args):
    assert bound("QueryFields", args) == {"what": "node", "fields": None}
    assert bound("Query", {"what": "node", "fields": []})["qfilter"] is None


@pytest.mark.parametrize(
    ("method", "args", "text"),
    [
        ("Query", {"what": "node"}, "the key 'fields' is missing"),
        ("Query", [{"fields": ["name"]}], "the key 'what' is missing"),
        ("Query", {"what": "node", "fields": [], "name": 5}, 'no key "name"'),
        ("Query", {"what": "node", "fields": [], "qfitler": 5}, "(did you mean qfilter?)"),
        ("Query", {"what": "node", "fields": [], "filter": None, "qfilter": None}, "both set"),
        ("Query", [{}, []], "takes 3 to 4 arguments"),
        ("QueryNodes", {"names": [], "fields": [], "lock": False}, "'args' must be a list"),
        ("QueryNodes", ["n", [], False], "'names' must be a list of texts, not \"n\""),
        ("QueryNodes", [[], [5], False], "'fields' must be a list of texts"),
        ("QueryNodes", [[], [], "no"], "'lock' must be true or false"),
        ("QueryJobs", [[1.5], []], "'ids' must be a list of job ids, which are numbers, or null"),
        ("CancelJob", ["x"], "'job' must be a job id"),
        ("CancelJob", [True], "'job' must be a job id"),
        ("CancelJob", [10**30], "'job' must be a job id"),
        ("CancelJob", ["9" * 30], "'job' must be a job id"),
        ("AutoArchiveJobs", [10**400, 1], "'age' must be a number, not 1000"),
        ("WaitForJobChange", [1, [], None, None, "1"], "'tmout' must be a number"),
        ("SubmitManyJobs", [[{}]], "'jobs' must be a list of lists of opcodes"),
        ("QueryTags", ["node", "\ud800"], "d800 is not a character"),
        ("QueryTags", ["node", "a\0"], "0000 is not a character"),
        ("QueryTags", ["node", {"a": "\udfff"}], "dfff is not a character"),
    ],
)
def test_what_is_wrong_is_named(method, args, text):
    with pytest.raises(errors.RequestError) as caught:
        bound(method, args)
    assert text in errors.text(caught.value)
    assert len(errors.text(caught.value)) < 300


def test_clients_may_give_tuples_and_other_mappings():
    method = calls.find("SubmitJob")
    ops = ({"OP_ID": "OP_TEST_DELAY"}, MappingProxyType({"OP_ID": "OP_TEST_DELAY"}))
    assert calls.bind(method, (ops,)) == {"ops": ops}


def test_older_clients_send_job_ids_as_texts():
    assert bound("QueryJobs", [["17", 18], ["id"]])["ids"] == ["17", 18]
    assert bound("ArchiveJob", ["17"]) == {"job": "17"}


def test_a_whole_character_of_two_halves_is_one():
    assert bound("QueryTags", ["node", "\U0001f600"])["name"] == "\U0001f600"
