"""Moves of Xen guests: the driver, socat and TLS are real, ``xl`` is a stand-in.

With the real ``xl`` they are moved in ``test/hosts/test_hosts_xen.py``.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kvm_pair import free_port
from rack import Rack, make_rack, stand_in_for_xl

from ganeti import errors
from ganeti.base import daemon, process
from ganeti.hypervisor.xen.driver import XenHypervisor
from ganeti.model.enums import HypervisorName, MigrationState
from ganeti.net import certs
from ganeti.paths import ROOTDIR_VARIABLE
from ganeti.rpc.objects import MigrationStatus, NodeInstance

pytestmark = pytest.mark.long

WEB = "web1.example.com"
ADDRESS = "127.0.0.1"
both_ways = pytest.mark.parametrize("live", [True, False], ids=["live", "still"])


@dataclass
class Side:
    """One of two nodes."""

    rack: Rack
    monkeypatch: pytest.MonkeyPatch

    @property
    def world(self) -> Path:
        return self.rack.directory / "xen"

    @property
    def driver(self) -> XenHypervisor:
        """That of a daemon which has just started; programs are those of this node from now on."""
        self.monkeypatch.setenv(ROOTDIR_VARIABLE, str(self.rack.paths.root))
        driver = self.rack.make_driver()
        assert isinstance(driver, XenHypervisor)
        return driver

    def domains(self) -> dict[str, Any]:
        return {path.name: path.read_text() for path in (self.world / "domains").glob("*")}

    def runs(self) -> bool:
        return list(self.domains()) == [WEB] and "-b----" in self.domains()[WEB]

    def be(self, word: str) -> None:
        self.world.mkdir(exist_ok=True)
        (self.world / word).touch()

    def pid(self, what: str) -> int:
        found = daemon.read_pid(self.rack.paths.run / "xen" / f"{WEB}.{what}")
        assert found is not None
        return found


@dataclass
class Move:
    """A guest on its way from one node to another."""

    source: Side
    target: Side
    instance: NodeInstance
    live: bool = True
    info: Any = None
    #: the node that the master named to the target
    sender: str = "node1.example.com"

    def begin(self) -> None:
        self.source.driver.start(self.instance, self.source.rack.disks(self.instance))
        self.source.driver.check_migratable(self.instance, live=self.live)
        self.info = self.source.driver.migration_info(self.instance, live=self.live)
        where = self.target.driver.accept(
            self.instance,
            self.source.rack.disks(self.instance),
            {**self.info, "source": self.sender},
            ADDRESS,
        )
        self.source.driver.migrate(self.instance, where, live=self.live)

    def end(self) -> MigrationStatus:
        """Wait until the source knows how it ended."""
        while True:
            found = self.source.driver.migration_status(self.instance)
            if found.status is not MigrationState.ACTIVE:
                return found

    def take_back(self) -> None:
        self.target.driver.finish_target(self.instance, self.info, success=False)
        self.source.driver.finish_source(self.instance, success=False, live=self.live)

    def check_taken_back(self) -> None:
        """Give the move up: the guest continues at the source; the target keeps nothing."""
        self.take_back()
        assert self.source.runs()
        assert self.target.domains() == {}

    def hand_over(self) -> None:
        self.target.driver.finish_target(self.instance, self.info, success=True)
        self.source.driver.finish_source(self.instance, success=True, live=self.live)


@pytest.fixture
def move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    if shutil.which("socat") is None:
        pytest.skip("no socat on this machine: install socat")
    authority = certs.create_ca("test cluster")
    sides = []
    for name in ("node1.example.com", "node2.example.com"):
        made = make_rack(HypervisorName.XEN_PVM, tmp_path / name)
        made.paths.data.mkdir(parents=True)
        stand_in_for_xl(made.paths.root, tmp_path / name / "xen")
        certs.write_authority(authority, made.paths.ca_key, made.paths.ca_cert)
        certs.write(made.paths.server_cert, certs.issue_server(authority, name, [ADDRESS]))
        sides.append(Side(made, monkeypatch))
    source, target = sides
    hvparams = {"guest_type": "pvh", "migration_port": free_port()}
    yield Move(source, target, source.rack.instance(WEB, **hvparams))
    for side in sides:
        for path in (side.rack.paths.run / "xen").glob("*.*"):
            if (pid := daemon.read_pid(path)) is not None:
                process.kill_group(pid)
    for thread in threading.enumerate():
        if thread.name.startswith("xen-"):
            thread.join(5)


@both_ways
def test_a_guest_is_moved(move: Move, live: bool) -> None:
    move.live = live
    move.begin()
    assert move.end().status is MigrationState.COMPLETED
    move.target.driver.check_arrived(move.instance)
    for _ in range(2):
        move.hand_over()
    assert move.target.runs()
    assert move.source.domains() == {}
    assert move.target.driver.info(WEB) is not None
    with pytest.raises(errors.HypervisorError, match="taken over"):
        move.target.driver.finish_target(move.instance, move.info, success=False)


def test_one_that_stands_still_runs_nowhere_until_that_is_decided(move: Move) -> None:
    move.live = False
    move.begin()
    assert move.end().status is MigrationState.COMPLETED
    move.target.driver.check_arrived(move.instance)
    for side in (move.source, move.target):
        assert not side.runs()
        assert side.driver.info(WEB) is None
    for _ in range(2):
        move.check_taken_back()
    with pytest.raises(errors.HypervisorError, match="did not arrive"):
        move.target.driver.finish_target(move.instance, move.info, success=True)
    with pytest.raises(errors.HypervisorError, match="was not moved"):
        move.source.driver.finish_source(move.instance, success=True, live=False)


@both_ways
def test_a_connection_that_is_lost(move: Move, live: bool) -> None:
    move.live = live
    move.source.be("slow")
    move.begin()
    assert move.source.driver.migration_status(move.instance).status is MigrationState.ACTIVE
    process.kill_group(move.target.pid("receive"))
    found = move.end()
    assert found.status is MigrationState.FAILED
    assert "resuming domain" in (found.error or "")
    move.check_taken_back()


@both_ways
def test_it_is_canceled_on_the_way(move: Move, live: bool) -> None:
    move.live = live
    move.source.be("slow")
    move.begin()
    move.check_taken_back()


@both_ways
def test_a_target_that_cannot_build_it(move: Move, live: bool) -> None:
    move.live = live
    move.target.be("full")
    move.begin()
    ended = move.end().status
    with pytest.raises(errors.HypervisorError, match="not enough memory"):
        move.target.driver.check_arrived(move.instance)
    # Whoever sends a guest that is paused does not hear of it.
    assert ended is (MigrationState.FAILED if live else MigrationState.COMPLETED)
    move.check_taken_back()


def test_a_guest_whose_xl_was_killed_is_ended(move: Move) -> None:
    move.live = False
    move.source.be("slow")
    move.begin()
    assert move.source.driver.migration_status(move.instance).status is MigrationState.ACTIVE
    os.kill(move.source.pid("send"), signal.SIGKILL)
    assert move.end().status is MigrationState.FAILED
    move.target.driver.finish_target(move.instance, move.info, success=False)
    with pytest.raises(errors.HypervisorError, match="cannot continue here"):
        move.source.driver.finish_source(move.instance, success=False, live=False)
    assert move.source.domains() == move.target.domains() == {}
    move.source.driver.start(move.instance, move.source.rack.disks(move.instance))


@both_ways
def test_a_port_that_is_taken(move: Move, live: bool) -> None:
    move.target.driver.accept(move.instance, [], {"live": True, "source": move.sender}, ADDRESS)
    other = move.source.rack.instance("web2.example.com", **move.instance.hvparams)
    info = {"live": live, "source": move.sender}
    with pytest.raises(errors.HypervisorError, match="Address already in use"):
        move.target.driver.accept(other, [], info, ADDRESS)


def test_a_foreign_certificate_is_refused(move: Move) -> None:
    """Nothing of a guest goes to a node that is not of the cluster."""
    stranger = certs.issue_server(certs.create_ca("other"), "node2.example.com", [ADDRESS])
    path = move.target.rack.paths.server_cert
    path.chmod(0o600)
    path.unlink()
    certs.write(path, stranger)
    move.live = False
    move.source.be("slow")
    move.begin()
    assert move.end().status is MigrationState.FAILED
    said = (move.target.rack.paths.log / "xen" / f"{WEB}-receive.log").read_text()
    assert "alert" in said, said  # what the source answered to that certificate
    move.take_back()
    assert move.source.runs()


@both_ways
def test_another_node_of_the_cluster_is_not_let_in(move: Move, live: bool) -> None:
    """The port is open for the node that the master named, not for all certificates."""
    move.live = live
    move.sender = "node3.example.com"
    move.begin()
    assert move.end().status is MigrationState.FAILED or not live
    with pytest.raises(errors.HypervisorError, match="did not arrive"):
        move.target.driver.check_arrived(move.instance)
    assert move.target.domains() == {}
    said = (move.target.rack.paths.log / "xen" / f"{WEB}-receive.log").read_text()
    assert "common name" in said.lower() or "commonname" in said.lower(), said
    move.check_taken_back()


@pytest.mark.parametrize(
    "where",
    [
        "node2.example.com/127.0.0.1;touch /tmp/x:81",
        "node2.example.com,exec=x/127.0.0.1:81",
        "node2.example.com/127.0.0.1:81x",
        "127.0.0.1:81",
    ],
)
def test_what_a_target_says_never_reaches_a_shell(move: Move, where: str) -> None:
    move.source.driver.start(move.instance, move.source.rack.disks(move.instance))
    with pytest.raises(errors.HypervisorError, match="not a place where a Xen node waits"):
        move.source.driver.migrate(move.instance, where, live=True)
    assert move.source.runs()
