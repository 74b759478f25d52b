"""The driver: guests are QEMU processes that live on their own, known by files (see runtime).

No method keeps anything between calls but caches, so a restarted node daemon continues.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor import host
from ganeti.hypervisor.interface import (
    AttachedDisk,
    ConsoleLine,
    HvParams,
    Hypervisor,
    Moment,
    NodeInfo,
    Traits,
)
from ganeti.hypervisor.kvm import (
    accel,
    console_info,
    disk_conversion,
    frozen,
    hold,
    hotplug,
    inputs,
    power,
    probing,
    qemu_process,
    runtime,
    starter,
)
from ganeti.hypervisor.kvm.counters import Counters
from ganeti.hypervisor.kvm.devices import ISOLATED_NETWORK, Drive
from ganeti.hypervisor.kvm.migration_source import MigrationSource
from ganeti.hypervisor.kvm.migration_target import MigrationTarget
from ganeti.hypervisor.kvm.params import (
    COPY_PARAMS,
    GLOBAL_PARAMS,
    HELPER_PARAMS,
    KvmParams,
    load,
)
from ganeti.model.enums import Consistency, RunState
from ganeti.model.ids import DiskUuid
from ganeti.paths import Paths
from ganeti.rpc.objects import (
    Console,
    DiskProgress,
    InstanceInfo,
    MigrationStatus,
    NodeDisk,
    NodeInstance,
    NodeNic,
)
from ganeti.rpc.samples import GuestCounters

log = logging.getLogger(__name__)

#: How the names of bitmaps begin that note what is written since a moment.
_BITMAP = "since-"


class KvmHypervisor(Hypervisor):
    """Runs guests with QEMU."""

    traits: ClassVar[Traits] = Traits(
        can_migrate=True,
        has_console=True,
        global_params=GLOBAL_PARAMS,
        needs_port=True,
        opens_addresses=True,
        seeds=True,
        limits_disks=True,
        sends_disks=True,
        converts_disks=True,
        helper_params=HELPER_PARAMS,
        copy_params=COPY_PARAMS,
        isolated_link=ISOLATED_NETWORK,
    )
    params: ClassVar[type[msgspec.Struct]] = KvmParams

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self.store = runtime.Store(paths.kvm)
        self._starter = starter.Starter(paths, self.store)
        self._counters = Counters(self.store)
        self._hotplug = hotplug.Hotplug(self.store, self._starter.scripts)
        self._migration_source = MigrationSource(self.store, self._starter)
        self._migration_target = MigrationTarget(self.store, self._starter)
        self._conversion = disk_conversion.Conversion(self.store)

    # start

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        self._starter.start(instance, disks, paused=paused)

    # stop

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        """Press the power button until the guest ends; or end QEMU, which flushes disks first."""
        host.check_instance_name(name)
        pid = self.store.pid(name)
        if pid is None:
            # Whoever stops a guest that stopped itself has taken note of that.
            self.store.forget_events(name)
        elif force:
            power.end(self.store, name, pid)
        else:
            power.press(self.store, name, pid, timeout)

    def cleanup(self, name: str) -> None:
        """Also refuses, with HypervisorError, what still runs."""
        host.check_instance_name(name)
        pid = self.store.pid(name)
        if pid is not None:
            raise errors.HypervisorError(
                f"instance {name} still runs (process {pid}); stop it before it is cleaned up"
            )
        self._starter.remove(name)

    # change

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        """Press the reset button.

        With reboot_behavior exit the process is ended and started again: QEMU could be told to take
        this one reset, but the PC firmware then resets once more by itself, which would end it.
        """
        name = instance.name
        found = self._find_running(name, "so it cannot be rebooted")
        if found.runtime.params.reboot_behavior == "exit":
            power.end(self.store, name, found.pid or 0)
            self.start(instance, disks)
            return
        with self.store.control(name) as qmp:
            qmp.command("system_reset")

    def balloon(self, instance: NodeInstance, memory: int) -> None:
        """Set the memory of a running guest to ``memory`` MiB, at most what it was started with."""
        found = self._find_running(instance.name, "so its memory cannot be changed")
        most = found.runtime.instance.backend("maxmem", memory)
        if memory > most:
            raise errors.HypervisorError(
                f"instance {instance.name} was started with {most} MiB and cannot have {memory} MiB"
                " before it is restarted"
            )
        with self.store.control(instance.name) as qmp:
            qmp.command("balloon", {"value": memory * 1024 * 1024})
        self.store.save(msgspec.structs.replace(found.runtime, memory=memory))

    def hold(self, name: str) -> Consistency:
        return hold.hold(self.store, self._find_running(name, "so it cannot be held"))

    def release(self, name: str) -> None:
        found = self.store.find(name)
        if found is not None and self.store.runs(found):
            hold.release(self.store, found)

    def _find_running(self, name: str, consequence: str) -> runtime.Guest:
        found = self.store.find(name)
        if found is None or not self.store.runs(found):
            raise errors.HypervisorError(
                f"instance {name} does not run on this node, {consequence}"
            )
        return found

    # signs of life

    def agent_answers(self, name: str) -> bool:
        return hold.agent_answers(self.store, name)

    def make_port_probe(self, name: str, port: int) -> AbstractContextManager[Callable[[], bool]]:
        return probing.make_port_probe(
            self.store, self._find_running(name, "so no port of it answers"), port
        )

    # moments

    def freeze_disks(self, name: str, work: Path, since: str | None, until: str) -> Moment | None:
        found = self.store.find(name)
        if found is None or not self.store.runs(found):
            return None
        if found.runtime.move != "none":
            raise errors.HypervisorError(f"instance {name} is being moved; try again after that")
        since = None if since is None else f"{_BITMAP}{since}"
        return frozen.begin(self.store, found, work, _BITMAP, since, f"{_BITMAP}{until}")

    def thaw_disks(self, name: str, work: Path, until: str | None, *, keep: bool) -> None:
        # without a name the bitmap stays: the next moment removes those that it does not know
        bitmap = None if until is None else f"{_BITMAP}{until}"
        found = self.store.find(name)
        if found is None or found.pid is None:
            frozen.remove_files(work)
            return
        frozen.release(self.store, found, work)
        with self.store.control(name) as qmp:
            frozen.end(qmp, found.runtime, work, drop=None if keep else bitmap)
            if keep and bitmap is not None:
                frozen.forget_bitmaps(qmp, found.runtime, _BITMAP, keep=bitmap)

    # devices

    def check_hotplug(self, instance: NodeInstance) -> None:
        self._hotplug.check(instance.name)

    def plugged_disks(self, name: str) -> list[str] | None:
        return self._hotplug.list_disks(name)

    def plug_disk(self, instance: NodeInstance, disk: AttachedDisk) -> None:
        self._hotplug.plug_disk(instance.name, _drive(disk))

    def unplug_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        self._hotplug.unplug_disk(instance.name, disk.uuid)

    def plug_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        self._hotplug.plug_nic(instance.name, index, nic)

    def unplug_nic(self, instance: NodeInstance, nic: NodeNic) -> None:
        self._hotplug.unplug_nic(instance.name, nic.uuid)

    def change_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        self._hotplug.change_nic(instance.name, index, nic)

    def resize_disk(self, instance: NodeInstance, disk: AttachedDisk, size: int) -> None:
        self._hotplug.resize_disk(instance.name, _drive(disk), size)

    def limit_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        self._hotplug.limit_disk(instance.name, disk)

    def change_media(self, instance: NodeInstance) -> None:
        self._hotplug.change_media(instance.name, load(instance.hvparams))

    def set_vcpus(self, instance: NodeInstance) -> None:
        self._hotplug.set_vcpus(instance)

    # moves

    def check_migratable(self, instance: NodeInstance, *, live: bool = True) -> None:
        self._migration_source.check(instance.name)

    def migration_info(self, instance: NodeInstance, *, live: bool = True) -> JsonObject:
        return self._migration_source.info(instance.name)

    def accept(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        info: Mapping[str, object],
        address: str,
    ) -> str:
        return self._migration_target.accept(instance, disks, info, address)

    def migrate(self, instance: NodeInstance, target: str, *, live: bool) -> None:
        self._migration_source.begin(instance.name, load(instance.hvparams), target, live=live)

    def migration_status(self, instance: NodeInstance) -> MigrationStatus:
        return self._migration_source.status(instance.name, load(instance.hvparams))

    def check_arrived(self, instance: NodeInstance) -> None:
        self._migration_target.check_arrived(instance.name)

    def finish_source(self, instance: NodeInstance, *, success: bool, live: bool) -> None:
        self._migration_source.finish(instance.name, success=success)

    def finish_target(
        self, instance: NodeInstance, info: Mapping[str, object], *, success: bool
    ) -> None:
        self._migration_target.finish(instance.name, info, success=success)

    def receive_disks(self, name: str, uuids: Sequence[DiskUuid], address: str) -> str:
        return self._migration_target.receive_disks(name, uuids, address)

    def send_disks(self, name: str, uuids: Sequence[DiskUuid], target: str, bandwidth: int) -> None:
        self._migration_source.send_disks(name, uuids, target, bandwidth)

    def disk_progress(self, name: str) -> list[DiskProgress]:
        return self._migration_source.disk_progress(name)

    def convert_disks(self, name: str, disks: Sequence[AttachedDisk], bandwidth: int) -> None:
        self._conversion.begin(name, [inputs.drive(disk) for disk in disks], bandwidth)

    def settle_disks(self, name: str, paths: Mapping[DiskUuid, str]) -> None:
        self._conversion.settle(name, paths)

    def list_conversions(self) -> list[str]:
        return self._conversion.list_open()

    # what runs

    def list_names(self) -> list[str]:
        """Also guests that shut themselves down, until they are cleaned up."""
        return [name for name, _ in self._list_running()]

    def info(self, name: str) -> InstanceInfo | None:
        found = self.store.find(name)
        return None if found is None else self._info(name, found)

    def info_all(self) -> dict[str, InstanceInfo]:
        return dict(self._list_running())

    def counters(self) -> dict[str, GuestCounters]:
        return self._counters.read()

    def guest_process(self, name: str) -> int | None:
        return self.store.pid(name)

    def _list_running(self) -> Iterator[tuple[str, InstanceInfo]]:
        for name in self.store.names():
            info = self.info(name)
            if info is not None:
                yield name, info

    def _info(self, name: str, guest: runtime.Guest) -> InstanceInfo | None:
        vcpus = guest.runtime.instance.backend("vcpus", 1)
        if guest.pid is None:
            own = guest.runtime.params.user_shutdown and self.store.shut_itself_down(name)
            return InstanceInfo(memory=0, vcpus=vcpus, state=RunState.SHUTDOWN) if own else None
        if not self.store.runs(guest):
            return None
        if guest.runtime.move == "none":
            self.store.journal(name).trim()
        return InstanceInfo(
            memory=guest.runtime.memory,
            vcpus=vcpus,
            state=RunState.RUNNING,
            time=qemu_process.cpu_seconds(guest.pid),
        )

    # the node

    def node_info(self, params: HvParams) -> NodeInfo:
        """``memory_dom0`` is what neither guests have nor anybody could get."""
        memory = host.memory()
        processors = host.processors()
        pids = (self.store.pid(name) for name in self.store.names())
        guests = sum(qemu_process.measure_resident(pid) for pid in pids if pid is not None)
        return NodeInfo(
            memory_total=memory.total,
            memory_free=memory.available,
            memory_dom0=max(0, memory.total - memory.available - guests),
            cpu_total=processors.cpus,
            cpu_nodes=processors.nodes,
            cpu_sockets=processors.sockets,
            hv_version=self._version(params),
        )

    def _version(self, params: HvParams) -> tuple[int, ...] | None:
        try:
            return self._starter.finder.find(load(params).kvm_path).version
        except errors.HypervisorError as err:
            # The node has its memory all the same; verify tells what is wrong.
            log.info("version of QEMU: %s", err)
            return None

    def verify(self, params: HvParams) -> str | None:
        """Looks for QEMU and for an accelerator that was demanded; starts no guest."""
        try:
            loaded = load(params)
            self._starter.finder.find(loaded.kvm_path)
        except errors.HypervisorError as err:
            return errors.text(err)
        if accel.wish(loaded) == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return (
                "the parameter accelerator demands kvm but /dev/kvm cannot be used: load the"
                " module kvm_intel or kvm_amd, switch virtualisation on in the firmware,"
                " or set accelerator to auto"
            )
        return None

    def check_params(self, params: HvParams) -> None:
        self._starter.check(load(params))

    # console

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        """The serial console before VNC, as it needs nothing but ssh."""
        return console_info.console(
            instance, node_name, load(params), self.store.socket(instance.name, "serial")
        )

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """The serial console with its log, and VNC."""
        known, name = load(params), instance.name
        lines: dict[str, ConsoleLine] = {}
        if known.serial_console:
            log_file = starter.serial_log(self.paths, name)
            lines["serial"] = ConsoleLine(socket=self.store.socket(name, "serial"), log=log_file)
        if known.vnc_bind_address:
            lines["vnc"] = console_info.vnc_line(instance, inputs.screen_address(known))
        return lines


def _drive(disk: AttachedDisk) -> Drive:
    try:
        return inputs.drive(disk)
    except errors.HypervisorError as err:
        raise errors.HotplugError(errors.text(err)) from err
