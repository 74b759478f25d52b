"""gnt-filter on a running cluster: rules come, change and go; wrong ones are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster

from ganeti import errors
from ganeti.luxi.client import Client

DRAIN = '[["jobid", [">", "id", "watermark"]]]'
DELAYS = '[["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]]'
NOBODY = "3f2c9a10-5b7e-4d68-9c1f-2a6b8e0d4c57"
FIELDS = ("uuid", "watermark", "priority", "predicates", "action", "reason_trail")


@pytest.fixture(autouse=True)
def no_rules_stay(cluster: Cluster) -> Iterator[None]:
    yield
    for (uuid,) in cluster.cells("filter list -o uuid"):
        cluster.ok("filter delete", uuid)


def add(cluster: Cluster, *words: str) -> str:
    return cluster.ok("filter add", *words).out.strip()


def rules(client: Client) -> dict[str, dict[str, Any]]:
    return {row[0]: dict(zip(FIELDS, row)) for row in client.query_filters(None, FIELDS)}


def test_add_shows_the_uuid_and_list_the_rule(cluster: Cluster, client: Client) -> None:
    assert rules(client) == {}
    last_job = max(row[0] for row in client.query_jobs(None, ["id"]))
    uuid = add(
        cluster,
        "--predicates",
        DELAYS,
        "--action",
        "RATE_LIMIT 2",
        "--priority",
        "7",
        "--reason",
        "quiet hours",
    )
    (rule,) = rules(client).values()
    assert rule["uuid"] == uuid
    assert rule["watermark"] == last_job
    assert rule["priority"] == 7
    assert rule["action"] == ["RATE_LIMIT", 2]
    assert rule["predicates"] == json.loads(DELAYS)
    assert [entry[:2] for entry in rule["reason_trail"]] == [
        ["gnt:user", "quiet hours"],
        ["gnt:client:gnt-filter", "add"],
        ["luxid", ""],
    ]
    line = "filter list -o uuid,watermark,priority,predicates,action"
    assert cluster.cells(line, uuid) == [
        [
            uuid,
            str(last_job),
            "7",
            "[['opcode', ['=', 'OP_ID', 'OP_TEST_DELAY']]]",
            "['RATE_LIMIT', 2]",
        ]
    ]
    titles = cluster.ok("filter list").lines[0].split()
    assert titles == ["UUID", "Watermark", "Priority", "Predicates", "Action", "ReasonTrail"]


def test_defaults(cluster: Cluster, client: Client) -> None:
    uuid = add(cluster)
    rule = rules(client)[uuid]
    assert (rule["priority"], rule["predicates"], rule["action"]) == (0, [], "CONTINUE")


def test_info(cluster: Cluster) -> None:
    second = add(cluster, "--priority", "5", "--action", "RATE_LIMIT 3")
    first = add(cluster, "--priority", "1", "--predicates", DELAYS)
    lines = cluster.ok("filter info").lines
    assert [line for line in lines if line.startswith("UUID")] == [
        f"UUID: {first}",
        f"UUID: {second}",
    ]
    assert '  Predicates: [["opcode",["=","OP_ID","OP_TEST_DELAY"]]]' in lines
    assert cluster.ok("filter info", second).lines[4] == "  Action: RATE_LIMIT 3"
    missing = cluster.ok("filter info", NOBODY)
    assert missing.out == ""
    assert NOBODY in missing.err


def test_list_selects_by_filter_pattern_and_uuid(cluster: Cluster) -> None:
    low, high = add(cluster), add(cluster, "--priority", "9")
    assert cluster.cells("filter list -o uuid", "priority > 3") == [[high]]
    assert cluster.cells("filter list -o uuid", f"{low[:13]}*") == [[low]]
    assert cluster.cells("filter list -o uuid", high, low) == [[high], [low]]


def test_list_fields(cluster: Cluster) -> None:
    rows = cluster.cells("filter list-fields")
    assert [row[0] for row in rows] == sorted(FIELDS)
    assert cluster.gnt("filter list-fields", "colour").code == 14


def test_replace_is_complete_and_makes_what_is_missing(cluster: Cluster, client: Client) -> None:
    uuid = add(cluster, "--priority", "9", "--predicates", DELAYS, "--action", "RATE_LIMIT 1")
    old = rules(client)[uuid]
    cluster.ok("debug delay", "0")
    replaced = cluster.ok("filter replace --action", "ACCEPT", uuid)
    assert replaced.out.strip() == uuid
    new = rules(client)[uuid]
    assert (new["priority"], new["predicates"], new["action"]) == (0, [], "ACCEPT")
    assert new["watermark"] > old["watermark"]
    assert cluster.ok("filter replace", NOBODY).out.strip() == NOBODY
    assert set(rules(client)) == {uuid, NOBODY}


def test_delete(cluster: Cluster, client: Client) -> None:
    uuid, other = add(cluster), add(cluster)
    assert cluster.ok("filter delete", uuid).out == ""
    assert set(rules(client)) == {other}
    again = cluster.gnt("filter delete", uuid)
    assert again.code == 1
    assert again.err.startswith(f"there is no filter rule {uuid}")
    assert uuid in again.err


def test_rules_survive_a_crash_of_the_master(cluster: Cluster) -> None:
    kept = add(cluster, "--predicates", DRAIN, "--priority", "4")
    gone = add(cluster)
    cluster.ok("filter delete", gone)
    before = cluster.cells("filter list")
    cluster.kill_master()
    assert cluster.start_master().code == 0
    assert cluster.cells("filter list") == before
    assert before[0][0] == kept


def test_condition_that_never_holds_is_pointed_out(cluster: Cluster) -> None:
    ran = cluster.ok("filter add --predicates", '[["reason", ["=~", "reason", "backup"]]]')
    assert "never holds" in ran.err
    assert "reason" not in cluster.ok("filter add --predicates", DELAYS).err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--action", "REJEKT"), 2, "did you mean REJECT"),
        (("--action", "RATE_LIMIT"), 2, "RATE_LIMIT 4"),
        (("--action", "RATE_LIMIT many"), 2, "RATE_LIMIT 4"),
        (("--action", "RATE_LIMIT 0"), 1, "from 1 on"),
        (("--priority", "-1"), 1, "from 0 to"),
        (("--priority", "high"), 2, "high"),
        (("--predicates", "[[}"), 2, "column 3"),
        (("--predicates", '{"jobid": 1}'), 2, "expected a list"),
        (("--predicates", '[["jobid"]]'), 1, "predicate 1"),
        (("--predicates", '[["name", ["==", "name", "x"]]]'), 1, "unknown kind 'name'"),
        (("--predicates", '[["jobid", ["==", "name", 5]]]'), 1, "only 'id'"),
        (("--predicates", '[["opcode", ["==", "OP_ID"]]]'), 1, "2 operands"),
        (("--predicates", '[["opcode", ["=~", "OP_ID", "("]]]'), 1, "regular expression"),
        (("argument",), 1, "no arguments"),
    ],
)
def test_wrong_rules(cluster: Cluster, words: tuple[str, ...], code: int, text: str) -> None:
    before = cluster.config()
    ran = cluster.gnt("filter add", *words)
    assert ran.code == code, ran
    assert text in ran.err
    assert ran.out == ""
    assert cluster.config() == before


def test_wrong_uuids(cluster: Cluster) -> None:
    before = cluster.config()
    for line in ("filter delete nix", "filter replace nix", "filter replace " + NOBODY.upper()):
        ran = cluster.gnt(line)
        assert ran.code == 1
        assert "is not a uuid of a filter rule" in ran.err
    assert cluster.gnt("filter delete", NOBODY).code == 1
    unknown = cluster.gnt("filter list", NOBODY)
    assert unknown.code == 1
    assert NOBODY in unknown.err
    assert cluster.config() == before


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": 5},
        {"uuid": ""},
        {"priority": "1"},
        {"priority": True},
        {"priority": 1.5},
        {"predicates": None},
        {"predicates": {}},
        {"action": None},
        {"action": ["PAUSE"]},
        {"reason": None},
        {"reason": [["a", "b"]]},
        {"reason": [["a", "b", "c"]]},
        {"reason": [[1, "b", 2]]},
    ],
    ids=str,
)
def test_wrong_requests(cluster: Cluster, client: Client, change: dict[str, Any]) -> None:
    request = {"uuid": None, "priority": 0, "predicates": [], "action": "PAUSE", "reason": []}
    request.update(change)
    before = cluster.config()
    with pytest.raises(errors.OpPrereqError) as caught:
        client.call("ReplaceFilter", *request.values())
    assert caught.value.args[1] == "wrong_input"
    with pytest.raises(errors.OpPrereqError):
        client.call("DeleteFilter", 5)
    assert cluster.config() == before
