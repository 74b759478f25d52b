"""Sending a running guest to another node, so that it never runs twice.

The source's QEMU continues by itself when it could not send everything. Its journal (see
:mod:`ganeti.hypervisor.kvm.journal`) shows whether it has handed the guest over, whichever process
died. The stream is encrypted, and both ends know each other, by a key that is made for this one
move. The other end is in :mod:`ganeti.hypervisor.kvm.migration_target`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ganeti import errors
from ganeti.base import process, retry
from ganeti.base.clock import Deadline
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm import (
    disk_copies,
    disk_sending,
    journal,
    migration_key,
    migration_plan,
    power,
)
from ganeti.hypervisor.kvm.migration_parts import (
    add_sums,
    prepare,
    resume_guest,
    save,
)
from ganeti.hypervisor.kvm.migration_plan import Journey
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.runtime import Guest, Runtime, Store
from ganeti.hypervisor.kvm.starter import Starter
from ganeti.model.enums import MigrationState
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress, MigrationStatus

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Seconds that :meth:`MigrationSource.status` waits for the end.
_STATUS_WAIT = 2.0
#: Seconds for QEMU to stop sending.
_CANCEL_TIMEOUT = 30.0
#: QEMU's word for a guest that is paused before the switch.
_PAUSED = "pre-switchover"
_MIGRATING = frozenset({"setup", "active", "device", _PAUSED, "wait-unplug", "cancelling"})


class MigrationSource:
    """The node that the guest leaves; its state is in the runtime files and in QEMU."""

    def __init__(self, store: Store, starter: Starter) -> None:
        self._store = store
        self._starter = starter

    def check(self, name: str) -> None:
        """Refuse a guest that does not run here, or is of a version that wrote less down."""
        runtime = self._find_running(name).runtime
        if not runtime.machine:
            starter = runtime.software or "an older version"
            raise errors.HypervisorError(
                f"instance {name} was started by {starter}, which did not note its machine;"
                " restart it, then move it"
            )
        if runtime.successors:
            raise errors.HypervisorError(f"the disks of instance {name} are being converted")

    def info(self, name: str) -> JsonObject:
        """The guest as it runs, and the key."""
        self.check(name)
        runtime = self._find_running(name).runtime
        with self._store.control(name) as qmp:
            running = bool(qmp.command("query-status")["running"])
        trip = Journey(
            instance=runtime.instance,
            machine=runtime.machine,
            accelerator=runtime.accelerator,
            places=runtime.places,
            drives=tuple(drive.uuid for drive in runtime.drives),
            memory=runtime.memory,
            processors=runtime.processors,
            running=running,
            key=migration_key.find(self._store, runtime),
        )
        found: JsonObject = msgspec.to_builtins(trip)
        return found

    def begin(self, name: str, params: KvmParams, target: str, *, live: bool) -> None:
        """Begin to send."""
        where = migration_plan.destination(target, params)
        runtime = self._find_running(name).runtime
        params = _choose_caps(params, runtime)
        migration_key.check_announced(self._store, runtime)
        with self._store.control(name) as qmp:
            self._refuse_second(qmp, name)
            prepare(qmp, self._store, runtime, params, "client")
            qmp.command("migrate-set-parameters", migration_plan.limits(params))
            runtime = self._note_leaving(qmp, runtime, runtime.sent_disks)
            running = not runtime.paused
            try:
                if not live and running:
                    qmp.command("stop")
                qmp.command("migrate", {"uri": f"tcp:{where}"})
            except errors.HypervisorError:
                if not live and running:
                    qmp.command("cont")
                save(self._store, runtime, move="none")
                raise

    def send_disks(self, name: str, uuids: Sequence[DiskUuid], target: str, bandwidth: int) -> None:
        """Begin to send disks; the memory follows when they are ready."""
        runtime = self._find_running(name).runtime
        disk_copies.check(runtime)
        migration_key.check_announced(self._store, runtime)
        with self._store.control(name) as qmp:
            self._refuse_second(qmp, name)
            disk_sending.cancel(qmp)
            migration_key.load(qmp, self._store, runtime, "client", disk_sending.TLS_OBJECT)
            runtime = self._note_leaving(qmp, runtime, uuids)
            try:
                disk_sending.begin(qmp, runtime, uuids, target, bandwidth)
            except errors.HypervisorError:
                disk_sending.cancel(qmp)
                save(self._store, runtime, move="none", sent_disks=())
                raise

    def disk_progress(self, name: str) -> list[DiskProgress]:
        """How far disks are; waits up to 2 s until all are ready or one has failed."""
        runtime = self._find_running(name).runtime
        with self._store.control(name) as qmp:
            return disk_copies.wait(qmp, runtime, _STATUS_WAIT)

    @staticmethod
    def _refuse_second(qmp: Qmp, name: str) -> None:
        if qmp.command("query-migrate").get("status") in _MIGRATING:
            raise errors.HypervisorError(f"instance {name} is being moved already")

    def _note_leaving(self, qmp: Qmp, runtime: Runtime, sent: Sequence[DiskUuid]) -> Runtime:
        """Note that the guest is on its way out, and how it is.

        Known before it begins, so that no crash of ours can hide that the guest has gone.
        """
        running = bool(qmp.command("query-status")["running"])
        mark = self._store.journal(runtime.instance.name).size()
        return save(
            self._store, runtime, move="out", mark=mark, paused=not running, sent_disks=sent
        )

    def status(self, name: str, params: KvmParams) -> MigrationStatus:
        """How far it is; waits up to 2 s for the end, and begins post-copy when it is time."""
        found = self._store.find(name)
        if found is None or found.pid is None:
            return self._report_dead(name, found)
        try:
            with self._store.control(name) as qmp:
                return self._follow(qmp, found.runtime, params)
        except errors.HypervisorError:
            if process.wait_exit(found.pid, 1.0):
                return self._report_dead(name, self._store.find(name))
            raise

    def _follow(self, qmp: Qmp, runtime: Runtime, params: KvmParams) -> MigrationStatus:
        params = _choose_caps(params, runtime)
        end = Deadline(_STATUS_WAIT)
        with qmp.events("MIGRATION", "MIGRATION_PASS") as events:
            while True:
                answer: JsonObject = qmp.command("query-migrate")
                word = answer.get("status", "none")
                if (why := self._switch_disks(qmp, runtime, word)) is not None:
                    qmp.command("migrate_cancel")
                    return MigrationStatus(status=MigrationState.FAILED, error=why)
                if migration_plan.wants_switch(answer, params):
                    qmp.command("migrate-start-postcopy")
                left = end.left
                if word in {*migration_plan.ENDED, "none"} or left <= 0:
                    return migration_plan.status(add_sums(qmp, answer))
                events.wait_next(left)

    @staticmethod
    def _switch_disks(qmp: Qmp, runtime: Runtime, word: str) -> str | None:
        """Let the last blocks follow a guest that QEMU has paused for that; why it cannot go on."""
        if word == "active":
            return disk_copies.find_failure(qmp, runtime)
        if word == _PAUSED:
            try:
                disk_sending.finish(qmp, runtime)
            except errors.HypervisorError as err:
                return errors.text(err)
            qmp.command("migrate-continue", {"state": _PAUSED})
            # It takes a moment to notice, and must not be asked for the disks again.
            retry.retry_until(
                lambda: qmp.command("query-migrate").get("status") != _PAUSED or None,
                timeout=_CANCEL_TIMEOUT,
                largest=0.01,
            )
        return None

    def _report_dead(self, name: str, found: Guest | None) -> MigrationStatus:
        gone = found is not None and found.runtime.move == "out" and self._handed_over(found)
        if gone:
            return MigrationStatus(status=MigrationState.COMPLETED)
        return MigrationStatus(
            status=MigrationState.FAILED,
            error=f"QEMU of instance {name} has ended on the node that it should be moved from",
        )

    def finish(self, name: str, *, success: bool) -> None:
        """Forget the guest, or run it again."""
        found = self._store.find(name)
        if success:
            self._forget(name, found)
            return
        if found is None or found.pid is None:
            raise errors.HypervisorError(
                f"instance {name} has ended on this node, so it cannot continue here; restart it"
            )
        if found.runtime.move == "none" and not found.runtime.sent_disks:
            migration_key.drop(self._store, found.runtime)
            return
        with self._store.control(name) as qmp:
            word = self._cancel_running(qmp, name)
            if word.startswith("postcopy"):
                raise errors.HypervisorError(
                    f"instance {name} runs at its target with a part of its memory still here, so"
                    " it cannot continue here"
                )
            if not found.runtime.paused:
                resume_guest(qmp, name)
            if found.runtime.sent_disks:
                disk_sending.cancel(qmp)
        save(self._store, found.runtime, move="none", sent_disks=())
        migration_key.drop(self._store, found.runtime)

    def _forget(self, name: str, found: Guest | None) -> None:
        if found is None:
            return
        if found.pid is not None:
            if self._store.runs(found):
                raise errors.HypervisorError(
                    f"instance {name} runs on this node: it was not moved, so it is not ended"
                )
            power.end(self._store, name, found.pid)
        self._starter.remove(name)

    @staticmethod
    def _cancel_running(qmp: Qmp, name: str) -> str:
        """Cancel what is going on; QEMU's word for how it ended."""
        with qmp.events("MIGRATION") as events:
            end = Deadline(_CANCEL_TIMEOUT)
            asked = False
            while True:
                word = str(qmp.command("query-migrate").get("status", "none"))
                if word not in _MIGRATING:
                    return word
                if not asked:
                    qmp.command("migrate_cancel")
                    asked = True
                left = end.left
                if left <= 0:
                    raise errors.HypervisorError(
                        f"QEMU of instance {name} does not stop sending ({word}) within"
                        f" {_CANCEL_TIMEOUT:g} s"
                    )
                events.wait_next(min(left, 1.0))

    def _find_running(self, name: str) -> Guest:
        found = self._store.find(name)
        if found is None or not self._store.runs(found):
            raise errors.HypervisorError(f"instance {name} does not run on this node")
        return found

    def _handed_over(self, found: Guest) -> bool:
        runtime = found.runtime
        return journal.handed_over(self._store.journal(runtime.instance.name).lines(runtime.mark))


def _choose_caps(params: KvmParams, runtime: Runtime) -> KvmParams:
    return migration_plan.choose_caps(params, with_disks=bool(runtime.sent_disks))
