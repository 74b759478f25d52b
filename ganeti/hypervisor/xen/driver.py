"""The hypervisors xen-pvm and xen-hvm: guests are domains of ``xl``.

What runs is asked of Xen itself, so a restarted node daemon finds everything. The configuration of
each guest is ``/etc/xen/<instance>``; an HVM guest's holds its VNC password.

Domains are preserved when they power off, so that a guest that ended by itself can be told from
one that never ran; the next stop or start of the instance removes the remains.
"""

from __future__ import annotations

import logging
import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files, retry
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor import host, systemd_scope
from ganeti.hypervisor.interface import (
    AttachedDisk,
    ConsoleLine,
    HvParams,
    Hypervisor,
    NodeInfo,
)
from ganeti.hypervisor.kvm import pinning
from ganeti.hypervisor.nic_scripts import shell_facts
from ganeti.hypervisor.xen import domain_ends, xl
from ganeti.hypervisor.xen.migration import Mover
from ganeti.hypervisor.xen.params import (
    PvmParams,
    XenParams,
)
from ganeti.model.enums import Consistency, RunState
from ganeti.paths import Paths
from ganeti.rpc.objects import Console, InstanceInfo, MigrationStatus, NodeInstance

log = logging.getLogger(__name__)

#: Seconds that a guest gets to start again after a reboot.
_REBOOT_WAIT = 60.0
#: Parameters that name a program.
SCRIPTS = frozenset({"vif_script"})


