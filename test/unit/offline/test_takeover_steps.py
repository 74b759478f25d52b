"""A takeover and the way back on files that Ganeti 3.0.2 wrote, cut off after and in each step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti import errors
from ganeti.hypervisor.kvm.driver import KvmHypervisor
from ganeti.hypervisor.kvm.runtime import Store
from ganeti.offline.takeover import program, return_path, steps, work
from ganeti.offline.takeover.steps import Record, Step
from ganeti.paths import Paths

RECORDED = json.loads((Path(__file__).parents[2] / "recorded" / "takeover_3_0_2.json").read_text())
NODE = "node1.example.com"
GUESTS = ("web1.example.com", "file1.example.com")
SECRET = "0123456789abcdef\n"
#: Starts real daemons, which have tests of their own.
LEFT_OUT = ("start", "back-start")


@dataclass
class Node:
    where: Paths
    guests: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def begin(self, name: str) -> None:
        """Something that runs with the arguments of a guest."""
        old, new = "/var/run/ganeti", str(self.where.run)
        argv = [word.replace(old, new) for word in RECORDED["argv"][name][1:]]
        sleep = [sys.executable, "-c", "import signal; signal.pause()"]
        child = subprocess.Popen([*sleep, *argv])
        self.guests[name] = child
        store = Store(self.where.kvm)
        store.pid_file(name).write_text(f"{child.pid}\n")
        store.runtime_file(name).write_text(RECORDED["records"][name])
        store.nic_dir(name).mkdir(exist_ok=True)
        for index, tap in RECORDED["taps"][name].items():
            (store.nic_dir(name) / index).write_text(tap)
        store.socket(name, "qmp").touch()

    def end(self, name: str) -> None:
        self.guests[name].kill()
        self.guests[name].wait()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", NODE)
    where = Paths(tmp_path)
    (where.queue / "archive/0").mkdir(parents=True)
    (where.data / "rapi").mkdir()
    where.config_file.write_text(json.dumps(RECORDED["config"]))
    for key, text in RECORDED["ssconf"].items():
        where.ssconf(key).write_text(text)
    for name, job in RECORDED["jobs"].items():
        (where.queue / name).write_text(json.dumps(job))
    (where.queue / "archive/0/job-0").write_text("{}")
    (where.queue / "serial").write_text("13\n")
    (where.queue / "lock").touch()
    (where.data / "rapi/users").write_text("jane secret write\n")
    for name in ("hmac.key", "cluster-domain-secret", "rapi.pem", "server.pem"):
        (where.data / name).write_text(SECRET)
        (where.data / name).chmod(0o440)
    for name in ("/etc/cron.d/ganeti", "/etc/init.d/ganeti", "/etc/ganeti/kvm-ifup-os"):
        where.under(name).parent.mkdir(parents=True, exist_ok=True)
        where.under(name).write_text("#!/bin/sh\n")
    where.under("/etc/ganeti/lib").symlink_to("/usr/lib/ganeti/3.0")
    Store(where.kvm).prepare()
    made = Node(where)
    try:
        for name in GUESTS:
            made.begin(name)
        yield made
    finally:
        for name in made.guests:
            made.end(name)


class Killed(BaseException):
    """The process is gone."""


def say(_text: str) -> None:
    pass


def plan(where: Paths, record: Record) -> list[Step]:
    found = [*work.preparation(where), *work.takeover(where, record, say)]
    return [step for step in found if step.name not in LEFT_OUT]


def way_back(where: Paths, record: Record) -> list[Step]:
    found = return_path.way_back(where, record, say)
    return [step for step in found if step.name not in LEFT_OUT]


def make_record(where: Paths) -> Record:
    record = Record(
        host=NODE, cluster="cluster.example.com", master=NODE, packages={"ganeti-3.0": "3.0.2-3"}
    )
    steps.save(where, record)
    return record


def reread(where: Paths) -> Record:
    record = steps.load(where)
    assert record is not None
    return record


def contents(where: Paths) -> dict[str, Any]:
    """All that the other software has; pid files and locks of ours aside."""
    found: dict[str, Any] = {}
    for top in (where.data, where.conf, where.under("/etc/cron.d"), where.under("/etc/init.d")):
        for path in sorted(top.rglob("*")):
            name = str(path.relative_to(where.root))
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_file():
                found[name] = (path.read_bytes(), path.stat().st_mode)
    for path in sorted((where.kvm / "conf").iterdir()):
        found[path.name] = path.read_bytes()
    return found


def check_ours(node: Node) -> None:
    """The node as it must be at the end of a takeover, however often it was cut off."""
    where = node.where
    driver = KvmHypervisor(where)
    assert set(driver.info_all()) == set(GUESTS)
    for name in GUESTS:
        assert driver.guest_process(name) == node.guests[name].pid
        assert node.guests[name].poll() is None
        found = Store(where.kvm).find(name)
        assert found is not None
        assert found.runtime.software == "Ganeti 3.0.2"
    for name in ("hmac.key", "cluster-domain-secret", "rapi.pem"):
        assert (where.data / name).read_text() == SECRET
    assert where.server_cert.read_text() != SECRET
    assert where.rapi_users.read_text() == "jane secret write\n"
    assert (where.queue / "job-1").exists()
    assert (where.queue / "archive/0/job-0").exists()
    assert (where.queue / "serial").read_text() == "13\n"
    config = work.converted(where)
    assert {str(item.name) for item in config.instances.values()} >= set(GUESTS)
    assert len(list(where.run_rights.iterdir())) == len(config.instances)
    assert not where.under("/etc/cron.d/ganeti").exists()
    assert not where.under("/etc/ganeti/kvm-ifup-os").exists()
    for secret in (where.ca_key, where.server_cert, where.client_cert):
        assert secret.stat().st_mode & 0o077 == 0
    assert where.takeover.stat().st_mode & 0o077 == 0


def test_a_node_becomes_ours_and_goes_back_as_it_was(node: Node) -> None:
    where = node.where
    before = contents(where)
    record = make_record(where)
    steps.perform(where, record, plan(where, record), say)
    check_ours(node)
    record = reread(where)
    assert list(return_path.obstacles(where, record, discard=False)) == []
    steps.perform(where, record, way_back(where, record), say)
    return_path.finish(where)
    assert contents(where) == before
    assert steps.load(where) is None
    assert all(child.poll() is None for child in node.guests.values())


NAMES = (
    "records", "cron", "stop", "starters", "data", "kits", "stage", "place", "adopt", "confirm",
)  # fmt: skip


def cut(step: Step, when: str) -> Callable[[], None]:
    """The process ends right before a step is noted, or in the middle of it."""

    def do() -> None:
        if when == "after":
            step.do()
        raise Killed

    return do


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_after_it_was_killed_at_a_step(node: Node, name: str, when: str) -> None:
    where = node.where
    record = make_record(where)
    broken = [
        Step(step.name, step.text, cut(step, when)) if step.name == name else step
        for step in plan(where, record)
    ]
    with pytest.raises(Killed):
        steps.perform(where, record, broken, say)
    record = reread(where)
    assert name not in record.done
    steps.perform(where, record, plan(where, record), say)
    check_ours(node)


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_back_from_any_step(node: Node, name: str) -> None:
    where = node.where
    before = contents(where)
    record = make_record(where)
    broken = [
        Step(step.name, step.text, cut(step, "after")) if step.name == name else step
        for step in plan(where, record)
    ]
    with pytest.raises(Killed):
        steps.perform(where, record, broken, say)
    record = reread(where)
    steps.perform(where, record, way_back(where, record), say)
    return_path.finish(where)
    assert contents(where) == before


@pytest.mark.parametrize("name", ["back-stop", "back-records", "back-data", "back-starters"])
def test_the_way_back_goes_on_after_it_was_killed(node: Node, name: str) -> None:
    where = node.where
    before = contents(where)
    record = make_record(where)
    steps.perform(where, record, plan(where, record), say)
    record = reread(where)
    broken = [
        Step(step.name, step.text, cut(step, "after")) if step.name == name else step
        for step in way_back(where, record)
    ]
    with pytest.raises(Killed):
        steps.perform(where, record, broken, say)
    record = reread(where)
    steps.perform(where, record, way_back(where, record), say)
    assert contents(where) == before


def test_a_guest_that_ended_meanwhile_leaves_nothing_that_we_cannot_read(node: Node) -> None:
    where = node.where
    node.end(GUESTS[0])
    record = make_record(where)
    steps.perform(where, record, plan(where, record), say)
    assert set(KvmHypervisor(where).info_all()) == {GUESTS[1]}
    assert set(work.adopted(where)) == {GUESTS[1]}


def test_a_guest_that_we_started_keeps_the_old_software_away(node: Node) -> None:
    where = node.where
    record = make_record(where)
    steps.perform(where, record, plan(where, record), say)
    store = Store(where.kvm)
    found = store.find(GUESTS[0])
    assert found is not None
    store.save(msgspec.structs.replace(found.runtime, software=""))
    (said,) = return_path.obstacles(where, record, discard=False)
    assert f"instance {GUESTS[0]} was started by this software" in said
    assert f"gnt-instance shutdown {GUESTS[0]}" in said


def test_the_kit_of_another_node_is_refused(node: Node) -> None:
    where = node.where
    record = make_record(where)
    steps.perform(where, record, plan(where, record), say)
    other = Record(host="node2.example.com", cluster=record.cluster, master=NODE)
    with pytest.raises(errors.OpPrereqError, match=r"is for node node1\.example\.com"):
        work.read_kit(where, other)
    work.kit_file(where).unlink()
    with pytest.raises(errors.OpPrereqError, match=f"ganeti-takeover run on {NODE} first"):
        work.read_kit(where, other)


def test_files_in_the_way_of_the_new_data_are_named(node: Node) -> None:
    where = node.where
    record = make_record(where)
    steps.perform(where, record, work.preparation(where), say)
    where.data.mkdir()
    (where.data / "mine").write_text("keep me")
    with pytest.raises(errors.OpPrereqError, match=r"is not empty: .*mine\. Move it away"):
        steps.perform(where, record, plan(where, record), say)
    assert (where.data / "mine").read_text() == "keep me"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run"], 1, "this node is not prepared"),
        (["back"], 1, "no takeover has begun"),
        (["prepare"], 13, "no terminal to ask on: add --force"),
    ],
)
def test_what_comes_too_early_is_refused(
    node: Node, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    before = contents(node.where)
    for path in RECORDED["config"]["disks"].values():
        file = Path(node.where.local(path["logical_id"][1]))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert program.main(words) == code
    assert said in capsys.readouterr().err
    assert contents(node.where) == before


def test_a_record_that_is_damaged_is_named(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.where.takeover.mkdir()
    steps.record_file(node.where).write_text("{")
    with pytest.raises(errors.OpPrereqError, match="is damaged"):
        steps.load(node.where)
