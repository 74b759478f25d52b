"""Commands that change something: what they submit, what they ask before, what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.cli import notices

NOW = 1_700_000_000.0


def list_requests(master: RecordingMaster, method: str) -> list[dict[str, Any]]:
    return [args for name, args in master.requests if name == method]


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody answers yes to all questions; these are here then."""
    seen: list[str] = []

    def confirm(question: str, details: object = (), *, option: str) -> bool:
        seen.append(question)
        return True

    monkeypatch.setattr(notices, "confirm", confirm)
    return seen


# filters -----------------------------------------------------------------------------------


def test_a_rule_is_added_with_who_did_it(master: RecordingMaster, gnt: Run) -> None:
    master.answers["ReplaceFilter"] = "uuid-1"
    predicates = '[["jobid", [">", "id", "watermark"]]]'
    ran = gnt("gnt-filter", "add", "--predicates", predicates, "--action", "REJECT")
    assert (ran.code, ran.out, ran.err) == (0, "uuid-1\n", "")
    [rule] = list_requests(master, "ReplaceFilter")
    assert (rule["uuid"], rule["action"], rule["priority"]) == (None, "REJECT", 0)
    assert rule["predicates"] == [["jobid", [">", "id", "watermark"]]]
    assert rule["reason"][0][:2] == ["gnt:client:gnt-filter", "add"]


def test_a_rate_limit_has_a_number(master: RecordingMaster, gnt: Run) -> None:
    master.answers["ReplaceFilter"] = "uuid-1"
    gnt("gnt-filter", "replace", "uuid-1", "--action", "RATE_LIMIT 4", "--priority", "3")
    [rule] = list_requests(master, "ReplaceFilter")
    assert (rule["uuid"], rule["action"], rule["priority"]) == ("uuid-1", ["RATE_LIMIT", 4], 3)
    assert rule["predicates"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--action", "RATE_LIMIT"], "RATE_LIMIT needs a number, as in 'RATE_LIMIT 4'"),
        (["--action", "RATE_LIMIT -1"], "RATE_LIMIT needs a number"),
        (["--action", "PAUS"], "invalid value 'PAUS'; choose from ACCEPT, CONTINUE, PAUSE"),
        (["--predicates", "["], "option --predicates: not JSON"),
        (["--predicates", "{}"], "expected a list of [<kind>, <filter>]"),
    ],
)
def test_a_rule_that_cannot_be_read(gnt: Run, words: list[str], said: str) -> None:
    ran = gnt("gnt-filter", "add", *words)
    assert ran.code == 2
    assert ran.err.startswith("Usage: gnt-filter add")
    assert said in ran.err


def test_conditions_that_never_hold_are_named(master: RecordingMaster, gnt: Run) -> None:
    master.answers["ReplaceFilter"] = "uuid-1"
    ran = gnt("gnt-filter", "add", "--predicates", '[["reason", ["=~", "source", "x"]]]')
    assert ran.code == 0
    assert "never holds: reason predicates can only compare" in ran.err
    for fine in ('[["opcode", ["=~", "OP_ID", "x"]]]', '[["reason", ["no such", 1]]]', "[1]"):
        assert gnt("gnt-filter", "add", "--predicates", fine).err == ""


def test_rules_are_shown_in_the_order_in_which_they_are_tried(
    master: RecordingMaster, gnt: Run
) -> None:
    master.answers["QueryFilters"] = [
        ["u-2", 7, 5, [], ["RATE_LIMIT", 4], []],
        ["u-1", 3, 0, [["jobid", ["==", "id", 1]]], "PAUSE", [["gnt:user", "test", 1]]],
    ]
    ran = gnt("gnt-filter", "info")
    assert ran.out.splitlines()[:6] == [
        "UUID: u-1",
        "  Watermark: 3",
        "  Priority: 0",
        '  Predicates: [["jobid",["==","id",1]]]',
        "  Action: PAUSE",
        '  Reason trail: [["gnt:user","test",1]]',
    ]
    assert "  Action: RATE_LIMIT 4" in ran.out.splitlines()
    ran = gnt("gnt-filter", "info", "u-1", "u-9")
    assert "Filter rule 'u-9' not found" in ran.err


