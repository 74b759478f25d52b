"""Two nodes with kvm, and a guest that says the alphabet, each letter once.

What both nodes heard of it, one after the other, shows whether it ever ran twice, lost memory or
was begun anew.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Any

import boot_sectors
import msgspec
from rack import Rack

from ganeti import errors
from ganeti.base import retry
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import MigrationState, RunState
from ganeti.rpc.objects import MigrationStatus, NodeInstance

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def free_port() -> int:
    with contextlib.closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Pair:
    """Two nodes that reach the same disks."""

    source: Rack
    target: Rack

    def instance(self, **hvparams: Any) -> NodeInstance:
        chosen = {
            "migration_port": free_port(),
            "migration_bandwidth": 1000,
            "migration_downtime": 300,
            **hvparams,
        }
        made = self.source.instance(**chosen)
        self.target.instances.append(made)
        return made

    def restart_daemons(self) -> None:
        """Both node daemons know only what is on their disks."""
        for rack in (self.source, self.target):
            rack.driver = rack.make_driver()

    def start(
        self, *, memory: int = 16, guest: Any = boot_sectors.alphabet, **hvparams: Any
    ) -> tuple[NodeInstance, list[AttachedDisk]]:
        made = self.instance(**hvparams)
        made = replace_memory(made, memory)
        return made, self.source.start(made, guest)

    def begin(
        self,
        made: NodeInstance,
        disks: list[AttachedDisk],
        *,
        live: bool = True,
        via: Any = None,
    ) -> dict[str, Any]:
        """As far as that the guest is being sent."""
        self.source.driver.check_migratable(made)
        info: dict[str, Any] = self.source.driver.migration_info(made)
        where = self.target.driver.accept(made, disks, info, "127.0.0.1")
        self.source.driver.migrate(made, via(where) if via else where, live=live)
        return info

    def await_end(self, made: NodeInstance) -> MigrationStatus:
        for _ in range(30):
            found: MigrationStatus = self.source.driver.migration_status(made)
            if found.status is not MigrationState.ACTIVE:
                return found
        raise AssertionError(f"the migration does not end: {found}")

    def settle(self, made: NodeInstance, info: dict[str, Any]) -> str:
        """Decide as the master does; the node that has the guest then."""
        source, target = self.source.driver, self.target.driver
        if self.await_end(made).status is MigrationState.COMPLETED:
            with contextlib.suppress(errors.HypervisorError):
                target.finish_target(made, info, success=True)
                source.finish_source(made, success=True, live=True)
                return "target"
        try:
            target.finish_target(made, info, success=False)
        except errors.HypervisorError as err:
            if "taken over" not in str(err):
                raise
            source.finish_source(made, success=True, live=True)
            return "target"
        source.finish_source(made, success=False, live=True)
        return "source"

    def move(self, made: NodeInstance, disks: list[AttachedDisk], **how: Any) -> MigrationStatus:
        info = self.begin(made, disks, **how)
        found = self.await_end(made)
        assert found.status is MigrationState.COMPLETED, found
        self.target.driver.finish_target(made, info, success=True)
        self.source.driver.finish_source(made, success=True, live=True)
        return found

    def read_console(self, made: NodeInstance) -> str:
        texts = [rack.serial_log(made) for rack in (self.source, self.target)]
        hello = f"{boot_sectors.HELLO}\n"
        assert "".join(texts).count(hello) == 1
        return "".join(texts).partition(hello)[2]

    def wait_letters(self, rack: Rack, made: NodeInstance, more: int = 10) -> None:
        before = len(rack.serial_log(made))

        def has_grown() -> bool | None:
            return len(rack.serial_log(made)) >= before + more or None

        assert retry.retry_until(has_grown, timeout=30, largest=0.02), "the guest does not go on"

    def check(self, made: NodeInstance, where: str, *, begun: bool = True) -> None:
        """Exactly one guest runs, and it is the one that was started (``begun`` at the source)."""
        rack, other = (
            (self.target, self.source) if where == "target" else (self.source, self.target)
        )
        self.wait_letters(rack, made)
        info = rack.make_driver().info(made.name)
        assert info is not None
        assert info.state == RunState.RUNNING
        assert other.make_driver().info(made.name) is None
        quiet = other.serial_log(made)
        if begun:
            said = self.read_console(made)
            assert said == (LETTERS * (len(said) // 26 + 1))[: len(said)]
        self.wait_letters(rack, made, 5)
        assert other.serial_log(made) == quiet


def replace_memory(made: NodeInstance, memory: int) -> NodeInstance:
    return msgspec.structs.replace(made, beparams={"maxmem": memory, "minmem": memory, "vcpus": 1})


def slow(pair: Pair, **hvparams: Any) -> tuple[NodeInstance, list[AttachedDisk]]:
    """A guest that writes faster than it is sent."""
    return pair.start(
        memory=64,
        guest=lambda path: boot_sectors.alphabet(path, 48),
        migration_bandwidth=4,
        migration_downtime=1,
        **hvparams,
    )
