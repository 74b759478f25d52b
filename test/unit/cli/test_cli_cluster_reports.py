"""gnt-cluster: what it shows of the cluster, of its verification and of its history."""

from __future__ import annotations

import time
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.base.clock import SYSTEM

NOW = 1_700_000_000.0


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(SYSTEM), "now", lambda _self: NOW)


def list_requests(master: RecordingMaster, method: str) -> list[dict[str, Any]]:
    return [args for name, args in master.requests if name == method]


# show --------------------------------------------------------------------------------------


def cluster(**more: Any) -> dict[str, Any]:
    specs = {"memory-size": 128, "cpu-count": 1}
    return {
        "name": "cluster.example.com",
        "uuid": "uuid-c",
        "ctime": NOW,
        "mtime": NOW,
        "master": "node1.example.com",
        "architecture": ["64bit", "x86_64"],
        "tags": ["b", "a"],
        "default_hypervisor": "kvm",
        "enabled_hypervisors": ["kvm", "fake"],
        "hvparams": {"kvm": {"acpi": True}},
        "os_hvp": {},
        "osparams": {},
        "hidden_os": ["old"],
        "blacklisted_os": [],
        "ndparams": {},
        "beparams": {"default": {"maxmem": 128}},
        "nicparams": {"default": {"link": "br0"}},
        "diskparams": {},
        "ipolicy": {
            "minmax": [{"min": specs, "max": {"memory-size": 32768, "cpu-count": 8}}],
            "std": specs,
            "disk-templates": ["drbd"],
            "vcpu-ratio": 4.0,
            "spindle-ratio": 32.0,
        },
        "enabled_data_collectors": {"lv": True, "drbd": False},
        "data_collector_interval": {"lv": 5_000_000},
        "candidate_pool_size": 10,
        "max_running_jobs": 20,
        "max_tracked_jobs": 25,
        "mac_prefix": "aa:00:00",
        "master_netdev": "eth0",
        "master_netmask": 32,
        "use_external_mip_script": False,
        "volume_group_name": "xenvg",
        "reserved_lvs": [],
        "drbd_usermode_helper": "/bin/true",
        "file_storage_dir": "/srv/ganeti/file-storage",
        "shared_file_storage_dir": "",
        "gluster_storage_dir": "",
        "maintain_node_health": False,
        "uid_pool": [[1000, 1000], [2000, 2010]],
        "default_iallocator": "hail",
        "default_iallocator_params": {},
        "primary_ip_version": 4,
        "prealloc_wipe_disks": False,
        "enabled_disk_templates": ["drbd", "plain"],
        "install_image": "",
        "instance_communication_network": "",
        "zeroing_image": "",
        "compression_tools": ["gzip"],
        "enabled_user_shutdown": False,
        "auto_failover_after": 60,
        "master_vote": "nodes",
        "auto_fence_after": 0,
        "modify_ssh_setup": True,
        "ssh_key_type": "rsa",
        "ssh_key_bits": 2048,
        "software_version": "3.2.0",
        "protocol_version": 3020000,
        "config_version": 3020000,
        "os_api_version": 20,
        "export_version": 0,
        "vcs_version": "(unknown)",
        **more,
    }