def test_rules_are_listed_and_deleted(master: RecordingMaster, gnt: Run) -> None:
    fields = ("uuid", "watermark", "priority", "predicates", "action", "reason_trail")
    master.tables["filter"] = [dict.fromkeys(fields, "x")]
    assert gnt("gnt-filter", "list", "--no-headers", "--separator", ":").out == "x:x:x:x:x:x\n"
    assert "watermark" in gnt("gnt-filter", "list-fields").out
    master.answers["DeleteFilter"] = None
    assert gnt("gnt-filter", "delete", "u-1").code == 0
    assert list_requests(master, "DeleteFilter") == [{"uuid": "u-1"}]


# notifications -----------------------------------------------------------------------------


def note(name: str = "ops", way: str = "webhook", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "way": way,
        "target": "https://example.com/...",
        "qfilter": None,
        "waiting": 0,
        "sent": 12,
        "lost": 0,
        "last_sent": NOW,
        "problem": "",
        **more,
    }


def test_a_webhook_without_a_key_gets_one_that_is_shown_once(
    master: RecordingMaster, gnt: Run
) -> None:
    ran = gnt("gnt-cluster", "notify", "add", "--webhook", "https://example.com/x", "ops")
    assert ran.code == 0, ran.err
    key = ran.out.strip().rpartition(" ")[2]
    assert ran.out.startswith("Key of the signatures (it is not shown again): ")
    assert master.op["secret"] == key
    assert len(key) > 40
    assert master.op["webhook"] == "https://example.com/x"


def test_url_key_and_authority_come_from_files(
    master: RecordingMaster, gnt: Run, tmp_path: Path
) -> None:
    for name in ("url", "key", "ca"):
        (tmp_path / name).write_text(f"https://{name}\n")
    ran = gnt(
        *("gnt-cluster", "notify", "add", "--webhook", f"@{tmp_path}/url"),
        *("--secret-file", f"{tmp_path}/key", "--ca-file", f"{tmp_path}/ca", "ops"),
    )
    assert (ran.code, ran.out) == (0, "")
    assert (master.op["webhook"], master.op["secret"]) == ("https://url", "https://key")
    assert master.op["authority"] == "https://ca"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--secret-file", "/no/such/file"], "/no/such/file: No such file"),
        (["--webhook", "@/bin/sh"], "/bin/sh: is not a text file in UTF-8"),
        (["--command", "'unclosed"], "option --command: No closing quotation"),
        (["--filter", "a =="], "a =="),
    ],
)
def test_values_that_cannot_be_read(
    master: RecordingMaster, gnt: Run, words: list[str], said: str
) -> None:
    ran = gnt("gnt-cluster", "notify", "add", *words, "ops")
    assert ran.code != 0
    assert said in ran.err
    assert master.jobs == []


def test_mail_and_programs_have_no_key(master: RecordingMaster, gnt: Run) -> None:
    mail = ("--mail", "a@example.com,b@example.com", "--filter", 'severity == "error"')
    assert gnt("gnt-cluster", "notify", "add", *mail, "ops").out == ""
    assert gnt("gnt-cluster", "notify", "add", "--command", "page 'all of us'", "ops").out == ""
    first, second = master.ops
    assert first["mail"] == ["a@example.com", "b@example.com"]
    assert first["qfilter"] == ["==", "severity", "error"]
    assert second["command"] == ["page", "all of us"]
    assert second.get("secret") is None


