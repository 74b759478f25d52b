"""Whatever a client sends, the master refuses it in words or does it; no bug shows."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from random_json import odd, spoiled

from ganeti.luxi import calls
from ganeti.net.unix_socket import FramedClient
from ganeti.opcodes import registry

_REQUESTS = 2000
_SEED = 20261122
_QUERIES = (
    "instance",
    "node",
    "group",
    "network",
    "job",
    "lock",
    "filter",
    "export",
    "disk",
    "cluster",
    "os",
    "extstorage",
)
_FILTERS: tuple[Any, ...] = (
    None,
    ["|", ["==", "name", "web1"]],
    ["&", ["?", "offline"], ["!", ["=~", "name", "^a"]]],
    ["<", "mfree", 5],
    ["=[]", "tags", "a"],
    ["==", "id", "5"],
    [">=", "ctime", 5],
)
_VALUES: dict[str, tuple[Any, ...]] = {
    "what": _QUERIES,
    "qfilter": _FILTERS,
    "kind": ("cluster", "node", "instance", "disk"),
    "instance": ("web1.example.com", ""),
    "node": ("node1.example.com", ""),
    "status": ("running", "ERROR_down", ""),
    "data": ({}, {"what": "opened", "user": "anna"}),
    "fields": (["name"], ["id", "status"], ["name", "tags", "uuid"], [], ["cluster_name"]),
    "names": ([], ["node1"]),
    "nodes": ([], ["node1"]),
    "ids": (None, [1]),
    "uuids": (None, ["a"]),
    "name": ("node1.example.com", ""),
    "lock": (False,),
    "job": (1, 7),
    "prev_job": (None, ["a"]),
    "prev_log": (None, 1),
    "tmout": (0, 0.01),
    "filter": (None, {"kind": ["job"]}, {"job": 1}),
    "after": (None, "1-2"),
    "age": (-1, 5),
    "priority": (5, -20),
    "flag": (False,),
    "t1": (1.5,),
    "t2": (2,),
    "until": (None,),
    "uuid": (None, "3f2c9a10-5b7e-4d68-9c1f-2a6b8e0d4c57"),
    "predicates": ([["jobid", [">", "id", 5]]], [["opcode", ["==", "OP_ID", "OP_NOOP"]]]),
    "action": ("ACCEPT", ["RATE_LIMIT", 5]),
    "reason": ([["a", "b", 5]],),
    "user": ("rapi:a",),
    "key": (None, "once"),
    "kill": (False,),
    "redacted": (True,),
    "range": ("hour", "month", "year"),
    "limits": (None, {"name": "token:a", "group": None, "tag": "mine", "quota": None}),
}


def opcode(dice: random.Random) -> dict[str, Any]:
    """An opcode with some parameters that it has, of any value."""
    op_id, cls = dice.choice(sorted(registry.all_opcodes().items()))
    chosen = dice.sample(cls.__struct_fields__, min(3, len(cls.__struct_fields__)))
    if op_id == "OP_TEST_DELAY":
        return {"OP_ID": op_id, "duration": 0}
    return {"OP_ID": op_id, **{name: odd(dice) for name in chosen}}


def request(dice: random.Random) -> dict[str, Any]:
    method = dice.choice(sorted(calls.METHODS))
    args: list[Any] = []
    for arg in calls.METHODS[method].args:
        if arg.name == "ops":
            args.append([opcode(dice)])
        elif arg.name == "jobs":
            args.append([[opcode(dice)], [opcode(dice)]])
        elif not arg.optional or dice.random() < 0.5:
            args.append(dice.choice(_VALUES[arg.name]))
        else:
            break
    whole = {"method": method, "args": args}
    return spoiled(dice, whole) if dice.random() < 0.1 else {**whole, "args": spoiled(dice, args)}


def test_no_request_fails_by_a_bug(master, caplog: pytest.LogCaptureFixture) -> None:
    master.hold_everything()
    dice = random.Random(_SEED)
    bugs: dict[str, str] = {}
    for _ in range(_REQUESTS):
        asked = request(dice)
        with FramedClient(master.paths.luxi_socket) as link:
            answer = json.loads(link.call(json.dumps(asked).encode()))
        told = json.dumps(answer["result"])
        if not answer["success"] and ("internal error" in told or "ProgrammerError" in told):
            bugs.setdefault(told[:200], json.dumps(asked)[:600])
    assert not bugs, "\n".join(f"{what}\n    {asked}" for what, asked in sorted(bugs.items()))
    assert not [record for record in caplog.records if record.exc_info]