class XenHypervisor(Hypervisor):
    """The common part of both kinds; both know all guests of Xen."""

    #: option for guests without drivers that obey Xen: they get the ACPI button
    _fallback: ClassVar[tuple[str, ...]] = ()

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self._mover = Mover(paths)

    @abstractmethod
    def _load(self, values: HvParams) -> XenParams:
        """Typed parameters; HypervisorError for wrong ones."""

    @abstractmethod
    def _text(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> str:
        """The configuration file of a guest."""

    @abstractmethod
    def _node_files(self, params: XenParams) -> list[tuple[str, str]]:
        """Names and values of parameters that must be files on the node."""

    # life

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        text = self._text(instance, disks)
        domain = self._find(instance.name)
        if domain is not None and not domain.ended:
            raise errors.HypervisorError(f"instance {instance.name} already runs on this node")
        if domain is not None:
            self._destroy(instance.name)
        path = self._config_file(instance.name)
        files.ensure_dir(path.parent, 0o755)
        files.write_atomic(path, text, mode=0o600)
        self._write_nics(instance)
        try:
            words = ["create", *(["-p"] if paused else []), str(path)]
            xl.run(words, timeout=xl.SLOW, before=systemd_scope.enter(self.paths, instance.name))
        except errors.HypervisorError:
            # xl may have built a part of it, and hangs sometimes.
            self._destroy(instance.name)
            files.remove(path)
            raise
        log.info("instance %s runs", instance.name)

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        domain = self._find(name)
        if domain is None:
            return
        if not force and not domain.ended:
            self._shut_down(name, timeout)
            domain = self._find(name)
        if domain is not None and (force or domain.ended):
            self._destroy(name)

    def _shut_down(self, name: str, timeout: float) -> None:
        wait = ["-w"] if timeout > 0 else []
        result = xl.attempt(
            ["shutdown", *self._fallback, *wait, name], timeout=timeout if wait else xl.QUICK
        )
        if not result.ok and not result.timed_out and self._find(name) is not None:
            raise errors.HypervisorError(result.explain())

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        name = instance.name
        before = self._find(name)
        if before is None or before.ended:
            raise errors.HypervisorError(
                f"instance {name} cannot be rebooted: it does not run on this node"
            )
        xl.run(["reboot", *self._fallback, name])

        def find_begun() -> bool | None:
            now = self._find(name)
            return True if now is not None and now.id != before.id else None

        # Xen notifies only callers that registered before; a new domain has a new number.
        if not retry.retry_until(find_begun, timeout=_REBOOT_WAIT, first=0.2, largest=1.0):
            raise errors.HypervisorError(
                f"instance {name} did not start again within {_REBOOT_WAIT:.0f} s of its reboot;"
                " gnt-instance reboot --type=hard ends it and starts it again"
            )

    def cleanup(self, name: str) -> None:
        domain = self._find(name)
        if domain is not None and domain.ended:
            self._destroy(name)
            domain = None
        if domain is None:
            files.remove(self._config_file(name))
            shutil.rmtree(self._nic_directory(name), ignore_errors=True)

    def _nic_directory(self, name: str) -> Path:
        return self.paths.run / "xen-hypervisor" / "nic" / name

    def _write_nics(self, instance: NodeInstance) -> None:
        """Tell ``vif-ganeti``, a network script of xl, what the NICs of a guest are."""
        directory = self._nic_directory(instance.name)
        shutil.rmtree(directory, ignore_errors=True)
        files.ensure_dir(directory)
        for index, nic in enumerate(instance.nics):
            files.write_atomic(directory / str(index), shell_facts(instance, index, nic))

    def _destroy(self, name: str) -> None:
        """End a domain at once; no error when there is none."""
        try:
            xl.run(["destroy", name], timeout=xl.SLOW)
        except errors.HypervisorError as err:
            if not xl.is_unknown(err):
                raise

    # what runs

    def list_names(self) -> list[str]:
        return sorted(domain.name for domain in self._domains())

    def info(self, name: str) -> InstanceInfo | None:
        domain = self._find(name)
        return None if domain is None else _info(domain)

    def info_all(self) -> dict[str, InstanceInfo]:
        return {domain.name: _info(domain) for domain in self._domains()}

    def _domains(self) -> list[xl.Domain]:
        """Domains of guests; not those that are just being moved."""
        return [
            domain
            for domain in xl.parse_list(xl.run(["list"]))
            if domain.name != xl.DOM0 and not xl.is_moving(domain.name)
        ]

    def _find(self, name: str) -> xl.Domain | None:
        host.check_instance_name(name)
        return next((domain for domain in self._domains() if domain.name == name), None)

    # the node

    def node_info(self, params: HvParams) -> NodeInfo:
        return self.machine()

    def machine(self) -> NodeInfo:
        domains = xl.parse_list(xl.run(["list"]))
        return xl.node_info(xl.parse_info(xl.run(["info"])), domains)

    def verify(self, params: HvParams) -> str | None:
        try:
            self.node_info(params)
        except errors.HypervisorError as err:
            return f"Xen cannot be used: {errors.text(err)}"
        return None

    def check_params(self, params: HvParams) -> None:
        known = self._load(params)
        pinning.parse(known.cpu_mask)
        for name, value in self._node_files(known):
            if not value.startswith("/") or not Path(value).is_file():
                raise errors.HypervisorError(f"{name}: {value} is not a file on this node")

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        return Console(
            instance=instance.name,
            kind="ssh",
            host=node_name,
            user="root",
            command=[xl.PROGRAM, "console", instance.name],
        )

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """The terminal of ``xl console``."""
        return {"serial": ConsoleLine(argv=(xl.PROGRAM, "console", instance.name))}

    # abilities

    def watch_ends(self, on_end: Callable[[], None]) -> Callable[[], None]:
        return domain_ends.watch(on_end)

    def balloon(self, instance: NodeInstance, memory: int) -> None:
        xl.run(["mem-set", instance.name, str(memory)])

    def hold(self, name: str) -> Consistency:
        xl.run(["pause", name])
        return Consistency.CRASH

    def release(self, name: str) -> None:
        domain = self._find(name)
        if domain is not None and domain.paused:
            xl.run(["unpause", name])

    def powercycle(self) -> None:
        """Xen's key R reboots the machine at once."""
        xl.run(["debug-keys", "R"])

    # moves

    def check_migratable(self, instance: NodeInstance, *, live: bool = True) -> None:
        """A PV guest only continues meanwhile on a Xen that can follow what it writes."""
        domain = self._find(instance.name)
        if domain is None or domain.ended:
            raise errors.HypervisorError(f"instance {instance.name} does not run on this node")
        if live and self._needs_shadow(instance) and not self._has_shadow():
            raise errors.HypervisorError(
                f"instance {instance.name} is a PV guest, and this Xen was built without shadow"
                " paging (as Debian's is): it cannot run while it is migrated. Use --non-live,"
                " which pauses it, or make it PVH (-H guest_type=pvh)"
            )

    @staticmethod
    def _has_shadow() -> bool:
        return xl.has_shadow(xl.parse_info(xl.run(["info"])))

    def _needs_shadow(self, instance: NodeInstance) -> bool:
        params = self._load(instance.hvparams)
        return isinstance(params, PvmParams) and params.guest_type == "pv"

    def migration_info(self, instance: NodeInstance, *, live: bool = True) -> JsonObject:
        return {"live": live}

    def accept(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        info: Mapping[str, object],
        address: str,
    ) -> str:
        if self._find(instance.name) is not None:
            raise errors.HypervisorError(f"instance {instance.name} already runs on this node")
        port = self._load(instance.hvparams).migration_port
        config = None
        if not info.get("live", True):
            coming = msgspec.structs.replace(instance, name=instance.name + xl.INCOMING)
            config = self._text(coming, disks)
        self._write_nics(instance)
        source = str(info.get("source", ""))
        return self._mover.accept(instance.name, source, (address, port), config)

    def migrate(self, instance: NodeInstance, target: str, *, live: bool) -> None:
        self._mover.send(instance.name, target, live=live)

    def migration_status(self, instance: NodeInstance) -> MigrationStatus:
        return self._mover.status(instance.name)

    def check_arrived(self, instance: NodeInstance) -> None:
        self._mover.check_arrived(instance.name)

    def finish_source(self, instance: NodeInstance, *, success: bool, live: bool) -> None:
        if success:
            self._mover.forget_sent(instance.name)
            self.cleanup(instance.name)
        else:
            self._mover.stop(instance.name)

    def finish_target(
        self, instance: NodeInstance, info: Mapping[str, object], *, success: bool
    ) -> None:
        if success:
            self._mover.check_arrival(instance.name)
        else:
            self._mover.give_up(instance.name)

    def _config_file(self, name: str) -> Path:
        host.check_instance_name(name)
        return self.paths.under("/etc/xen") / name


def _info(domain: xl.Domain) -> InstanceInfo:
    return InstanceInfo(
        memory=domain.memory,
        vcpus=domain.vcpus,
        state=RunState.SHUTDOWN if domain.ended else RunState.RUNNING,
        time=domain.time,
    )
