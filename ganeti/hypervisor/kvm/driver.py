"""The driver: guests are QEMU processes that live on their own, known by files (see runtime).

No method keeps anything between calls but caches, so a restarted node daemon goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files, process
from ganeti.hypervisor import host
from ganeti.hypervisor.interface import (
    AttachedDisk,
    HvParams,
    Hypervisor,
    NodeInfo,
    Traits,
)
from ganeti.hypervisor.kvm import (
    accel,
    argv,
    binary,
    console_info,
    inputs,
    launch,
    network,
    pinning,
    qemu_process,
    runtime,
    setup,
)
from ganeti.hypervisor.kvm.params import GLOBAL_PARAMS, KvmParams, load
from ganeti.hypervisor.kvm.rules import problems
from ganeti.model.names import RunState
from ganeti.paths import Paths
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

log = logging.getLogger(__name__)

#: Seconds after which the power button is pressed again: a guest that boots does not see it.
_PRESS_AGAIN = 5.0
#: Seconds for QEMU to end by itself when told to, and to die when killed.
_QUIT_TIMEOUT = 5.0
_KILL_TIMEOUT = 10.0
#: Seconds for an answer on the control socket.
_QMP_TIMEOUT = 10.0


class KvmHypervisor(Hypervisor):
    """Runs guests with QEMU."""

    traits: ClassVar[Traits] = Traits(
        has_console=True, global_params=GLOBAL_PARAMS, needs_port=True
    )
    params: ClassVar[type[msgspec.Struct]] = KvmParams

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths)
        self.store = runtime.Store(paths.kvm)
        self._finder = binary.Finder(paths.kvm / "qemu.json")
        self._chooser = accel.Chooser(paths.kvm / "accel.json")

    # start

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        """Start a guest; 0.05 s, 2 s more when the accelerator has to be found out first."""
        name = instance.name
        host.check_instance_name(name)
        params = load(instance.hvparams)
        pid = self.store.pid(name)
        if pid is not None:
            raise errors.HypervisorError(
                f"instance {name} already runs on this node (process {pid})"
            )
        self._check(params)
        qemu = self._finder.find(params.kvm_path)
        binary.check_machine(qemu, params.machine_version)
        # A probe that found out why guests will be slow has logged that.
        choice = self._chooser.choose(params, qemu)
        self.store.prepare()
        self._remove(name)
        node = argv.Node(
            qemu=qemu.path,
            accelerator=choice.accelerator,
            default_machine=qemu.default_machine,
            version=qemu.version,
        )
        cards: list[network.OpenCard] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self._abort, name, cards)
            with contextlib.ExitStack() as descriptors:
                descriptors.callback(network.close, cards)
                network.open_cards(instance, params, self.paths.conf / "kvm-vif-bridge", cards)
                self._launch(instance, disks, params, node, cards, paused=paused)
            undo.pop_all()
        log.info("instance %s runs as process %s", name, self.store.pid(name))

    def _launch(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        params: KvmParams,
        node: argv.Node,
        cards: Sequence[network.OpenCard],
        *,
        paused: bool,
    ) -> None:
        name = instance.name
        held = setup.is_needed(params)
        guest = inputs.guest(instance, disks, params, cards, paused=paused or held)
        masks = pinning.plan(params.cpu_mask, guest.vcpus)
        command = argv.build(guest, node, self._files(name, params))
        # Known before it runs, so that no crash of ours can leave an unknown guest.
        self.store.save(
            runtime.Runtime(
                instance=instance,
                argv=tuple(command),
                accelerator=node.accelerator,
                cards=tuple(card.card for card in cards),
                started=time.time(),
                memory=guest.memory,
            )
        )
        self._note(name, params, cards)
        warnings = launch.launch(
            command,
            directory=self.store.ctrl,
            pid_file=self.store.pid_file(name),
            fds=[fd for card in cards for fd in (*card.nic.fds, *card.nic.vhost_fds)],
        )
        if warnings:
            log.warning("QEMU of instance %s says: %s", name, warnings)
        setup.pin(self.store.pid(name), masks)
        if held:
            with self._qmp(name) as qmp:
                setup.finish(qmp, params, masks)
                if not paused:
                    qmp.command("cont")

    def _files(self, name: str, params: KvmParams) -> argv.Files:
        files.ensure_dir(self.paths.kvm_log)
        return argv.Files(
            pid_file=str(self.store.pid_file(name)),
            qmp=runtime.socket_name(name, "qmp"),
            serial=runtime.socket_name(name, "serial"),
            serial_log=str(self.paths.kvm_log / f"{name}-serial.log"),
            agent=runtime.socket_name(name, "qga"),
            events=str(self.store.events(name)) if params.user_shutdown else "",
            chroot=str(self.store.chroot(name)) if params.use_chroot else "",
            spice_cert=str(self.paths.data / "spice.pem"),
            spice_ca=str(self.paths.data / "spice-ca.pem"),
        )

    def _note(self, name: str, params: KvmParams, cards: Sequence[network.OpenCard]) -> None:
        """The small files beside the main one."""
        for index, card in enumerate(cards):
            if card.card.tap is not None:
                files.ensure_dir(self.store.nic_dir(name))
                (self.store.nic_dir(name) / str(index)).write_text(card.card.tap + "\n")
        if params.security_model == "user":
            self.store.uid_file(name).write_text(params.security_domain + "\n")
        if params.use_chroot:
            files.ensure_dir(self.store.chroot(name), 0o755)
        if params.user_shutdown:
            journal = self.store.events(name)
            Path(f"{journal}.in").write_text('{"execute":"qmp_capabilities"}\n', encoding="ascii")
            Path(f"{journal}.out").write_bytes(b"")

    def _abort(self, name: str, cards: Sequence[network.OpenCard]) -> None:
        """Take back a start that failed."""
        pid = self.store.pid(name)
        if pid is not None:
            qemu_process.kill(pid, self.store.pid_file(name), _KILL_TIMEOUT)
        network.detach([card.card for card in cards])
        self.store.clear(name)

    # stop

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        """Press the power button until the guest ends; or end QEMU, which flushes disks first."""
        host.check_instance_name(name)
        pid = self.store.pid(name)
        if pid is None:
            # Whoever stops a guest that stopped itself has taken note of that.
            self.store.forget_events(name)
        elif force:
            self._end(name, pid)
        else:
            self._press(name, pid, timeout)

    def _press(self, name: str, pid: int, timeout: float) -> None:
        end = time.monotonic() + timeout
        while True:
            if not self._tell(name, pid, "system_powerdown"):
                return
            left = end - time.monotonic()
            if process.wait_exit(pid, max(0.0, min(left, _PRESS_AGAIN))) or left <= _PRESS_AGAIN:
                return

    def _end(self, name: str, pid: int) -> None:
        try:
            self._tell(name, pid, "quit", _QUIT_TIMEOUT)
            if process.wait_exit(pid, _QUIT_TIMEOUT):
                return
            log.warning("QEMU of instance %s does not end; it is killed", name)
        except errors.HypervisorError as err:
            log.warning("QEMU of instance %s is killed: %s", name, err)
        if not qemu_process.kill(pid, self.store.pid_file(name), _KILL_TIMEOUT):
            raise errors.HypervisorError(
                f"QEMU of instance {name} (process {pid}) does not die within {_KILL_TIMEOUT:g} s;"
                " it probably waits for a disk that does not answer"
            )

    def _tell(
        self, name: str, pid: int, command: str, timeout: float = _QMP_TIMEOUT
    ) -> bool:
        """Give an order; False when QEMU ended meanwhile.

        Raises:
            HypervisorError: it runs but cannot be told.
        """
        try:
            with self._qmp(name, timeout) as qmp:
                qmp.command(command)
        except errors.HypervisorError:
            if process.wait_exit(pid, 0):
                return False
            raise
        return True

    def cleanup(self, name: str) -> None:
        """Also refuses, with HypervisorError, what still runs."""
        host.check_instance_name(name)
        pid = self.store.pid(name)
        if pid is not None:
            raise errors.HypervisorError(
                f"instance {name} still runs (process {pid}); stop it before it is cleaned up"
            )
        self._remove(name)

    def _remove(self, name: str) -> None:
        found = self.store.find(name)
        if found is not None:
            network.detach(found.runtime.cards)
        self.store.clear(name)

    # change

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        """Press the reset button.

        With reboot_behavior exit the process is ended and started anew: QEMU could be told to take
        this one reset, but the PC firmware then resets once more by itself, which would end it.
        """
        name = instance.name
        found = self.store.find(name)
        if found is None or found.pid is None:
            raise errors.HypervisorError(
                f"instance {name} does not run on this node, so it cannot be rebooted"
            )
        if load(found.runtime.instance.hvparams).reboot_behavior == "exit":
            self._end(name, found.pid)
            self.start(instance, disks)
            return
        with self._qmp(name) as qmp:
            qmp.command("system_reset")

    def balloon(self, instance: NodeInstance, memory: int) -> None:
        """Give a running guest ``memory`` MiB, at most what it was started with."""
        found = self.store.find(instance.name)
        if found is None or found.pid is None:
            raise errors.HypervisorError(f"instance {instance.name} does not run on this node")
        with self._qmp(instance.name) as qmp:
            qmp.command("balloon", {"value": memory * 1024 * 1024})
        self.store.save(msgspec.structs.replace(found.runtime, memory=memory))

    # what runs

    def list_names(self) -> list[str]:
        """Also guests that shut themselves down, until they are cleaned up."""
        return [name for name, _ in self._running()]

    def info(self, name: str) -> InstanceInfo | None:
        found = self.store.find(name)
        return None if found is None else self._info(name, found)

    def info_all(self) -> dict[str, InstanceInfo]:
        return dict(self._running())

    def _running(self) -> Iterator[tuple[str, InstanceInfo]]:
        for name in self.store.names():
            info = self.info(name)
            if info is not None:
                yield name, info

    def _info(self, name: str, guest: runtime.Guest) -> InstanceInfo | None:
        vcpus = int(guest.runtime.instance.beparams.get("vcpus", 1))
        if guest.pid is not None:
            return InstanceInfo(
                memory=guest.runtime.memory,
                vcpus=vcpus,
                state=RunState.RUNNING,
                time=qemu_process.cpu_seconds(guest.pid),
            )
        if self.store.shut_itself_down(name):
            return InstanceInfo(memory=0, vcpus=vcpus, state=RunState.SHUTDOWN)
        return None

    # the node

    def node_info(self, params: HvParams) -> NodeInfo:
        """``memory_dom0`` is what neither guests have nor anybody could get."""
        memory = host.memory()
        processors = host.processors()
        pids = (self.store.pid(name) for name in self.store.names())
        guests = sum(qemu_process.resident(pid) for pid in pids if pid is not None)
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
            return self._finder.find(load(params).kvm_path).version
        except errors.HypervisorError as err:
            # The node has its memory all the same; verify tells what is wrong.
            log.info("version of QEMU: %s", err)
            return None

    def verify(self, params: HvParams) -> str | None:
        """Looks for QEMU and for an accelerator that was demanded; starts no guest."""
        try:
            loaded = load(params)
            self._finder.find(loaded.kvm_path)
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
        self._check(load(params))

    def _check(self, params: KvmParams) -> None:
        found = [*problems(params), *inputs.missing_files(params, self.paths)]
        if found:
            raise errors.HypervisorError("; ".join(found))
        binary.locate(params.kvm_path)

    # console

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        """The serial console before VNC, as it needs nothing but ssh."""
        return console_info.console(
            instance, node_name, load(params), self.store.socket(instance.name, "serial")
        )

    def _qmp(self, name: str, timeout: float = _QMP_TIMEOUT) -> Qmp:
        # Imported here, as it is slow and most calls do not need it.
        from ganeti.hypervisor.kvm.qmp import Qmp

        return Qmp.connect(self.store.socket(name, "qmp"), timeout)