def test_all_settings_are_shown(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryClusterInfo"] = cluster()
    master.tables["instance"] = []
    lines = [line.strip() for line in gnt("gnt-cluster", "info").out.splitlines()]
    for line in (
        "Cluster name: cluster.example.com",
        "Architecture (this node): 64bit (x86_64)",
        "Tags: a, b",
        "uid pool: 1000, 2000-2010",
        "lvm reserved volumes: (none)",
        "automatic failover of the master after: 60 s",
        "decides about the master: nodes",
        "automatic fencing of nodes after: never",
        "interval: 5.000s",
    ):
        assert line in lines
    assert "Reservations:" not in lines


def test_what_is_reserved_is_summed_up(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryClusterInfo"] = cluster()
    row = {"be/maxmem": 1024, "be/vcpus": 2, "disk_usage": 10240, "forthcoming": True}
    rows = [{**row, "expires": NOW + 60}, {**row, "expires": NOW}, {**row, "disk_usage": None}]
    fields = ["be/maxmem", "be/vcpus", "disk_usage", "expires"]
    master.answers["Query"] = {
        "fields": [{"name": f, "title": f, "kind": "other", "doc": ""} for f in fields],
        "data": [[[0, item.get(field)] for field in fields] for item in rows],
    }
    lines = [line.strip() for line in gnt("gnt-cluster", "info").out.splitlines()]
    at = lines.index("Reservations:")
    assert lines[at + 1 : at + 6] == [
        "instances: 3",
        "memory: 3.0G",
        "vcpus: 6",
        "disk space: 20.0G",
        "next to expire: 2023-11-14 22:13:20",
    ]


def test_versions_and_whether_the_master_answers(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryClusterInfo"] = cluster()
    assert gnt("gnt-cluster", "version").out.splitlines()[0] == "Software version: 3.2.0"
    ran = gnt("gnt-cluster", "master-ping")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert gnt("gnt-cluster", "getmaster").out == "node1.example.com\n"


def test_the_policy_as_a_command(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryClusterInfo"] = cluster()
    assert gnt("gnt-cluster", "show-ispecs-cmd").out == (
        "gnt-cluster init --ipolicy-std-specs cpu-count=1,memory-size=128"
        " --ipolicy-bounds-specs min:cpu-count=1,memory-size=128/max:cpu-count=8,memory-size=32768"
        " cluster.example.com\n"
    )


def test_tags_are_searched(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_TAGS_SEARCH"] = [["/instances/web", "b"], ["/cluster", "a"]]
    ran = gnt("gnt-cluster", "search-tags", "a|b")
    assert (ran.code, ran.out) == (0, "/cluster a\n/instances/web b\n")
    master.results["OP_TAGS_SEARCH"] = []
    assert gnt("gnt-cluster", "search-tags", "a|b").code == 1


def test_the_queue_is_drained_and_opened(master: RecordingMaster, gnt: Run) -> None:
    master.answers["SetDrainFlag"] = True
    master.answers["QueryConfigValues"] = [True]
    assert gnt("gnt-cluster", "queue", "info").out == "The drain flag is set\n"
    gnt("gnt-cluster", "queue", "drain")
    gnt("gnt-cluster", "queue", "undrain")
    assert [args["flag"] for args in list_requests(master, "SetDrainFlag")] == [True, False]
    master.answers["QueryConfigValues"] = [False]
    assert gnt("gnt-cluster", "queue", "info").out == "The drain flag is unset\n"


@pytest.mark.usefixtures("now")
def test_the_watcher_is_paused(master: RecordingMaster, gnt: Run) -> None:
    master.answers["SetWatcherPause"] = lambda args: args["until"]
    until = f"The watcher is paused until {time.ctime(NOW + 1800)}.\n"
    assert gnt("gnt-cluster", "watcher", "pause", "30m").out == until
    assert gnt("gnt-cluster", "watcher", "continue").out == "The watcher is no longer paused.\n"
    for pause, said in (
        (None, "The watcher is not paused.\n"),
        (NOW - 1, "The watcher is not paused.\n"),
        (NOW + 1800, until),
    ):
        master.answers["QueryConfigValues"] = [pause]
        assert gnt("gnt-cluster", "watcher", "info").out == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pause"], "Error: Command watcher pause expects a duration such as 30m"),
        (["info", "5"], "Error: Command watcher info expects no more arguments"),
    ],
)
def test_a_duration_belongs_to_a_pause(gnt: Run, words: list[str], said: str) -> None:
    ran = gnt("gnt-cluster", "watcher", *words)
    assert (ran.code, ran.out, ran.err.strip()) == (1, "", said)


# verify ------------------------------------------------------------------------------------


@pytest.fixture
def verified(master: RecordingMaster) -> RecordingMaster:
    """A verification is two jobs; the second one checks a group and finds something."""
    master.jobs += [[{"OP_ID": "OP_CLUSTER_VERIFY_CONFIG"}], [{"OP_ID": "OP_CLUSTER_VERIFY_GROUP"}]]
    master.results["OP_CLUSTER_VERIFY"] = {"jobs": [[True, 1], [True, 2]]}
    master.results["OP_CLUSTER_VERIFY_CONFIG"] = True
    master.results["OP_CLUSTER_VERIFY_GROUP"] = False
    master.logs["OP_CLUSTER_VERIFY_CONFIG"] = ["* Verifying cluster config"]
    master.logs["OP_CLUSTER_VERIFY_GROUP"] = [
        "* Verifying nodes",
        "* Verifying instances",
        "  - ERROR: instance web1: it does not run",
        "  - WARNING: node node2: its clock is late",
    ]
    return master


def test_a_verification_that_finds_something_fails(verified: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-cluster", "verify")
    assert ran.code == 1
    assert "* Verifying cluster config" in ran.out
    assert "cluster-verify: 1 error, 1 warning" in ran.err


def test_a_person_sees_headings_with_findings_only(
    verified: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    ran = gnt("gnt-cluster", "verify")
    shown = [line[25:] for line in ran.out.splitlines()]
    assert shown == [
        "* Verifying instances",
        "  - ERROR: instance web1: it does not run",
        "  - WARNING: node node2: its clock is late",
    ]
    assert "* Verifying nodes" in gnt("gnt-cluster", "verify", "-v").out


def test_a_cluster_that_is_well(verified: RecordingMaster, gnt: Run) -> None:
    verified.logs.clear()
    verified.results["OP_CLUSTER_VERIFY_GROUP"] = True
    ran = gnt("gnt-cluster", "verify", "--no-nplus1-mem", "-I", "ENODELVM", "-g", "default")
    assert (ran.code, ran.err) == (0, "")
    [op] = [op for op in verified.ops if op["OP_ID"] == "OP_CLUSTER_VERIFY"]
    assert (op["skip_checks"], op["ignore_errors"], op["group_name"]) == (
        ["nplusone_mem"],
        ["ENODELVM"],
        "default",
    )


def test_a_check_that_breaks_is_counted(verified: RecordingMaster, gnt: Run) -> None:
    verified.failures["OP_CLUSTER_VERIFY_GROUP"] = errors.OpExecError("the master ended")
    ran = gnt("gnt-cluster", "verify")
    assert ran.code == 1
    assert "1 job failed while verifying the cluster" in ran.out


def disks(master: RecordingMaster, *answer: object) -> None:
    master.jobs.append([{"OP_ID": "OP_GROUP_VERIFY_DISKS"}])
    master.results["OP_CLUSTER_VERIFY_DISKS"] = {"jobs": [[True, 1]]}
    master.results["OP_GROUP_VERIFY_DISKS"] = list(answer)


def test_inactive_disks_are_activated(master: RecordingMaster, gnt: Run) -> None:
    disks(master, {}, ["web1", "web2"], {"web2": [["node1", "xenvg/disk0"]]})
    ran = gnt("gnt-cluster", "verify-disks")
    assert ran.code == 1
    assert "Activating disks for instance 'web1'" in ran.out
    assert "Activating disks for instance 'web2'" not in ran.out
    assert [op["instance_name"] for op in master.ops if "instance_name" in op] == ["web1"]


def test_missing_disks_are_named_with_what_makes_them_again(
    master: RecordingMaster, gnt: Run
) -> None:
    missing = {"web2": [["node1", "xenvg/disk0"]], "web1": [["node2", "/srv/web1/disk0"]]}
    disks(master, {"node3": "no route"}, [], missing)
    ran = gnt("gnt-cluster", "verify-disks")
    assert ran.code == 1
    shown = ran.out.splitlines()[-5:]
    assert shown == [
        "Error gathering data on node node3: no route",
        "Instance 'web1' has missing disks:",
        "  node node2, path /srv/web1/disk0",
        "Instance 'web2' has missing logical volumes:",
        "  node node1, volume xenvg/disk0",
    ]
    first, second = ran.err.splitlines()[-2:]
    assert first.endswith("gnt-instance recreate-disks makes the disks again")
    assert second.endswith("gnt-instance replace-disks or recreate-disks makes the volumes again")


def test_disks_that_could_not_be_checked_fail_the_command(
    master: RecordingMaster, gnt: Run
) -> None:
    disks(master, {}, [], {})
    assert gnt("gnt-cluster", "verify-disks").code == 0
    master.failures["OP_GROUP_VERIFY_DISKS"] = errors.OpExecError("no answer")
    assert gnt("gnt-cluster", "verify-disks").code == 1


def test_corrected_sizes_are_told(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_REPAIR_DISK_SIZES"] = [["web1", 0, "size", 10240]]
    ran = gnt("gnt-cluster", "repair-disk-sizes", "web1")
    assert ran.out == "Disk 0 of web1: size is 10240 now\n"


# history -----------------------------------------------------------------------------------


def change(serial: int, **more: Any) -> dict[str, Any]:
    return {
        "serial": serial,
        "name": "OP_INSTANCE_SET_PARAMS",
        "time": NOW,
        "job": 7,
        "user": "root",
        "reason": "",
        "objects": [],
        "others": 0,
        **more,
    }


def history(*changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    begins = {"time": NOW, "serial": 1}
    return {
        "names": {},
        "changes": list(changes),
        "missing": [],
        "more": False,
        "begins": begins,
        **more,
    }


@pytest.mark.usefixtures("now")
def test_history_is_asked_for_what_options_say(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryHistory"] = history(change(3), change(9), missing=[[4, 8]], more=True)
    ran = gnt(
        *("gnt-cluster", "history", "web1", "--since", "2h", "--until", "now"),
        *("--job", "7", "--kind", "instance", "--limit", "2"),
    )
    [args] = list_requests(master, "QueryHistory")
    assert args["filter"] == {
        "object": "web1",
        "kind": "instance",
        "since": NOW - 7200,
        "until": NOW,
        "job": 7,
        "limit": 2,
    }
    assert "(changes 4 to 8 are not known on this node: another one was the master)" in ran.out
    assert ran.out.index("Change 3") < ran.out.index("(changes 4") < ran.out.index("Change 9")
    assert "There are older changes; these are the newest 2" in ran.err


def test_a_history_without_a_change_says_since_when(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryHistory"] = history()
    ran = gnt("gnt-cluster", "history", "web1")
    assert "No such change is recorded since 2023-11-14 22:13:20" in ran.err
    assert '"changes": []' in gnt("gnt-cluster", "history", "--format", "json").out


def test_what_differs_between_two_times(master: RecordingMaster, gnt: Run) -> None:
    item = {
        "kind": "instance",
        "name": "web1",
        "uuid": "u",
        "change": "changed",
        "serials": [3, 4],
        "jobs": [7],
        "keys": [{"key": "beparams/maxmem", "old": 128, "new": 256}],
    }
    ends = {"from": {"time": NOW, "serial": 2}, "to": {"time": NOW + 60, "serial": 4}}
    master.answers["QueryConfigDiff"] = {"names": {}, "objects": [item], **ends}
    ran = gnt("gnt-cluster", "diff", "2023-11-14", "now")
    assert ran.out.splitlines() == [
        "From: 2023-11-14 22:13:20 (change 2)",
        "To: 2023-11-14 22:14:20 (change 4)",
        "",
        "Instance web1: changed (changes 3 4, job 7)",
        "  beparams/maxmem: 128 -> 256",
    ]
    master.answers["QueryConfigDiff"] = {"names": {}, "objects": [], **ends}
    assert gnt("gnt-cluster", "diff", "1", "2").out.splitlines()[-1] == "No difference"
    assert '"objects": []' in gnt("gnt-cluster", "diff", "1", "2", "--format", "json").out
    assert gnt("gnt-cluster", "diff", "then", "now").code == 1
