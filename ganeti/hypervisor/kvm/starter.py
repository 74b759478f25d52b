"""Starting QEMU for a guest, fresh or for one that comes from another node."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import SYSTEM
from ganeti.hypervisor import host, seed_disk, systemd_scope
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import (
    accel,
    argv,
    binary,
    firmware,
    inputs,
    launch,
    network,
    pinning,
    power,
    qemu_process,
    runtime,
    setup,
    uids,
)
from ganeti.hypervisor.kvm.devices import Processor
from ganeti.hypervisor.kvm.params import KvmParams, load
from ganeti.hypervisor.kvm.rules import problems
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arrival:
    """The parts of a guest from another node that must stay as they were."""

    machine: str
    accelerator: accel.Accelerator
    places: Mapping[str, str]
    #: MiB, as a balloon left it
    memory: int
    #: that were added since it was started
    processors: tuple[Processor, ...] = ()


@dataclass(frozen=True)
class _Start:
    """One start: the request, and the facts about this node that it needs."""

    instance: NodeInstance
    disks: Sequence[AttachedDisk]
    params: KvmParams
    node: argv.Node
    user: str
    paused: bool
    arrival: Arrival | None


def qemu_log(paths: Paths, name: str) -> Path:
    """Messages of QEMU since the last start of a guest."""
    return paths.kvm_log / f"{name}-qemu.log"


class Starter:
    """Starts and takes back; keeps nothing but caches of what the node has."""

    def __init__(self, paths: Paths, store: runtime.Store) -> None:
        self._paths = paths
        self._store = store
        self.scripts = network.Scripts(paths.conf)
        self.finder = binary.Finder(paths.kvm / "qemu.json")
        self._chooser = accel.Chooser(paths.kvm / "accel.json")

    def start(
        self,
        instance: NodeInstance,
        disks: Sequence[AttachedDisk],
        *,
        paused: bool = False,
        arrival: Arrival | None = None,
    ) -> None:
        """Start QEMU; 0.05 s, 2 s more when the accelerator has to be found out first.

        Raises:
            HypervisorError: it runs already, or cannot be started; then nothing is left.
        """
        name = instance.name
        params = load(instance.hvparams)
        self._refuse_second(name)
        self.check(params)
        node = self._node(params, arrival)
        self._store.prepare()
        self.remove(name)
        cards: list[network.OpenCard] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self._abort, instance, cards)
            with contextlib.ExitStack() as held:
                user = held.enter_context(uids.user_of(params, self._paths))
                held.callback(network.close, cards)
                network.open_cards(
                    instance, params, self.scripts, cards, arriving=arrival is not None
                )
                self._launch(_Start(instance, disks, params, node, user, paused, arrival), cards)
            undo.pop_all()
        log.info("instance %s has process %s", name, self._store.pid(name))

    def _refuse_second(self, name: str) -> None:
        host.check_instance_name(name)
        pid = self._store.pid(name)
        if pid is None:
            lost = qemu_process.find(self._store.pid_file(name))
            if lost is not None:
                raise errors.HypervisorError(
                    f"instance {name} already runs on this node as process {lost}, although"
                    f" {self._store.pid_file(name)} is gone; end that process first"
                )
            return
        found = self._store.find(name)
        if found is not None and not self._store.runs(found):
            raise errors.HypervisorError(
                f"process {pid} of instance {name} is what a migration left on this node;"
                " run gnt-instance migrate --cleanup, or shut the instance down first"
            )
        raise errors.HypervisorError(f"instance {name} already runs on this node (process {pid})")

    def _node(self, params: KvmParams, arrival: Arrival | None) -> argv.Node:
        qemu = self.finder.find(params.kvm_path)
        machine = arrival.machine if arrival else params.machine_version
        binary.check_machine(qemu, machine)
        if arrival:
            accelerator = arrival.accelerator
        else:
            # A probe that found out why guests will be slow has logged that.
            accelerator = self._chooser.choose(params, qemu).accelerator
        return argv.Node(
            qemu=qemu.path,
            accelerator=accelerator,
            default_machine=qemu.default_machine,
            version=qemu.version,
            aliases=qemu.aliases,
            sandbox=qemu.sandbox,
        )

    def _launch(self, start: _Start, cards: Sequence[network.OpenCard]) -> None:
        name, params, arrival = start.instance.name, start.params, start.arrival
        guest = inputs.guest(start.instance, start.disks, params, cards)
        held = setup.is_needed(params, guest.drives)
        machine = arrival.machine if arrival else argv.machine(params, start.node)
        guest = argv.replace_late_values(
            guest,
            paused=start.paused or held,
            user=start.user,
            machine=machine,
            incoming=arrival is not None,
            processors=arrival.processors if arrival else (),
        )
        masks = pinning.plan(params.cpu_mask, guest.vcpus)
        places = argv.places(params, machine, arrival.places if arrival else None)
        command = argv.build(guest, start.node, self._files(start), places)
        # Known before it runs, so that no crash of ours can leave an unknown guest.
        self._store.save(
            runtime.Runtime(
                instance=start.instance,
                argv=tuple(command),
                accelerator=start.node.accelerator,
                cards=tuple(card.card for card in cards),
                started=SYSTEM.now(),
                memory=arrival.memory if arrival else guest.memory,
                machine=machine,
                places=places.occupied,
                drives=guest.drives,
                processors=guest.processors,
                move="in" if arrival else "none",
                user=start.user,
            )
        )
        self._note(name, start, cards)
        log_file = qemu_log(self._paths, name)
        files.remove(log_file)
        warnings = launch.launch(
            [*systemd_scope.enter(self._paths, name), *command],
            directory=self._store.ctrl,
            log=log_file,
            pid_file=self._store.pid_file(name),
            fds=[fd for card in cards for fd in (*card.nic.fds, *card.nic.vhost_fds)],
        )
        if warnings:
            log.warning("QEMU of instance %s says: %s", name, warnings)
        setup.pin(self._store.pid(name), masks)
        if held:
            with self._store.control(name) as qmp:
                setup.finish(qmp, params, masks, guest.drives)
                if not start.paused and arrival is None:
                    qmp.command("cont")

    def _files(self, start: _Start) -> argv.Files:
        name, params = start.instance.name, start.params
        files.ensure_dir(self._paths.kvm_log)
        images = firmware.find(params)
        return argv.Files(
            pid_file=str(self._store.pid_file(name)),
            qmp=runtime.socket_name(name, "qmp"),
            serial=runtime.socket_name(name, "serial"),
            serial_log=str(serial_log(self._paths, name)),
            agent=runtime.socket_name(name, "qga"),
            log=str(qemu_log(self._paths, name)),
            events=str(self._store.events(name)),
            chroot=str(self._store.chroot(name)) if params.use_chroot else "",
            spice_cert=str(self._paths.spice_cert),
            spice_ca=str(self._paths.spice_ca_cert),
            uefi_code=images.code if images else "",
            seed=str(self._store.seed(name)) if start.instance.seed else "",
            uefi_variables=(
                firmware.variables(images, self._paths, start.instance.uuid) if images else ""
            ),
        )

    def _note(self, name: str, start: _Start, cards: Sequence[network.OpenCard]) -> None:
        """The small files beside the main one."""
        self._store.note_cards(name, [card.card for card in cards])
        if start.instance.seed:
            seed_disk.write(self._store.seed(name), start.instance.seed)
        if start.user:
            self._store.uid_file(name).write_text(start.user + "\n")
        if start.params.use_chroot:
            files.ensure_dir(self._store.chroot(name), 0o755)
        journal = self._store.events(name)
        Path(f"{journal}.in").write_text('{"execute":"qmp_capabilities"}\n', encoding="ascii")
        Path(f"{journal}.out").write_bytes(b"")

    def _abort(self, instance: NodeInstance, cards: Sequence[network.OpenCard]) -> None:
        """Take back a start that failed."""
        name = instance.name
        pid = self._store.pid(name)
        if pid is not None:
            power.kill(self._store, name, pid)
        self._detach(instance, [card.card for card in cards])
        self._store.clear(name)

    def check(self, params: KvmParams) -> None:
        """Refuse parameters that cannot go together, or need what is missing on the node.

        Raises:
            HypervisorError: all of the problems.
        """
        found = [*problems(params), *inputs.find_missing_files(params, self._paths)]
        if found:
            raise errors.HypervisorError("; ".join(found))
        firmware.find(params)
        if params.security_model == "user":
            uids.uid_of(params.security_domain)
        binary.locate(params.kvm_path)

    def explain_end(self, name: str) -> str:
        """QEMU's last message in brackets, for an error; empty when it printed nothing."""
        words = launch.read_last_messages(qemu_log(self._paths, name)).splitlines()
        return f" ({words[-1]})" if words else ""

    def attach_routed(self, record: runtime.Runtime) -> None:
        """Attach what waited for the arrival of a guest; HypervisorError, though it runs."""
        try:
            network.attach_routed(record.instance, record.cards, self.scripts)
        except errors.HypervisorError as err:
            raise errors.HypervisorError(
                f"instance {record.instance.name} runs here, but {errors.text(err)}"
            ) from err

    def remove(self, name: str) -> None:
        """Remove what a guest that does not run left."""
        found = self._store.find(name)
        if found is not None:
            self._detach(found.runtime.instance, found.runtime.cards)
        self._store.clear(name)

    def _detach(self, instance: NodeInstance, cards: Sequence[runtime.Card]) -> None:
        for index, card in enumerate(cards):
            network.detach(instance, index, instance.nics[index], card, self.scripts)


def serial_log(where: Paths, name: str) -> Path:
    """The file to which QEMU writes what a guest prints on its serial console."""
    return where.kvm_log / f"{name}-serial.log"
