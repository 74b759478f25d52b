"""What a takeover finds on a node, from facts; nothing is read and nothing is changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti.offline.takeover import findings, look
from ganeti.offline.takeover.facts import Facts, Guest, Job, Owner
from ganeti.offline.takeover.finding import Kind
from ganeti.offline.takeover.findings import examine

RECORDED = Path(__file__).parents[2] / "recorded" / "config_3_0_2.json"
NODE = "node1.example.com"
WEB = "inst1.example.com"


def config() -> dict[str, Any]:
    """A cluster of 3.0.2 with an instance with file disks under kvm, which is down."""
    raw: dict[str, Any] = json.loads(RECORDED.read_text())
    raw["cluster"]["enabled_hypervisors"] = ["kvm", "fake"]
    for item in raw["instances"].values():
        if item["name"] == WEB:
            item["hypervisor"] = "kvm"
        else:
            item["admin_state"] = "down"
            item["disks_active"] = False
    return raw


def web(raw: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in raw["instances"].values() if item["name"] == WEB)


def facts(raw: dict[str, Any] | None = None, **more: Any) -> Facts:
    raw = config() if raw is None else raw
    paths = [disk["logical_id"][1] for disk in raw["disks"].values()]
    values: dict[str, Any] = {
        "host": NODE,
        "cluster": "cluster.example.com",
        "master": NODE,
        "config": raw,
        "devices": tuple(paths),
        "systems": ("noop",),
    }
    return Facts(**(values | more))


def running(raw: dict[str, Any], **more: Any) -> Guest:
    item = web(raw)
    disks = [raw["disks"][uuid] for uuid in item["disks"]]
    argv = ["/usr/bin/kvm", "-name", WEB, "-m", "256", "-smp", "1"]
    record = [argv, item["nics"], {"acpi": True}, [[disk, "/link", None] for disk in disks]]
    values: dict[str, Any] = {
        "name": WEB,
        "pid": 4711,
        "argv": tuple(argv),
        "record": json.dumps(record),
    }
    return Guest(**(values | more))


def stops(known: Facts) -> list[str]:
    return [str(found) for found in examine(known).stops]


def lines(known: Facts) -> str:
    return "\n".join(map(str, examine(known).findings))


def test_a_cluster_at_rest_can_be_taken_over() -> None:
    raw = config()
    before = copy.deepcopy(raw)
    known = facts(raw, guests=(running(raw),))
    assert stops(known) == []
    assert f"keep    instance {WEB}: process 4711 is adopted with 2 disks" in lines(known)
    assert raw == before


@pytest.mark.parametrize("version", [2_160_000, 3_000_000, 3_010_000])
def test_versions_that_are_taken_over(version: int) -> None:
    assert stops(facts({**config(), "version": version})) == []


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (2_150_000, "of version 2.15; clusters of 2.16 to 3.1 are taken over"),
        (3_020_000, "one of this software already"),
        (4_000_000, "newer than this software"),
        ("3", "not a cluster configuration"),
    ],
)
def test_a_foreign_version_stops(version: object, said: str) -> None:
    (found,) = stops(facts({**config(), "version": version}))
    assert said in found


def test_no_cluster() -> None:
    (found,) = stops(Facts(host=NODE))
    assert "no cluster of Ganeti is here" in found


def test_jobs_that_have_not_ended_stop_on_the_master() -> None:
    jobs = (Job(id=7, ended=True), Job(id=8, ended=False), Job(id=9, ended=False))
    (found,) = stops(facts(jobs=jobs))
    assert "jobs: 8, 9 have not ended. Keep new ones away with gnt-cluster queue drain" in found
    assert stops(facts(jobs=jobs, host=NODE, master="node2.example.com")) == []


def test_half_stopped_daemons_are_named() -> None:
    text = lines(facts(daemons={"ganeti-noded": 12, "ganeti-luxid": 13}))
    assert "warning ganeti-wconfd: it does not run, although ganeti-luxid, ganeti-noded do" in text
    assert "change  daemons: ganeti-luxid, ganeti-noded stop; guests run on" in text


def test_a_daemon_of_ours_stops() -> None:
    (found,) = stops(facts(own_daemons={"ganeti-noded": 12}))
    assert "a daemon of this software runs already (process 12)" in found


def test_an_unsupported_hypervisor_stops() -> None:
    raw = config()
    web(raw)["hypervisor"] = "vmware"
    assert any("vmware" in found for found in stops(facts(raw)))


def test_a_guest_of_another_hypervisor_must_be_shut_down() -> None:
    raw = config()
    web(raw)["hypervisor"] = "fake"
    web(raw)["admin_state"] = "up"
    (found,) = stops(facts(raw))
    assert "it runs under fake, and only guests of kvm are adopted while they run" in found
    assert f"gnt-instance shutdown {WEB}" in found


def test_an_unsupported_disk_template_stops() -> None:
    raw = config()
    next(iter(raw["disks"].values()))["dev_type"] = "floppynet"
    assert any("floppynet" in found for found in stops(facts(raw)))


def test_a_missing_disk_stops() -> None:
    raw = config()
    found = stops(facts(raw, devices=()))
    assert len(found) == len(raw["disks"])
    assert f"instance {WEB}: disk/0 (file) is missing: there is no /srv/ganeti" in "\n".join(found)


def test_files_of_an_unknown_user_stop() -> None:
    owner = Owner(path="/var/lib/ganeti/config.data", uid=4242)
    (found,) = stops(facts(strangers=(owner,)))
    assert "it belongs to user id 4242, which this node does not know" in found
    assert "chown" in found


def test_a_data_directory_that_is_a_mount_stops() -> None:
    (found,) = stops(facts(mounted=True))
    assert "a file system of its own" in found


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"record": None}, "its runtime file is missing"),
        ({"record": "[["}, "its runtime file:"),
        ({"record": '{"version": 1}'}, "not a list of arguments, NICs"),
        ({"socket": False}, "its control socket (.qmp) is missing"),
    ],
)
def test_a_guest_that_cannot_be_adopted_stops(more: dict[str, Any], said: str) -> None:
    raw = config()
    (found,) = stops(facts(raw, guests=(running(raw, **more),)))
    assert said in found
    assert f"Restart it: gnt-instance reboot -t hard {WEB}" in found


def test_a_guest_with_a_disk_that_is_not_its_own_stops() -> None:
    raw = config()
    guest = running(raw)
    first = next(iter(web(raw)["disks"]))
    web(raw)["disks"].remove(first)
    del raw["disks"][first]
    found = stops(facts(raw, guests=(guest,)))
    assert any("is not in the configuration" in text for text in found)


def test_a_guest_that_nobody_knows_stops() -> None:
    raw = config()
    stray = msgspec.structs.replace(running(raw), name="stray.example.com")
    (found,) = stops(facts(raw, guests=(running(raw), stray)))
    assert "instance stray.example.com: process 4711 runs here, but the configuration has" in found


def test_an_instance_that_should_run_and_does_not_is_named() -> None:
    raw = config()
    web(raw)["admin_state"] = "up"
    assert "it is marked as running, but has no process here" in lines(facts(raw))


def test_a_node_that_is_no_candidate_is_examined_by_its_files() -> None:
    raw = config()
    known = facts(raw, host="node2.example.com", guests=(running(raw),))
    known = msgspec.structs.replace(known, config=None)
    assert stops(known) == []
    assert "is adopted, with what the master knows of it" in lines(known)


def test_a_master_without_configuration_stops() -> None:
    (found,) = stops(msgspec.structs.replace(facts(), config=None))
    assert "config.data: it is missing" in found


def test_who_listens_on_a_port() -> None:
    text = (
        'LISTEN 0      5            0.0.0.0:1811      0.0.0.0:*    users:(("noded",pid=812,fd=5))\n'
        "LISTEN 0      128             [::]:22           [::]:*\n"
    )
    listeners = look.read_listeners(text)
    assert listeners == {1811: "noded (process 812)", 22: "somebody"}
    (found,) = findings.find_listeners(listeners, {"ganeti-noded": 1811, "ganeti-rapi": 5080})
    assert found.kind is Kind.STOPS
    assert "ganeti-noded needs it, but noded (process 812) listens there" in str(found)