def test_only_what_becomes_a_webhook_gets_a_key(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryNotifications"] = [note(), note("mail", "mail")]
    words = ("gnt-cluster", "notify", "modify", "--webhook", "https://example.com/y")
    assert gnt(*words, "ops").out == ""
    assert gnt(*words, "mail").out.startswith("Key of the signatures")
    gnt("gnt-cluster", "notify", "modify", "--filter", "", "--ca-file", "", "mail")
    assert (master.ops[-1]["qfilter"], master.ops[-1]["authority"]) == ([], "")


def test_notifications_are_listed(master: RecordingMaster, gnt: Run) -> None:
    condition = ["==", "severity", "error"]
    master.answers["QueryNotifications"] = [
        note(qfilter=condition, problem="no answer"),
        note("mail", "mail", last_sent=None),
    ]
    ran = gnt("gnt-cluster", "notify", "list", "--separator", "|")
    assert ran.out.splitlines() == [
        "Name|Way|Target|Filter|Waiting|Sent|Lost|LastSent|Problem",
        'ops|webhook|https://example.com/...|severity == "error"|0|12|0|2023-11-14 22:13:20|no'
        " answer",
        "mail|mail|https://example.com/...|-|0|12|0|-|-",
    ]
    assert gnt("gnt-cluster", "notify", "test", "ops").code == 0
    assert master.op["OP_ID"] == "OP_NOTIFICATION_TEST"


# the cluster -------------------------------------------------------------------------------


def test_settings_of_the_cluster(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt(
        *("gnt-cluster", "modify", "--enabled-data-collectors", "lv=yes,drbd=no"),
        *("--data-collector-interval", "lv=0.5", "--add-uids", "1000-1005,2000"),
        *("--ipolicy-std-specs", "memory-size=1G,cpu-count=2", "--ipolicy-vcpu-ratio", "2.5"),
    )
    assert ran.code == 0, ran.err
    op = master.op
    assert op["enabled_data_collectors"] == {"lv": True, "drbd": False}
    assert op["data_collector_interval"] == {"lv": 500_000}
    assert op["add_uids"] == [[1000, 1005], [2000, 2000]]
    assert op["ipolicy"] == {"std": {"memory-size": 1024, "cpu-count": 2}, "vcpu-ratio": 2.5}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Nothing to change: give at least one option"),
        (["--enabled-data-collectors", "lv=perhaps"], "data collector lv: "),
        (["--data-collector-interval", "lv=soon"], "data collector lv: "),
        (["--ipolicy-std-specs", "memory=1"], "the instance policy has no size 'memory'"),
        (["--ipolicy-std-specs", "memory-size=x"], "'x' cannot be used for memory-size"),
        (["--ipolicy-bounds-specs", "mid:cpu-count=1"], "takes min:... and max:..., not 'mid'"),
    ],
)
def test_settings_that_cannot_be(
    master: RecordingMaster, gnt: Run, words: list[str], said: str
) -> None:
    ran = gnt("gnt-cluster", "modify", *words)
    assert ran.code == 1
    assert said in ran.err
    assert master.jobs == []


def test_bounds_go_back_to_their_default(master: RecordingMaster, gnt: Run) -> None:
    gnt("gnt-cluster", "modify", "--ipolicy-bounds-specs", "default")
    gnt("gnt-cluster", "modify", "--ipolicy-disk-templates", "default")
    bounds = "min:cpu-count=1/max:cpu-count=2//min:cpu-count=4/max:cpu-count=8"
    gnt("gnt-cluster", "modify", "--ipolicy-bounds-specs", bounds)
    policies = [op["ipolicy"] for op in master.ops]
    assert policies[0] == {"minmax": "default"}
    assert policies[1] == {"disk-templates": "default"}
    assert [pair["max"] for pair in policies[2]["minmax"]] == [{"cpu-count": 2}, {"cpu-count": 8}]


def test_jobs_that_follow_from_a_setting_are_waited_for(master: RecordingMaster, gnt: Run) -> None:
    master.jobs.append([{"OP_ID": "OP_CLUSTER_REDIST_CONF"}])
    master.results["OP_CLUSTER_SET_PARAMS"] = {"jobs": [[True, 1]]}
    assert gnt("gnt-cluster", "modify", "--candidate-pool-size", "3").code == 0
    master.failures["OP_CLUSTER_REDIST_CONF"] = errors.OpExecError("no answer from node2")
    ran = gnt("gnt-cluster", "modify", "--candidate-pool-size", "3")
    assert ran.code == 1
    assert "no answer from node2" in ran.err


