"""Migrations of kvm guests that are refused, and what is left of others."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from kvm_pair import Pair, slow

from ganeti import errors
from ganeti.model.enums import MigrationState

pytestmark = pytest.mark.qemu


def test_somebody_else_cannot_send_or_receive(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.source.driver.migration_info(made)
    where = pair.target.driver.accept(made, disks, {**info, "key": "00" * 32}, "127.0.0.1")
    pair.source.driver.migrate(made, where, live=True)
    assert pair.await_end(made).status is MigrationState.FAILED
    assert pair.settle(made, info) == "source"
    pair.check(made, "source")


def test_the_key_is_nowhere_to_be_seen(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.begin(made, disks, live=False)
    for rack in (pair.source, pair.target):
        pid = rack.driver.store.pid(made.name)
        assert info["key"] not in Path(f"/proc/{pid}/cmdline").read_text()
        assert info["key"] not in rack.driver.store.runtime_file(made.name).read_text()
        path = rack.paths.kvm / "key" / made.name / "keys.psk"
        assert path.stat().st_mode & 0o077 == 0
    assert pair.settle(made, info) == "target"


def test_what_cannot_be_received(pair: Pair) -> None:
    made, disks = pair.start()
    info = pair.source.driver.migration_info(made)
    accept = pair.target.driver.accept
    with pytest.raises(errors.HypervisorError, match="other disks"):
        accept(made, [], info, "127.0.0.1")
    with pytest.raises(errors.HypervisorError, match="same version"):
        accept(made, disks, {"version": 2}, "127.0.0.1")
    other = pair.source.instance("other.example.com")
    with pytest.raises(errors.HypervisorError, match=r"not of other\.example\.com"):
        accept(other, disks, info, "127.0.0.1")
    with pytest.raises(errors.HypervisorError, match=r"'pc-i440fx-99' is unknown"):
        accept(made, disks, {**info, "machine": "pc-i440fx-99"}, "127.0.0.1")
    with pytest.raises(errors.HypervisorError, match=r"192\.0\.2\.1|assign"):
        accept(made, disks, info, "192.0.2.1")
    with pytest.raises(errors.HypervisorError, match="taken over"):
        pair.source.driver.accept(made, disks, info, "127.0.0.1")
    assert pair.target.list_leftovers() == []
    with pytest.raises(errors.HypervisorError, match="not an address"):
        pair.source.driver.migrate(made, "no such host", live=True)
    pair.check(made, "source")


def test_leftovers_of_a_move_are_told_apart_from_a_guest(pair: Pair) -> None:
    made, disks = slow(pair)
    pair.begin(made, disks)
    with pytest.raises(errors.HypervisorError, match="gnt-instance migrate --cleanup"):
        pair.target.driver.start(made, disks)
    pair.target.driver.stop(made.name, force=True)
    pair.target.driver.cleanup(made.name)
    assert pair.target.list_leftovers() == []
    assert pair.settle(made, {}) == "source"


def test_qemu_that_hangs_is_told_of_in_time(pair: Pair, monkeypatch: Any) -> None:
    monkeypatch.setattr("ganeti.hypervisor.kvm.runtime.qmp_timeout", lambda: 0.5)
    made, _disks = pair.start()
    pid = pair.source.driver.store.pid(made.name)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(errors.HypervisorError, match="did not answer"):
            pair.source.driver.store.control(made.name, 0.5).close()
    finally:
        os.kill(pid, signal.SIGCONT)
