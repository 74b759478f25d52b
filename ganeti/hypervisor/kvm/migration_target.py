"""Receiving a running guest from another node, so that it never runs twice.

The target's QEMU waits with the guest until it is told that it may run it; with post-copy it runs
it from the switch on. Its journal (see :mod:`ganeti.hypervisor.kvm.journal`) shows whether it has
taken over, whichever process died.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import (
    disk_sending,
    journal,
    migration_key,
    migration_plan,
    power,
)
from ganeti.hypervisor.kvm.migration_parts import (
    has_taken_over,
    hold_still,
    listen,
    prepare,
    resume_guest,
    save,
)
from ganeti.hypervisor.kvm.params import load
from ganeti.hypervisor.kvm.runtime import Guest, Store
from ganeti.hypervisor.kvm.starter import Arrival, Starter
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import NodeInstance

if TYPE_CHECKING:
    pass

#: Seconds for QEMU to load what it has received.
_ARRIVAL_TIMEOUT = 60.0


class MigrationTarget:
    """The node that the guest comes to; its state is in the runtime files and in QEMU."""

    def __init__(self, store: Store, starter: Starter) -> None:
        self._store = store
        self._starter = starter

    def accept(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        info: Mapping[str, object],
        address: str,
    ) -> str:
        """Start a QEMU that waits at the address; returns where."""
        name = instance.name
        trip = migration_plan.read_journey(info, instance)
        params = migration_plan.choose_caps(load(instance.hvparams), with_disks=trip.with_disks)
        migration_plan.host_port(address, 1)
        self._discard(name)
        arrival = Arrival(trip.machine, trip.accelerator, trip.places, trip.memory, trip.processors)
        # Without post-copy nothing runs before the record; the guest may have been started with it.
        waits = not migration_plan.uses_postcopy(params)
        known = migration_plan.order_disks(disks, trip)
        self._starter.start(trip.instance, known, paused=waits, arrival=arrival)
        try:
            found = self._store.find(name)
            if found is None:
                raise errors.HypervisorError(f"QEMU of instance {name} is not there any more")
            migration_key.write(self._store, found.runtime, trip.key)
            with self._store.control(name) as qmp:
                prepare(qmp, self._store, found.runtime, params, "server")
                qmp.command("migrate-set-parameters", {"tls-creds": migration_plan.TLS_OBJECT})
                return listen(qmp, address, params.migration_port)
        except BaseException:  # an interrupt too: stop the waiting QEMU and raise it
            self._discard(name)
            raise

    def receive_disks(self, name: str, uuids: Sequence[DiskUuid], address: str) -> str:
        """Let QEMU that waits for a guest take the content of disks; returns where."""
        found = self._store.find(name)
        if found is None or found.runtime.move != "in":
            raise errors.HypervisorError(f"instance {name} is not awaited on this node")
        tls = migration_plan.TLS_OBJECT
        with self._store.control(name) as qmp:
            return disk_sending.serve(qmp, found.runtime, uuids, address, tls)

    def finish(self, name: str, info: Mapping[str, object], *, success: bool) -> None:
        """See that the guest runs, or end what waits for it."""
        if not success:
            self._discard(name)
            return
        found = self._store.find(name)
        if found is None:
            raise errors.HypervisorError(f"instance {name} did not arrive on this node")
        if found.runtime.move == "in" and not self._was_taken_over(found):
            self._await_arrival(name, found)
            if info.get("running", True):
                self._release(name)
        if self._store.pid(name) is None:
            raise errors.HypervisorError(
                f"instance {name} has taken over on this node and ended after that; start it again"
            )
        migration_key.drop(self._store, found.runtime)
        if found.runtime.move == "in":
            save(self._store, found.runtime, move="none")
            self._starter.attach_routed(found.runtime)

    def check_arrived(self, name: str) -> None:
        """Wait until all of the guest is here."""
        self._await_arrival(name, self._store.find(name))

    def _await_arrival(self, name: str, found: Guest | None) -> None:
        """Wait until QEMU has loaded what it received."""
        if found is None or found.pid is None:
            raise errors.HypervisorError(
                f"instance {name} did not arrive: its QEMU has ended on this node"
                + self._starter.explain_end(name)
            )
        end = Deadline(_ARRIVAL_TIMEOUT)
        with self._store.control(name) as qmp, qmp.events("MIGRATION", "RESUME") as events:
            while qmp.command("query-status")["status"] == "inmigrate":
                left = end.left
                if left <= 0:
                    raise errors.HypervisorError(
                        f"instance {name} has not arrived on this node: not everything was sent"
                    )
                events.wait_next(min(left, 1.0))

    def _release(self, name: str) -> None:
        """Let a guest that has arrived run, if it is paused, as the only one with its disks."""
        with self._store.control(name) as qmp:
            disk_sending.close(qmp)
            resume_guest(qmp, name)

    def _discard(self, name: str) -> None:
        """End a QEMU that waits, unless the guest runs in it.

        The process is stopped while its journal is read, so it cannot take over in between.

        Raises:
            HypervisorError: it has taken over.
        """
        found = self._store.find(name)
        if found is None:
            return
        if found.runtime.move != "in":
            if found.pid is None:
                return
            raise has_taken_over(name)
        with hold_still(found.pid, self._store.pid_file(name)):
            if self._was_taken_over(found):
                raise has_taken_over(name)
            if found.pid is not None:
                power.kill(self._store, name, found.pid)
        self._starter.remove(name)

    def _was_taken_over(self, found: Guest) -> bool:
        runtime = found.runtime
        return journal.was_resumed(self._store.journal(runtime.instance.name).lines(runtime.mark))
