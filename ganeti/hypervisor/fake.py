"""A hypervisor that runs nothing: for trying out and testing everything around it.

A running guest is a file, see :mod:`ganeti.hypervisor.fake_guests`. How the driver is made to
misbehave is written at :mod:`ganeti.hypervisor.fake_script`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from ganeti import errors
from ganeti.base import files, typed
from ganeti.base.inotify import DirectoryWatcher
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor import host
from ganeti.hypervisor.fake_guests import Guests, create
from ganeti.hypervisor.fake_script import ANY, Method, Script
from ganeti.hypervisor.interface import (
    AttachedDisk,
    ConsoleLine,
    HvParams,
    Hypervisor,
    NodeInfo,
    Traits,
)
from ganeti.model.enums import Consistency, MigrationState, RunState
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

_COUNTED = ("disk_read", "disk_write", "disk_read_ops", "disk_write_ops", "net_receive", "net_send")


class FakeParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The only parameter, for code that asks every hypervisor how it migrates."""

    migration_mode: Annotated[
        Literal["live", "non-live"], Meta(description="How guests are moved by default")
    ] = "live"


class FakeHypervisor(Hypervisor):
    """Guests are files; never blocks but for a scripted delay."""

    traits: ClassVar[Traits] = Traits(
        can_migrate=True,
        has_console=False,
        global_params=frozenset({"migration_mode"}),
        joins_bridges=False,
        limits_disks=True,
        sends_disks=True,
        converts_disks=True,
    )
    params: ClassVar[type[msgspec.Struct]] = FakeParams

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self.script = Script(self.script_file)
        self.guests = Guests(paths.fake_hypervisor)

    @property
    def script_file(self) -> Path:
        return self.paths.conf / "fake-hypervisor.json"

    # the twelve methods

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        self._params(instance.hvparams)
        if self.script.apply_rule("start", instance.name):
            return
        path = self.guests.path(instance.name)
        memory = instance.backend("maxmem", 128)
        vcpus = instance.backend("vcpus", 1)
        files.ensure_dir(path.parent)
        if not self.guests.is_free(instance.name) or not create(path, f"0\n{memory}\n{vcpus}\n"):
            raise errors.HypervisorError(f"instance {instance.name} already runs on this node")
        self._note_disks(instance.name, disks)

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        if self.script.apply_rule("stop", name):
            return
        files.remove(self.guests.path(name))
        files.remove(self.guests.disks_file(name))
        if force:
            files.remove(self.guests.moving(name, "away"))
            files.remove(self.guests.moving(name, "awaited"))

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        if self.script.apply_rule("reboot", instance.name):
            return
        if not self.guests.path(instance.name).exists():
            raise errors.HypervisorError(
                f"instance {instance.name} does not run on this node, so it cannot be rebooted"
            )
        self._note_disks(instance.name, disks)

    def cleanup(self, name: str) -> None:
        paths = (self.guests.changes_file(name), self.guests.disks_file(name))
        if not self.script.apply_rule("cleanup", name):
            for path in paths:
                files.remove(path)

    def list_names(self) -> list[str]:
        rule = self.script.rule("list_names")
        if rule is not None and rule.lies:
            return self.script.parse_lie("list_names", rule.lie, list[str])
        return self.guests.names()

    def info(self, name: str) -> InstanceInfo | None:
        rule = self.script.rule("info", name)
        real = self.guests.read(name)
        return real if rule is None or not rule.lies else self._apply_lie(real, rule.lie)

    def info_all(self) -> dict[str, InstanceInfo]:
        self.script.rule("info_all")
        # A lie may speak of a guest that nobody ever started.
        rules = self.script.rules().get("info", {})
        names = {*self.guests.names(), *rules} - {ANY}
        read = self.info if rules else self.guests.read
        found = {name: read(name) for name in sorted(names)}
        return {name: info for name, info in found.items() if info is not None}

    def counters(self) -> dict[str, GuestCounters]:
        """Guests that do nothing use nothing but memory; no script is asked."""
        guests = {name: self.guests.read(name) for name in self.guests.names()}
        return {
            name: GuestCounters(
                cpu=0.0,
                memory=info.memory * 1024 * 1024,
                **dict.fromkeys(_COUNTED, 0),
            )
            for name, info in guests.items()
            if info is not None
        }

    def watch_ends(self, on_end: Callable[[], None]) -> Callable[[], None]:
        """A guest ends when its file is removed."""
        files.ensure_dir(self.guests.directory)
        try:
            watcher = DirectoryWatcher(self.guests.directory, lambda _name: on_end())
        except errors.InotifyError as err:
            raise errors.HypervisorError(errors.text(err)) from err
        watcher.start()
        return watcher.stop

    def node_info(self, params: HvParams) -> NodeInfo:
        rule = self.script.rule("node_info")
        memory = host.memory()
        processors = host.processors()
        guests = sum(info.memory for info in map(self.guests.read, self.guests.names()) if info)
        facts: JsonObject = {
            "memory_total": memory.total,
            "memory_free": max(0, memory.available - guests),
            "memory_dom0": memory.total - memory.available,
            "cpu_total": processors.cpus,
            "cpu_nodes": processors.nodes,
            "cpu_sockets": processors.sockets,
        }
        if rule is not None and isinstance(rule.lie, dict):
            facts.update(rule.lie)
        try:
            return NodeInfo(**facts)
        except TypeError as err:
            raise errors.HypervisorError(f"{self.script_file}: node_info: {err}") from err

    def verify(self, params: HvParams) -> str | None:
        rule = self.script.rule("verify")
        if rule is not None and rule.lies:
            return None if rule.lie is None else str(rule.lie)
        return None

    def check_params(self, params: HvParams) -> None:
        if not self.script.apply_rule("check_params", ANY):
            self._params(params)

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        self.script.rule("console", instance.name)
        return Console(
            instance=instance.name,
            kind="msg",
            message=f"instance {instance.name} is run by the fake hypervisor: it has no console",
        )

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """A line that repeats what is typed, so that consoles can be tried without a guest."""
        self.script.rule("console_lines", instance.name)
        return {"serial": ConsoleLine(argv=("cat",))}

    # memory and devices

    def balloon(self, instance: NodeInstance, memory: int) -> None:
        if self.script.apply_rule("balloon", instance.name):
            return
        self.guests.write(instance.name, memory, self.guests.find_running(instance.name).vcpus)

    def hold(self, name: str) -> Consistency:
        if not self.script.apply_rule("hold", name):
            self.guests.find_running(name)
            self._note(name, "hold -")
        return Consistency.CRASH

    def release(self, name: str) -> None:
        if not self.script.apply_rule("release", name) and self.guests.read(name) is not None:
            self._note(name, "release -")

    def check_hotplug(self, instance: NodeInstance) -> None:
        self._device("check_hotplug", instance.name)

    def plugged_disks(self, name: str) -> list[str] | None:
        rule = self.script.rule("plugged_disks", name)
        if rule is not None and rule.lies:
            return self.script.parse_lie("plugged_disks", rule.lie, list[str])
        return self.guests.disks(name)

    def plug_disk(self, instance: NodeInstance, disk: AttachedDisk) -> None:
        self._device("plug_disk", instance.name, disk.disk.uuid)
        self.guests.add_disk(instance.name, disk.disk.uuid, disk.path)

    def unplug_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        self._device("unplug_disk", instance.name, disk.uuid)
        self.guests.drop_disk(instance.name, disk.uuid)

    def plug_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        self._device("plug_nic", instance.name, nic.uuid)

    def unplug_nic(self, instance: NodeInstance, nic: NodeNic) -> None:
        self._device("unplug_nic", instance.name, nic.uuid)

    def change_nic(self, instance: NodeInstance, index: int, nic: NodeNic) -> None:
        self._device("change_nic", instance.name, nic.uuid)

    def resize_disk(self, instance: NodeInstance, disk: AttachedDisk, size: int) -> None:
        self._device("resize_disk", instance.name, f"{disk.disk.uuid} {size}")

    def limit_disk(self, instance: NodeInstance, disk: NodeDisk) -> None:
        limits = f"{disk.uuid} {disk.max_iops} {disk.max_bandwidth}"
        self._device("limit_disk", instance.name, limits)

    def change_media(self, instance: NodeInstance) -> None:
        self._device("change_media", instance.name, "-")

    def set_vcpus(self, instance: NodeInstance) -> None:
        vcpus = instance.backend("vcpus")
        self._device("set_vcpus", instance.name, str(vcpus))
        self.guests.write(instance.name, self.guests.find_running(instance.name).memory, vcpus)

    def changes(self, name: str) -> list[str]:
        """The changes of devices of a running guest, as ``plug_disk <uuid>``."""
        try:
            return files.read_text(self.guests.changes_file(name)).splitlines()
        except FileNotFoundError:
            return []

    def _device(self, method: Method, name: str, what: str = "") -> None:
        rule = self.script.rule(method, name, errors.HotplugError)
        if rule is not None and rule.lies:
            return
        if self.guests.read(name) is None:
            raise errors.HotplugError(f"instance {name} does not run on this node")
        if what:
            self._note(name, f"{method} {what}")

    def _note_disks(self, name: str, disks: Sequence[AttachedDisk]) -> None:
        files.remove(self.guests.successors_file(name))
        self.guests.note_disks(name, {item.disk.uuid: item.path for item in disks})

    def _note(self, name: str, line: str) -> None:
        with self.guests.changes_file(name).open("a", encoding="ascii") as stream:
            stream.write(f"{line}\n")

    # moves: the guest is a file that is renamed, and made again at the target

    def check_migratable(self, instance: NodeInstance, *, live: bool = True) -> None:
        if not self.script.apply_rule("check_migratable", instance.name):
            self.guests.find_running(instance.name)

    def migration_info(self, instance: NodeInstance, *, live: bool = True) -> JsonObject:
        rule = self.script.rule("migration_info", instance.name)
        if rule is not None and rule.lies:
            return self.script.parse_lie("migration_info", rule.lie, JsonObject)
        found = self.guests.find_running(instance.name)
        return {"memory": found.memory, "vcpus": found.vcpus}

    def accept(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        info: Mapping[str, Any],
        address: str,
    ) -> str:
        rule = self.script.rule("accept", instance.name)
        if rule is not None and rule.lies:
            return str(rule.lie)
        path = self.guests.moving(instance.name, "awaited")
        files.ensure_dir(path.parent)
        text = f"0\n{int(info['memory'])}\n{int(info['vcpus'])}\n"
        if not self.guests.is_free(instance.name) or not create(path, text):
            raise errors.HypervisorError(f"instance {instance.name} already runs on this node")
        self._note_disks(instance.name, disks)
        return f"{address}:1"

    def migrate(self, instance: NodeInstance, target: str, *, live: bool) -> None:
        if self.script.apply_rule("migrate", instance.name):
            return
        self.guests.find_running(instance.name)
        self.guests.copy_disks(instance.name)
        os.rename(self.guests.path(instance.name), self.guests.moving(instance.name, "away"))

    def migration_status(self, instance: NodeInstance) -> MigrationStatus:
        """Complete as soon as it has begun; a script may say else."""
        rule = self.script.rule("migration_status", instance.name)
        away = self.guests.moving(instance.name, "away").exists()
        status = MigrationStatus(
            status=MigrationState.COMPLETED if away else MigrationState.FAILED,
            transferred_ram=1 << 20,
            total_ram=1 << 20,
            error=None if away else "no move of it was begun",
        )
        if rule is None or not rule.lies:
            return status
        facts = self.script.apply_lie("migration_status", msgspec.structs.asdict(status), rule.lie)
        return self.script.parse_lie("migration_status", facts, MigrationStatus)

    def check_arrived(self, instance: NodeInstance) -> None:
        name = instance.name
        if not self.script.apply_rule("check_arrived", name) and not (
            self.guests.moving(name, "awaited").exists() or self.guests.read(name) is not None
        ):
            raise errors.HypervisorError(f"instance {name} did not arrive here")

    def finish_source(self, instance: NodeInstance, *, success: bool, live: bool) -> None:
        name = instance.name
        if self.script.apply_rule("finish_source", name):
            return
        if success and self.guests.read(name) is not None:
            raise errors.HypervisorError(f"instance {name} runs here: it was not moved")
        files.remove(self.guests.sending_file(name))
        if success:
            files.remove(self.guests.moving(name, "away"))
            files.remove(self.guests.disks_file(name))
        else:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.guests.moving(name, "away"), self.guests.path(name))

    def receive_disks(self, name: str, uuids: Sequence[DiskUuid], address: str) -> str:
        if not self.script.apply_rule("receive_disks", name) and not (
            self.guests.moving(name, "awaited").exists()
        ):
            raise errors.HypervisorError(f"instance {name} is not awaited on this node")
        return str(self.guests.disks_file(name))

    def send_disks(self, name: str, uuids: Sequence[DiskUuid], target: str, bandwidth: int) -> None:
        if not self.script.apply_rule("send_disks", name):
            self.guests.find_running(name)
            self.guests.send_disks(name, uuids, target)

    def disk_progress(self, name: str) -> list[DiskProgress]:
        """Complete as soon as it has begun; a script may say else."""
        rule = self.script.rule("disk_progress", name)
        if rule is not None and rule.lies:
            return self.script.parse_lie("disk_progress", rule.lie, list[DiskProgress])
        self.guests.find_running(name)
        return [
            DiskProgress(uuid=DiskUuid(uuid), done=size, left=0, ready=True)
            for uuid, size in self.guests.copy_disks(name)
        ]

    def convert_disks(self, name: str, disks: Sequence[AttachedDisk], bandwidth: int) -> None:
        if not self.script.apply_rule("convert_disks", name):
            self.guests.find_running(name)
            self.guests.convert_disks(name, {item.disk.uuid: item.path for item in disks})

    def settle_disks(self, name: str, paths: Mapping[DiskUuid, str]) -> None:
        if not self.script.apply_rule("settle_disks", name):
            self.guests.settle_disks(name, paths)

    def list_conversions(self) -> list[str]:
        self.script.rule("list_conversions")
        return [name for name in self.guests.names() if self.guests.successors(name)]

    def finish_target(
        self, instance: NodeInstance, info: Mapping[str, object], *, success: bool
    ) -> None:
        name = instance.name
        if self.script.apply_rule("finish_target", name):
            return
        runs = self.guests.read(name) is not None
        if runs and not success:
            raise errors.HypervisorError(f"instance {name} has taken over: it runs here")
        if not success:
            files.remove(self.guests.moving(name, "awaited"))
            files.remove(self.guests.disks_file(name))
        elif not runs:
            try:
                os.rename(self.guests.moving(name, "awaited"), self.guests.path(name))
            except FileNotFoundError as err:
                raise errors.HypervisorError(f"instance {name} did not arrive here") from err

    @staticmethod
    def _params(params: HvParams) -> None:
        try:
            typed.convert(params, FakeParams)
        except msgspec.ValidationError as err:
            raise errors.HypervisorError(f"parameter of the fake hypervisor: {err}") from err

    def _apply_lie(self, real: InstanceInfo | None, lie: object) -> InstanceInfo | None:
        if lie is None:
            return None
        facts: JsonObject = {"memory": 0, "vcpus": 0, "state": RunState.RUNNING, "time": 0.0}
        if real is not None:
            facts = msgspec.structs.asdict(real)
        return self.script.parse_lie(
            "info", self.script.apply_lie("info", facts, lie), InstanceInfo
        )
