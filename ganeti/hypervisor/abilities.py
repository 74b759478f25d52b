"""Optional abilities of hypervisor drivers beside their contract: a small protocol for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.interface import AttachedDisk, Moment, NodeInfo
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress, MigrationStatus, NodeDisk, NodeInstance, NodeNic
from ganeti.rpc.samples import GuestCounters


@runtime_checkable
class Ballooning(Protocol):
    def balloon(self, instance: NodeInstance, memory: int) -> None:
        """Set the memory of a running guest to ``memory`` MiB."""


@runtime_checkable
class Holding(Protocol):
    """Pauses a running guest for a moment."""

    def hold(self, name: str) -> Consistency:
        """Stop its processors once all its writes are on its disks; blocks 30 s at most.

        Returns what the disks hold then. HypervisorError when it does not run, or runs on.
        """

    def release(self, name: str) -> None:
        """Let it run on. No error when it runs, or has ended."""


@runtime_checkable
class Probing(Protocol):
    """Finds out whether a guest works, without a network that both are in."""

    def agent_answers(self, name: str) -> bool:
        """Whether the guest agent answers; blocks some seconds at most."""

    def make_port_probe(self, name: str, port: int) -> AbstractContextManager[Callable[[], bool]]:
        """Make a probe: a function that tells whether the guest has accepted a TCP connection.

        Call the probe again and again: each call may begin another attempt. The first NIC of the
        guest must have ``Traits.isolated_link``.

        Raises:
            HypervisorError: it does not run, or has no such NIC.
        """


@runtime_checkable
class Hotpluggable(Protocol):
    """Changes devices of a running guest; HotplugError, and then nothing has changed.

    What is added is known by its uuid, so the same device can be removed later, also by a
    restarted node daemon and after a migration.
    """

    def check_hotplug(self, instance: NodeInstance) -> None:
        """Refuse when the guest does not run, or its machine cannot take devices now."""

    def plugged_disks(self, name: str) -> list[str] | None:
        """Uuids of the disks that a running guest has now; None when it does not run or tell."""

    def plug_disk(self, instance: NodeInstance, disk: AttachedDisk) -> None:
        """Add an assembled disk. No error when the guest has it."""

    def unplug_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        """Take a disk from the guest, which must agree; waits some seconds for that.

        No error when the guest does not have it. After this nothing has the disk open.
        """

    def plug_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        """Add a NIC, which will be number ``index``. No error when the guest has it."""

    def unplug_nic(self, instance: NodeInstance, nic: NodeNic) -> None:
        """Take a NIC from the guest, which must agree; waits some seconds for that."""

    def change_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        """Change the parameters of a NIC: only its link where that is enough, else replace it."""

    def resize_disk(self, instance: NodeInstance, disk: AttachedDisk, size: int) -> None:
        """Tell the guest that one of its disks has ``size`` MiB now."""

    def change_media(self, instance: NodeInstance) -> None:
        """Put the CD images that the parameters of the instance name into its running drives."""


@runtime_checkable
class DiskLimiting(Protocol):
    """Changes the limits of the disks of running guests."""

    def limit_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        """Keep the guest to ``max_iops`` and ``max_bandwidth`` of a disk from now on.

        Raises:
            HotplugError: the guest does not run, or does not have the disk.
        """


@runtime_checkable
class ProcessorChanging(Protocol):
    """Changes the number of processors of running guests."""

    def set_vcpus(self, instance: NodeInstance) -> None:
        """Let the guest have as many processors as the instance's backend parameters say.

        The guest must agree to lose some; waits some seconds for each. HotplugError when it has
        not got that many afterwards; ``info()`` tells how many it has.
        """


@runtime_checkable
class Migratable(Protocol):
    """Moves a running guest between two nodes that both reach its disks.

    The order of the calls:

    1. :meth:`check_migratable` and :meth:`migration_info` at the source.
    2. :meth:`accept` at the target, where the disks are assembled.
    3. :meth:`migrate` at the source, and :meth:`migration_status` there while it is active.
    4. :meth:`check_arrived` at the target, for a guest that is paused.
    5. :meth:`finish_target` and, when that succeeded, :meth:`finish_source`.

    To give up: :meth:`finish_target` without success first. When it says that the guest has taken
    over, the move is complete, and ``finish_source`` with success has to follow. When it went
    well, the target can never run the guest again, and ``finish_source`` without success returns it
    back to the source. So the guest never runs twice, whatever fails in between; while the move is
    undecided neither ``info()`` lists it. All methods but ``migrate`` may be repeated.
    """

    def check_migratable(self, instance: NodeInstance, *, live: bool = True) -> None:
        """Refuse (HypervisorError) a guest that does not run here or cannot be moved that way."""

    def migration_info(self, instance: NodeInstance, *, live: bool = True) -> JsonObject:
        """Return the facts that :meth:`accept` of the target needs; secret, never to be logged."""

    def accept(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        info: Mapping[str, object],
        address: str,
    ) -> str:
        """Wait for the guest at an IP address of this node; returns ``address:port``.

        ``info`` is that of :meth:`migration_info`, with the name of the node that sends as
        ``source``: where both ends prove who they are by certificates, nobody else is let in.
        """

    def migrate(self, instance: NodeInstance, target: str, *, live: bool) -> None:
        """Begin to send the guest to what :meth:`accept` returned; does not wait for the end.

        Without ``live`` the guest is paused meanwhile.
        """

    def migration_status(self, instance: NodeInstance) -> MigrationStatus:
        """How far it is; waits up to 2 s for the end. A source that died has failed."""

    def check_arrived(self, instance: NodeInstance) -> None:
        """Wait up to a minute until the target has all of the guest; HypervisorError if it has not.

        Asked before anything is put on record, so that the guest can still go on at the source.
        """

    def finish_source(self, instance: NodeInstance, *, success: bool, live: bool) -> None:
        """Forget a guest that was moved; or without ``success`` stop the move and run it again.

        The latter is only allowed when the target cannot run it (see above). HypervisorError when
        a guest shall be forgotten that was not moved.
        """

    def finish_target(
        self, instance: NodeInstance, info: Mapping[str, object], *, success: bool
    ) -> None:
        """Let the guest run here if it does not yet; or without ``success`` end what waits for it.

        HypervisorError when it did not arrive; without ``success`` when it has taken over.
        """


@runtime_checkable
class DiskSending(Protocol):
    """Sends the disks of a guest to the node it migrates to, before its memory.

    Between :meth:`Migratable.accept`, whose ``info`` has ``with_disks`` then, and
    :meth:`Migratable.migrate`: :meth:`receive_disks` at the target, :meth:`send_disks` at the
    source, and :meth:`disk_progress` there until all are ready. From then on the source and the
    target have the same content, but for what the guest has just written. The migration sends that
    before it ends, so it is complete only when the disks are. The source keeps its disks. To give
    up is what it is without disks.
    """

    def receive_disks(self, name: str, uuids: Sequence[DiskUuid], address: str) -> str:
        """Take the content of disks of a guest that is awaited; returns ``address:port``."""

    def send_disks(self, name: str, uuids: Sequence[DiskUuid], target: str, bandwidth: int) -> None:
        """Begin to send disks of a running guest to what :meth:`receive_disks` returned.

        At most ``bandwidth`` MiB/s in all, 0: no limit. HypervisorError when the guest does not
        run, or its disks do not fit there; then nothing is sent.
        """

    def disk_progress(self, name: str) -> list[DiskProgress]:
        """How far they are; waits up to 2 s until all are ready or one has failed."""


@runtime_checkable
class DiskConverting(Protocol):
    """Lets other disks of the node take the place of disks that a running guest has.

    :meth:`convert_disks`, then :meth:`disk_progress` until all are ready. From then on a write of
    the guest ends when both disks have it. :meth:`settle_disks` decides which ones the guest keeps.
    """

    def convert_disks(self, name: str, disks: Sequence[AttachedDisk], bandwidth: int) -> None:
        """Begin to copy disks to these ones, which have the same uuids.

        At most ``bandwidth`` MiB/s in all, 0: no limit. HypervisorError when the guest does not
        run, or its disks do not fit there; then nothing is copied.
        """

    def disk_progress(self, name: str) -> list[DiskProgress]:
        """How far they are; waits up to 2 s until all are ready or one has failed."""

    def settle_disks(self, name: str, paths: Mapping[DiskUuid, str]) -> None:
        """End the copies, so that the guest goes on with the disks that have these paths.

        It is paused for a moment. Idempotent; no error when it has ended. HypervisorError when a
        copy is not complete, so that the guest has to go on with the disks it had.
        """

    def list_conversions(self) -> list[str]:
        """Names of guests whose disks are copied and not settled."""


@runtime_checkable
class Freezing(Protocol):
    """Shows the disks of a running guest as they are at one moment, while it continues.

    Moments have names. Between two of them it is known what the guest has written, as long as
    nothing ends it, and it is asked in this order.
    """

    def freeze_disks(self, name: str, work: Path, since: str | None, until: str) -> Moment | None:
        """Freeze the moment ``until``; None when the guest does not run here.

        ``since`` is an earlier moment, or None. ``work`` is an empty directory that takes what the
        guest overwrites meanwhile, and nobody else's files. When it cannot, the disks of the moment
        cannot be read any more, and the guest continues. One moment at a time.
        """

    def thaw_disks(self, name: str, work: Path, until: str | None, *, keep: bool) -> None:
        """End a moment, or with None the one there is, if any.

        With ``keep`` a later one may be compared with it, and with no other.

        Without ``keep`` the earlier moment stays what a later one may be compared with. No error
        when the guest has ended.
        """


@runtime_checkable
class ProcessBacked(Protocol):
    """Each guest has a process of the node that ends with it."""

    def guest_process(self, name: str) -> int | None:
        """The process of a guest, None when it has ended."""


@runtime_checkable
class EndTelling(Protocol):
    """Learns in another way that guests end."""

    def watch_ends(self, on_end: Callable[[], None]) -> Callable[[], None]:
        """Call ``on_end`` whenever a guest may have ended, from a thread of its own.

        Returns how that is stopped. HypervisorError when something that it needs is missing.
        """


@runtime_checkable
class Counting(Protocol):
    """Counts what guests use."""

    def counters(self) -> dict[str, GuestCounters]:
        """Counters of the guests that run here, by name; blocks a second per guest at most.

        A guest that cannot be asked now is left out, or has only what is known without asking.
        """


@runtime_checkable
class BelowHost(Protocol):
    """Lies below the kernel of the node, which therefore sees only a part of the machine."""

    def machine(self) -> NodeInfo:
        """Memory and processors of the whole machine; HypervisorError when it does not run."""


@runtime_checkable
class PowerCycling(Protocol):
    def powercycle(self) -> None:
        """Reboot the node itself, at once."""
