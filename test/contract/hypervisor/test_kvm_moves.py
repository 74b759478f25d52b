"""Live migration of kvm guests between two nodes, and what is left when something breaks off."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from pathlib import Path
from typing import Any

import boot_sectors
import msgspec
import pytest
from kvm_pair import Pair, free_port, slow
from rack import Rack

from ganeti import errors
from ganeti.base import process
from ganeti.model.enums import MigrationState
from ganeti.rpc.objects import NodeNic

pytestmark = [pytest.mark.qemu, pytest.mark.long]


# that work


def test_guest_goes_on_where_it_was(pair: Pair) -> None:
    made, disks = pair.start()
    before = pair.source.driver.store.find(made.name).runtime
    found = pair.move(made, disks)
    pair.check(made, "target")
    assert found.downtime is not None
    assert found.total_time is not None
    assert found.transferred_ram
    after = pair.target.driver.store.find(made.name).runtime
    assert (after.machine, after.places) == (before.machine, before.places)
    assert after.machine.startswith("pc-i440fx-")
    assert pair.source.list_leftovers() == []
    assert not list((pair.target.paths.kvm / "key").iterdir())
    pair.target.driver.finish_target(made, {}, success=True)
    pair.source.driver.finish_source(made, success=True, live=True)
    pair.target.driver.stop(made.name, force=True)
    pair.target.driver.cleanup(made.name)
    assert pair.target.list_leftovers() == []


def test_guest_that_stands_still_meanwhile(pair: Pair) -> None:
    made, disks = pair.start()
    assert pair.move(made, disks, live=False).status is MigrationState.COMPLETED
    pair.check(made, "target")


def test_restarted_node_daemons_go_on_at_any_step(pair: Pair) -> None:
    made, disks = pair.start()

    info = pair.source.driver.migration_info(made)
    pair.restart_daemons()
    assert pair.source.driver.migration_info(made) == info
    where = pair.target.driver.accept(made, disks, info, "127.0.0.1")
    pair.restart_daemons()
    assert pair.target.driver.list_names() == []
    pair.source.driver.migrate(made, where, live=True)
    pair.restart_daemons()
    assert pair.await_end(made).status is MigrationState.COMPLETED
    pair.restart_daemons()
    assert pair.source.driver.list_names() == []
    pair.target.driver.finish_target(made, info, success=True)
    pair.restart_daemons()
    pair.source.driver.finish_source(made, success=True, live=True)
    pair.check(made, "target")


def test_there_and_back_again(pair: Pair) -> None:
    made, disks = pair.start()
    pair.move(made, disks)
    back = Pair(pair.target, pair.source)
    back.move(made, disks)
    pair.wait_letters(pair.source, made)
    assert pair.target.driver.info(made.name) is None
    assert pair.target.list_leftovers() == []


def test_two_guests_arrive_at_a_time(pair: Pair) -> None:
    port = free_port()
    guests = [pair.source.instance(name, migration_port=port) for name in ("web1", "web2")]
    places = []
    for made in guests:
        pair.target.instances.append(made)
        disks = pair.source.start(made)
        info = pair.source.driver.migration_info(made)
        places.append(pair.target.driver.accept(made, disks, info, "127.0.0.1"))
    assert len(set(places)) == 2
    for made, where in zip(guests, places, strict=True):
        pair.source.driver.migrate(made, where, live=True)
    for made in guests:
        assert pair.settle(made, {}) == "target"


def test_accept_can_be_repeated(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.source.driver.migration_info(made)
    for _ in range(2):
        where = pair.target.driver.accept(made, disks, info, "127.0.0.1")
    pair.source.driver.migrate(made, where, live=True)
    assert pair.settle(made, info) == "target"
    pair.check(made, "target")


@pytest.mark.root
def test_guest_with_less_privilege(pair: Pair) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    made, disks = pair.start(security_model="user", security_domain="nobody", use_chroot=True)
    pair.move(made, disks)
    pair.check(made, "target")
    assert pair.source.list_leftovers() == []


@pytest.mark.root
def test_a_node_routes_to_a_guest_only_when_it_has_arrived(pair: Pair) -> None:
    if os.geteuid() or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("taps can only be made by root")
    nic = NodeNic(
        uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
        mac="aa:00:00:11:22:33",
        ip="192.0.2.99",
        nicparams={"mode": "routed", "link": ""},
    )
    made = msgspec.structs.replace(pair.instance(), nics=(nic,))
    disks = pair.source.start(made, boot_sectors.alphabet)

    def routes(rack: Rack) -> str:
        tap = (rack.driver.store.nic_dir(made.name) / "0").read_text().strip()  # type: ignore[attr-defined]
        return process.run(["ip", "route", "show", "dev", tap], timeout=10).stdout

    assert routes(pair.source).startswith("192.0.2.99")
    info = pair.begin(made, disks)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    assert routes(pair.target) == ""
    pair.target.driver.finish_target(made, info, success=True)
    assert routes(pair.target).startswith("192.0.2.99")
    pair.source.driver.finish_source(made, success=True, live=True)
    pair.check(made, "target")


def test_memory_fetched_after_the_switch(pair: Pair) -> None:
    if Path("/proc/sys/vm/unprivileged_userfaultfd").exists() is False:
        pytest.skip("this kernel has no userfaultfd, which post-copy needs")
    made, disks = pair.start(
        memory=48,
        guest=lambda path: boot_sectors.alphabet(path, 32),
        migration_caps="postcopy-ram",
        migration_bandwidth=40,
    )
    info = pair.begin(made, disks)
    pair.await_end(made)
    assert pair.settle(made, info) == "target"
    pair.check(made, "target")


# that are given up, or break off


def test_progress_and_end_by_the_administrator(pair: Pair) -> None:
    made, disks = slow(pair)
    info = pair.begin(made, disks)
    found = pair.source.driver.migration_status(made)
    assert found.status is MigrationState.ACTIVE
    assert 0 < (found.transferred_ram or 0) < (found.total_ram or 0) * 10
    assert pair.source.driver.info(made.name) is not None
    with pytest.raises(errors.HypervisorError, match="being moved already"):
        pair.source.driver.migrate(made, "127.0.0.1", live=True)
    with pytest.raises(errors.HypervisorError, match="was not moved"):
        pair.source.driver.finish_source(made, success=True, live=True)
    with pytest.raises(errors.HotplugError, match="being moved"):
        pair.source.driver.check_hotplug(made)
    pair.target.driver.finish_target(made, info, success=False)
    for _ in range(2):
        pair.source.driver.finish_source(made, success=False, live=True)
    pair.check(made, "source")
    assert pair.target.list_leftovers() == []
    assert not list((pair.source.paths.kvm / "key").iterdir())


def test_cancel_before_the_target_is_ended(pair: Pair) -> None:
    made, disks = slow(pair)
    info = pair.begin(made, disks)
    pair.source.driver.finish_source(made, success=False, live=True)
    pair.check(made, "source")
    pair.target.driver.finish_target(made, info, success=False)
    assert pair.target.list_leftovers() == []


def test_a_second_attempt_after_a_failed_one(pair: Pair) -> None:
    made, disks = slow(pair)
    info = pair.begin(made, disks)
    pair.target.crash(made.name)
    assert pair.settle(made, info) == "source"
    again = msgspec.structs.replace(made, hvparams={**made.hvparams, "migration_bandwidth": 1000})
    pair.move(again, disks, live=False)
    pair.check(made, "target")


def test_target_dies_while_it_receives(pair: Pair) -> None:
    made, disks = slow(pair)
    info = pair.begin(made, disks)
    pair.wait_letters(pair.source, made, 26)
    pair.target.crash(made.name)
    found = pair.await_end(made)
    assert found.status is MigrationState.FAILED
    assert found.error
    assert pair.settle(made, info) == "source"
    pair.check(made, "source")


def test_target_dies_before_anything_is_sent(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.source.driver.migration_info(made)
    where = pair.target.driver.accept(made, disks, info, "127.0.0.1")
    pair.target.crash(made.name)
    with contextlib.suppress(errors.HypervisorError):
        pair.source.driver.migrate(made, where, live=True)
    assert pair.settle(made, info) == "source"
    pair.check(made, "source")


def test_target_dies_without_having_run_the_guest(pair: Pair) -> None:
    """All was sent, the source is paused; only what the journal says tells that it may go on."""
    made, disks = pair.start()
    info = pair.begin(made, disks, live=False)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    assert pair.source.driver.info(made.name) is None
    pair.target.crash(made.name)
    with pytest.raises(errors.HypervisorError, match="did not arrive"):
        pair.target.driver.finish_target(made, info, success=True)
    assert pair.settle(made, info) == "source"
    pair.check(made, "source")


def test_target_dies_after_it_has_run_the_guest(pair: Pair) -> None:
    """The disk has changed since; to go on at the source would damage it."""
    made, disks = pair.start()
    info = pair.begin(made, disks)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    pair.target.driver.finish_target(made, info, success=True)
    pair.wait_letters(pair.target, made)
    pair.target.crash(made.name)
    with pytest.raises(errors.HypervisorError, match="taken over on this node and ended"):
        pair.target.driver.finish_target(made, info, success=True)
    pair.source.driver.finish_source(made, success=True, live=True)
    assert pair.source.driver.list_names() == pair.target.driver.list_names() == []
    pair.target.driver.start(made, disks)


def test_source_dies_while_it_sends(pair: Pair) -> None:
    """The guest is lost, as with any crash of QEMU; nothing half of it runs."""
    made, disks = slow(pair)
    info = pair.begin(made, disks)
    pair.source.crash(made.name)
    found = pair.await_end(made)
    assert found.status is MigrationState.FAILED
    assert "has ended" in (found.error or "")
    pair.target.driver.finish_target(made, info, success=False)
    with pytest.raises(errors.HypervisorError, match="restart it"):
        pair.source.driver.finish_source(made, success=False, live=True)
    assert pair.source.driver.list_names() == pair.target.driver.list_names() == []
    pair.source.driver.start(made, disks)


def test_source_dies_after_it_has_sent_everything(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.begin(made, disks)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    pair.source.crash(made.name)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    pair.target.driver.finish_target(made, info, success=True)
    assert pair.settle(made, info) == "target"
    pair.check(made, "target")


def test_a_guest_that_has_arrived_waits_until_it_is_told_to_run(pair: Pair) -> None:
    """So it can still be given back to the source, whose memory fits the disks."""
    made, disks = pair.start()
    info = pair.begin(made, disks)
    assert pair.await_end(made).status is MigrationState.COMPLETED
    assert pair.source.driver.list_names() == pair.target.driver.list_names() == []
    pair.target.driver.finish_target(made, info, success=False)
    pair.source.driver.finish_source(made, success=False, live=True)
    pair.check(made, "source")


class Cable:
    """A connection to the target that is cut after so many bytes."""

    def __init__(self, cut_after: int, *, reset: bool) -> None:
        self._cut_after = cut_after
        self._reset = reset
        self.sent = 0
        self._listener = socket.socket()
        self._threads: list[threading.Thread] = []

    def __call__(self, where: str) -> str:
        host, _, port = where.rpartition(":")
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self._spawn(self._serve, (host, int(port)))
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _spawn(self, function: Any, *args: Any) -> None:
        thread = threading.Thread(target=function, args=args)
        self._threads.append(thread)
        thread.start()

    def _serve(self, address: tuple[str, int]) -> None:
        with self._listener, contextlib.suppress(OSError):
            near, _ = self._listener.accept()
            with near, socket.create_connection(address) as far:
                back = threading.Thread(target=self._pump, args=(far, near))
                back.start()
                self._forth(near, far)
                for sock in (near, far):
                    if self._reset:
                        # Unsent bytes are thrown away and the peer gets an error.
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    with contextlib.suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)
                back.join()

    def _forth(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while self.sent < self._cut_after:
                data = near.recv(min(65536, self._cut_after - self.sent))
                if not data:
                    return
                far.sendall(data)
                self.sent += len(data)

    @staticmethod
    def _pump(far: socket.socket, near: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                near.sendall(data)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(20)


#: Bytes after which the connection is cut; negative: before the end of a whole move.
CUTS = (0, 700, 50000, -3000, -20, None)


def test_connection_is_cut_at_any_moment(pair: Pair) -> None:
    """From the greeting to the last byte: one guest runs, the one that was started.

    ``KVM_CUTS=100`` cuts so many times more, anywhere in the last part, where it is decided.
    """
    made, disks = pair.start()
    more = [-random.randrange(1, 60000) for _ in range(int(os.environ.get("KVM_CUTS", "0")))]
    whole = 0
    outcomes: list[str] = []
    for cut in (None, *CUTS, *more):
        limit = 1 << 40 if cut is None else cut if cut >= 0 else whole + cut
        cable = Cable(limit, reset=bool(limit % 2))
        info = pair.begin(made, disks, via=cable)
        outcomes.append(pair.settle(made, info))
        cable.close()
        if cut is None:
            whole = cable.sent
        pair.check(made, outcomes[-1], begun=len(outcomes) == 1)
        if outcomes[-1] == "target":
            pair = Pair(pair.target, pair.source)
    print(f"{outcomes.count('target')} of {len(outcomes)} moves went through")
    assert outcomes[0] == "target"
    assert set(outcomes) == {"source", "target"}


def test_a_stopped_target_cannot_take_over_while_it_is_judged(pair: Pair) -> None:
    """To give up is safe at any moment, also when everything has just been sent."""
    made, disks = pair.start()
    for pause in range(3):
        info = pair.begin(made, disks)
        time.sleep(pause * 0.02)  # the moment of giving up is what differs
        try:
            pair.target.driver.finish_target(made, info, success=False)
        except errors.HypervisorError as err:
            if "taken over" not in str(err):
                raise
            pair.source.driver.finish_source(made, success=True, live=True)
            pair.check(made, "target")
            assert pair.source.driver.list_names() == []
            return
        pair.source.driver.finish_source(made, success=False, live=True)
        pair.check(made, "source")
        assert pair.target.driver.list_names() == []