def test_the_cluster_is_renamed_after_a_question(
    master: RecordingMaster, gnt: Run, questions: list[str]
) -> None:
    master.answers["QueryConfigValues"] = ["old.example.com"]
    master.results["OP_CLUSTER_RENAME"] = "new.example.com"
    ran = gnt("gnt-cluster", "rename", "new.example.com")
    assert ran.out == "Cluster renamed from 'old.example.com' to 'new.example.com'\n"
    assert questions == [
        "Rename the cluster from old.example.com to new.example.com? Connections to the old"
        " address break."
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("gnt-cluster", "rename", "new.example.com"),
        ("gnt-cluster", "deactivate-master-ip"),
        ("gnt-node", "powercycle", "node1"),
        ("gnt-node", "power", "off", "node1"),
        ("gnt-node", "fence", "node1"),
        ("gnt-node", "evacuate", "node1"),
        ("gnt-node", "migrate", "node1"),
        ("gnt-node", "failover", "node1"),
    ],
)
def test_nothing_dangerous_is_done_without_an_answer(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(notices, "confirm", lambda *_args, **_more: False)
    master.answers["QueryConfigValues"] = ["old.example.com"]
    master.add_node("node1", pinst_list=["web1"])
    ran = gnt(*words)
    assert ran.code == 1
    assert master.jobs == []


def test_the_address_goes_after_a_question(
    master: RecordingMaster, gnt: Run, questions: list[str]
) -> None:
    assert gnt("gnt-cluster", "deactivate-master-ip").code == 0
    assert gnt("gnt-cluster", "deactivate-master-ip", "--yes").code == 0
    assert len(questions) == 1
    assert [op["OP_ID"] for op in master.ops] == ["OP_CLUSTER_DEACTIVATE_MASTER_IP"] * 2


def test_certificates_come_from_files(master: RecordingMaster, gnt: Run, tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    assert gnt("gnt-cluster", "renew-crypto", "--rapi-certificate", f"{tmp_path}/pem").code == 0
    assert master.op["rapi_certificate"] == "-----BEGIN CERTIFICATE-----\n"
    for name, said in (("binary", "is not a text file in ASCII"), ("none", "No such file")):
        ran = gnt("gnt-cluster", "renew-crypto", "--rapi-certificate", f"{tmp_path}/{name}")
        assert ran.code == 1
        assert said in ran.err


# nodes -------------------------------------------------------------------------------------


def oob(*answers: tuple[str, int, Any]) -> list[Any]:
    return [[[0, name], [status, value]] for name, status, value in answers]


def test_whether_nodes_are_on(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_OOB_COMMAND"] = oob(
        ("node1", 0, {"powered": True}), ("node2", 0, {"powered": False}), ("node3", 3, None)
    )
    ran = gnt("gnt-node", "power", "--no-headers", "--separator", ":", "status")
    assert (ran.code, ran.out, ran.err) == (0, "node1:powered\nnode2:unpowered\n", "")
    master.results["OP_OOB_COMMAND"] = oob(("node1", 2, None), ("node2", 3, None))
    ran = gnt("gnt-node", "power", "on")
    assert ran.code == 1
    assert "Node node1: the out-of-band helper gave no answer" in ran.err
    master.results["OP_OOB_COMMAND"] = oob(("node1", 3, None))
    ran = gnt("gnt-node", "power", "on")
    assert ran.code == 0
    assert "None of these nodes has an out-of-band helper" in ran.err


def test_nodes_are_marked_offline_before_they_are_switched_off(
    master: RecordingMaster, gnt: Run, questions: list[str]
) -> None:
    master.results["OP_OOB_COMMAND"] = oob(("node1", 0, None))
    assert gnt("gnt-node", "power", "off", "node1", "node2").code == 0
    assert questions == ["Switch off 2 nodes. Continue?"]
    first, second, power = master.ops
    assert [(op["node_name"], op["offline"]) for op in (first, second)] == [
        ("node1", True),
        ("node2", True),
    ]
    assert (power["command"], power["node_names"]) == ("power-off", ["node1", "node2"])
    ran = gnt("gnt-node", "power", "cycle")
    assert ran.code == 1
    assert "Name the nodes to switch cycle" in ran.err


def test_the_health_of_nodes(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_OOB_COMMAND"] = oob(("node1", 0, [["fan", "OK"], ["disk", "WARNING"]]))
    ran = gnt("gnt-node", "health", "--no-headers", "--separator", ":")
    assert (ran.code, ran.out) == (0, "node1:fan=OK, disk=WARNING\n")


def test_changes_of_a_node_are_told(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_NODE_SET_PARAMS"] = [["drained", "True"]]
    ran = gnt("gnt-node", "modify", "--drained", "yes", "node1")
    assert ran.code == 0
    assert "drained" in ran.out
    assert master.op["drained"] is True
    assert gnt("gnt-node", "modify", "node1").code == 1


def test_a_node_is_restarted_after_a_question(
    master: RecordingMaster, gnt: Run, questions: list[str]
) -> None:
    master.results["OP_NODE_POWERCYCLE"] = "Reboot scheduled in 5 seconds"
    assert gnt("gnt-node", "powercycle", "node1").out == "Reboot scheduled in 5 seconds\n"
    assert questions == ["Restart node node1 at once, with everything that runs on it?"]


def test_restricted_commands(master: RecordingMaster, gnt: Run) -> None:
    for name, group in (("node1", "default"), ("node2", "rack1")):
        master.add_node(name, group=group, **{"group.uuid": f"uuid-{group}"})
    master.add_node("node3", offline=True, group="default")
    master.results["OP_RESTRICTED_COMMAND"] = [[True, "a\nb"], [False, "node2: it failed"]]
    ran = gnt("gnt-node", "restricted-command", "-M", "ls")
    assert (ran.code, ran.out, ran.err) == (1, "node1: a\nnode1: b\n", "node2: it failed\n")
    assert master.op["nodes"] == ["node1", "node2"]
    master.results["OP_RESTRICTED_COMMAND"] = [[True, "a"]]
    master.answers["QueryGroups"] = [["default", "uuid-default"], ["rack1", "uuid-rack1"]]
    assert gnt("gnt-node", "restricted-command", "-g", "rack1", "ls").out == "a\n"
    assert master.ops[-1]["nodes"] == ["node2"]
    ran = gnt("gnt-node", "restricted-command", "ls", "node3")
    assert ran.code == 1
    assert "No node that is online was selected" in ran.err


def test_leaving_a_node(master: RecordingMaster, gnt: Run, questions: list[str]) -> None:
    master.add_node("node1", pinst_list=["web1"], sinst_list=["web2"])
    master.add_node("node2")
    master.jobs.append([{"OP_ID": "OP_INSTANCE_MIGRATE"}])
    jobs = {"jobs": [[True, 1]]}
    for op in ("OP_NODE_EVACUATE", "OP_NODE_MIGRATE"):
        master.results[op] = jobs
    assert "All instances were evacuated" in gnt("gnt-node", "evacuate", "node1").out
    assert "All instances were evacuated" in gnt("gnt-node", "evacuate", "-p", "node1").out
    assert "All instances were migrated" in gnt("gnt-node", "migrate", "node1").out
    assert "All instances were failed over" in gnt("gnt-node", "failover", "node1").out
    assert [question.partition(".")[0] for question in questions] == [
        "Evacuate from node1: 2 instances",
        "Evacuate from node1: 1 instance",
        "Migrate away from node1: 1 instance",
        "Fail over from node1: 1 instance",
    ]
    assert "No instances to evacuate" in gnt("gnt-node", "evacuate", "node2").out
    assert "nothing to migrate" in gnt("gnt-node", "migrate", "node2").out
    assert "nothing to fail over" in gnt("gnt-node", "failover", "node2").err
    master.results["OP_NODE_EVACUATE"] = {"jobs": [[True, 1], [False, "the queue is full"]]}
    ran = gnt("gnt-node", "evacuate", "-f", "node1")
    assert ran.code == 1
    assert "There were errors: 1 job failed" in ran.out


def test_a_dry_run_of_an_evacuation_prints_the_plan(master: RecordingMaster, gnt: Run) -> None:
    master.add_node("node1", pinst_list=["web1"])
    moves = [{"instance": "web1", "operations": ["migrate", "replace-disks"], "to": "node3"}]
    master.results["OP_NODE_EVACUATE"] = {"plan": moves}
    ran = gnt("gnt-node", "evacuate", "--dry-run", "node1")
    assert (ran.code, ran.out) == (0, "web1: migrate, replace-disks to node3\n")


def test_a_node_is_fenced_after_a_question(
    master: RecordingMaster, gnt: Run, questions: list[str]
) -> None:
    master.add_node("node1", pinst_list=["web1", "web2"])
    left = [{"instance": "web2", "reason": "its ha is stay"}]
    master.results["OP_NODE_FENCE"] = {"left": left, "failovers": ["web1"], "jobs": []}
    ran = gnt("gnt-node", "fence", "node1")
    assert ran.code == 0
    assert "web2 stays: its ha is stay" in ran.out
    assert "All of these instances were failed over" in ran.out
    assert questions == ["Switch node node1 off and mark it offline?"]
    ran = gnt("gnt-node", "fence", "--dry-run", "node1")
    assert ran.out.splitlines() == ["web2 stays: its ha is stay", "web1 fails over"]
    master.results["OP_NODE_FENCE"] = {"test": ["the helper answers: on"]}
    assert gnt("gnt-node", "fence", "--test", "node1").out == "the helper answers: on\n"
    assert len(questions) == 1


def maintenance(**more: Any) -> dict[str, Any]:
    return {"on": True, "moves": [], "stay": [], "nodes": ["node1"], "jobs": [], **more}


def test_a_node_is_emptied_for_maintenance(master: RecordingMaster, gnt: Run) -> None:
    moves = [
        {"instance": "web1", "from": ["node1"], "to": ["node2"], "steps": ["migrate"], "job": 7}
    ]
    stay = [{"instance": "web2", "reason": "its disks are on this node only"}]
    master.results["OP_NODE_MAINTENANCE"] = maintenance(moves=moves, stay=stay)
    ran = gnt("gnt-node", "maintenance", "on", "node1")
    assert (ran.code, ran.out.splitlines()) == (
        1,
        [
            "web1: node1 -> node2 (migrate, job 7)",
            "web2 stays: its disks are on this node only",
        ],
    )
    master.results["OP_NODE_MAINTENANCE"] = maintenance(on=False)
    ran = gnt("gnt-node", "maintenance", "off", "node1")
    assert (ran.code, ran.out) == (0, "Nothing to move\n")
    assert [op["on"] for op in master.ops] == [True, False]
    assert '"stay": []' in gnt("gnt-node", "maintenance", "--format", "json", "off", "node1").out


def test_maintenance_waits_until_all_have_left(master: RecordingMaster, gnt: Run) -> None:
    master.jobs.append([{"OP_ID": "OP_INSTANCE_MIGRATE"}])
    master.results["OP_NODE_MAINTENANCE"] = maintenance(jobs=[[True, 1]])
    master.add_node("node1")
    ran = gnt("gnt-node", "maintenance", "--wait", "on", "node1")
    assert ran.code == 0
    assert "All instances have left node node1" in ran.out
    master.nodes[0]["pinst_list"] = ["web2"]
    ran = gnt("gnt-node", "maintenance", "--wait", "on", "node1")
    assert ran.code == 1
    assert "Node node1 still has web2" in ran.err


# storage of nodes --------------------------------------------------------------------------


def test_volumes_and_units_of_nodes(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_NODE_QUERYVOLS"] = [["node1", "1024"]]
    words = ("--no-headers", "--separator", "|")
    ran = gnt("gnt-node", "volumes", *words, "-o", "node,size")
    assert (ran.code, ran.out) == (0, "node1|1024\n")
    assert master.op["output_fields"] == ["node", "size"]
    master.results["OP_NODE_QUERY_STORAGE"] = [["node1", True]]
    ran = gnt("gnt-node", "list-storage", *words, "-o", "node,allocatable", "-t", "lvm-pv")
    assert ran.out == "node1|Y\n"
    assert '"allocatable":true' in gnt(
        *("gnt-node", "list-storage", "-o", "node,allocatable", "--format", "json")
    ).out.replace(" ", "")
    ran = gnt("gnt-node", "volumes", "-o", "siz")
    assert ran.code == 1
    assert "Unknown field 'siz'" in ran.err
    assert "size" in ran.err


def test_minors_of_a_node(master: RecordingMaster, gnt: Run) -> None:
    master.add_node("node1", pinst_list=["web1"], sinst_list=["web2"])
    master.add_node("node2")
    ends = {"primary_node": "node1", "primary_minor": 3, "secondary_node": "node2"}
    other = {"primary_node": "node3", "secondary_node": "node1", "secondary_minor": 1}
    master.results["OP_INSTANCE_QUERY_DATA"] = {
        "web1": {
            "name": "web1",
            "pnode": "node1",
            "disks": [{"iv_name": "disk/0", "drbd_info": {**ends, "secondary_minor": 0}}],
        },
        "web2": {
            "name": "web2",
            "pnode": "node3",
            "disks": [
                {"iv_name": "disk/0", "drbd_info": {**other, "primary_minor": 0}},
                {"iv_name": "disk/1", "drbd_info": None},
            ],
        },
    }
    ran = gnt("gnt-node", "list-drbd", "--no-headers", "--separator", "|", "node1")
    assert ran.out.splitlines() == [
        "node1|1|web2|disk/0|secondary|node3",
        "node1|3|web1|disk/0|primary|node2",
    ]
    assert gnt("gnt-node", "list-drbd", "--no-headers", "node2").out == ""


def test_storage_units_are_changed_and_repaired(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-node", "modify-storage", "node1", "lvm-pv", "/dev/sda")
    assert "No changes to perform, exiting." in ran.err
    words = ("gnt-node", "modify-storage", "--allocatable", "no", "node1", "lvm-pv", "/dev/sda")
    assert gnt(*words).code == 0
    assert gnt("gnt-node", "repair-storage", "node1", "lvm-vg", "xenvg").code == 0
    change, repair = master.ops
    assert (change["changes"], change["name"]) == ({"allocatable": False}, "/dev/sda")
    assert (repair["storage_type"], repair["name"]) == ("lvm-vg", "xenvg")


# images ------------------------------------------------------------------------------------


def test_an_image_is_copied_to_where_the_master_takes_it(
    master: RecordingMaster, gnt: Run, tmp_path: Path
) -> None:
    file = tmp_path / "debian 12.qcow2.gz"
    file.write_bytes(b"content" + bytes(8192))
    assert gnt("gnt-image", "add", str(file)).code == 0
    op = master.op
    assert op["image_name"] == "debian 12"
    upload = master.where.image_uploads / op["source"]
    assert upload.read_bytes() == file.read_bytes()
    assert upload.stat().st_mode & 0o777 == 0o600
    assert " " not in op["source"]


def test_of_an_image_that_is_refused_nothing_stays(
    master: RecordingMaster, gnt: Run, tmp_path: Path
) -> None:
    master.failures["OP_IMAGE_ADD"] = errors.OpPrereqError("there is no room")
    (tmp_path / "a.img").write_bytes(b"x")
    assert gnt("gnt-image", "add", str(tmp_path / "a.img")).code == 1
    assert list(master.where.image_uploads.iterdir()) == []


def test_images_from_elsewhere_and_in_a_dry_run(
    master: RecordingMaster, gnt: Run, tmp_path: Path
) -> None:
    assert gnt("gnt-image", "add", "https://example.com/debian.QCOW2?x=1").code == 0
    assert gnt("gnt-image", "add", "--dry-run", "--name", "a", str(tmp_path / "a")).code == 0
    first, second = master.ops
    assert (first["image_name"], first["source"]) == (
        "debian",
        "https://example.com/debian.QCOW2?x=1",
    )
    assert (second["image_name"], second["source"]) == ("a", "dry-run")
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file")):
        ran = gnt("gnt-image", "add", str(path))
        assert ran.code == 1
        assert said in ran.err


def test_the_description_of_an_image(master: RecordingMaster, gnt: Run) -> None:
    assert gnt("gnt-image", "modify", "--description", "", "debian").code == 0
    assert master.op["description"] == ""
    ran = gnt("gnt-image", "modify", "debian")
    assert ran.code == 1
    assert "Nothing to change: give --description" in ran.err
