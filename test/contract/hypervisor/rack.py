"""One node with one hypervisor: makes instances and disks, starts them, and clears up."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boot_sectors
import trees

from ganeti.base import process, retry
from ganeti.hypervisor import occupants
from ganeti.hypervisor.interface import AttachedDisk, Hypervisor
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

#: Hypervisors that the suite runs with -> name of the mark of their tests.
TRIED = {"fake": "", "xen-pvm": "", "kvm": "qemu", "chroot": "root", "lxc": "root"}
#: Hypervisors that need more than any machine has -> where they are tried.
ELSEWHERE = {
    "xen-hvm": "test/unit/hypervisor/test_xen_config.py: xen-pvm but for its configuration"
}
TREES = (HypervisorName.CHROOT, HypervisorName.LXC)
QEMU = shutil.which("kvm") or shutil.which("qemu-system-x86_64")


@dataclass
class Rack:
    """One node with one hypervisor."""

    name: HypervisorName
    paths: Paths
    directory: Path
    #: parameters that every instance gets
    hvparams: dict[str, Any]
    driver: Hypervisor = field(init=False)
    instances: list[NodeInstance] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.driver = self.make_driver()

    def make_driver(self) -> Hypervisor:
        """The driver as a restarted node daemon has it."""
        return HYPERVISORS.get(self.name)(self.paths)

    def instance(
        self,
        name: str = "web1.example.com",
        *,
        nics: tuple[NodeNic, ...] = (),
        port: int | None = None,
        **hvparams: Any,
    ) -> NodeInstance:
        made = NodeInstance(
            uuid=str(uuid.uuid4()),
            name=name,
            primary_node="node1",
            hypervisor=self.name,
            hvparams={**self.hvparams, **hvparams},
            beparams={"maxmem": 16, "minmem": 16, "vcpus": 1},
            osparams={"secret": "hidden"},
            nics=nics,
            network_port=port,
        )
        self.instances.append(made)
        return made

    def disks(
        self, instance: NodeInstance, guest: Callable[[Path], Path] = boot_sectors.obedient
    ) -> list[AttachedDisk]:
        path = self.directory / f"{instance.uuid}.raw"
        if self.name in TREES:
            trees.image(path, trees.DEAF if guest is boot_sectors.deaf else trees.OBEDIENT)
        else:
            guest(path)
        disk = NodeDisk(
            uuid=str(uuid.uuid4()),
            dev_type=DiskTemplate.FILE,
            logical_id=("loop", str(path)),
            iv_name="disk/0",
            size=1,
        )
        return [AttachedDisk(disk, str(path))]

    def start(
        self,
        instance: NodeInstance,
        guest: Callable[[Path], Path] = boot_sectors.obedient,
        *,
        booted: bool = True,
        more: Sequence[AttachedDisk] = (),
    ) -> list[AttachedDisk]:
        """Start, with further disks, and wait until the guest says hello."""
        disks = [*self.disks(instance, guest), *more]
        self.driver.start(instance, disks)
        if booted:
            self.wait_hello(instance)
        return disks

    def serial_log(self, instance: NodeInstance) -> str:
        path = self.paths.kvm_log / f"{instance.name}-serial.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_hello(
        self, instance: NodeInstance, times: int = 1, hello: str = boot_sectors.HELLO
    ) -> None:
        if self.name is not HypervisorName.KVM:
            return

        def has_said() -> bool | None:
            return self.serial_log(instance).count(hello) >= times or None

        assert retry.retry_until(has_said, timeout=30, largest=0.02), "the guest did not boot"

    def crash(self, name: str) -> None:
        """End a guest behind the driver's back; returns when it is gone."""
        if self.name is HypervisorName.FAKE:
            (self.paths.fake_hypervisor / name).unlink()
            return
        if self.name is HypervisorName.XEN_PVM:
            (self.directory / "xen" / "domains" / name).unlink()
            return
        if self.name is HypervisorName.CHROOT:
            point = self.paths.chroot / name
            occupants.kill(point, 10)
            process.run_checked(["umount", str(point)], timeout=10)
            return
        if self.name is HypervisorName.LXC:
            words = ["lxc-info", "-P", str(self.paths.lxc), "-n", name, "-p", "-H"]
            pid = int(process.run_checked(words, timeout=10).stdout)
            os.kill(pid, signal.SIGKILL)
            words = ["lxc-wait", "-P", str(self.paths.lxc), "-n", name, "-s", "STOPPED", "-t", "9"]
            process.run_checked(words, timeout=10)
            return
        pid = int((self.paths.kvm / "pid" / name).read_text())
        os.kill(pid, signal.SIGKILL)
        assert process.wait_exit(pid, 10)

    @contextlib.contextmanager
    def freeze(self, name: str) -> Iterator[None]:
        """QEMU of a guest hangs meanwhile."""
        pid = int((self.paths.kvm / "pid" / name).read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def list_leftovers(self) -> list[str]:
        """Files of guests in the run directory; what is known of the node itself may stay."""
        run = self.paths.run
        found = sorted(str(p.relative_to(run)) for p in run.rglob("*") if not p.is_dir())
        return [p for p in found if Path(p).name not in ("qemu.json", "accel.json", "accel.lock")]

    def close(self) -> None:
        for instance in self.instances:
            with contextlib.suppress(Exception):
                self.driver.stop(instance.name, force=True)
            with contextlib.suppress(Exception):
                self.driver.cleanup(instance.name)


def make_rack(name: HypervisorName, tmp_path: Path) -> Rack:
    # Quick and the same everywhere, whatever the machine can do.
    hvparams: dict[HypervisorName, dict[str, Any]] = {
        HypervisorName.KVM: {"kernel_path": "", "accelerator": "tcg"},
        HypervisorName.XEN_PVM: {"kernel_path": __file__},  # any file
    }
    return Rack(name, Paths(tmp_path / "root"), tmp_path, hvparams.get(name, {}))


def stand_in_for_xl(root: Path, world: Path) -> None:
    """Put ``xl`` where a node that lives in a directory looks for programs first."""
    program = root / "usr/local/sbin/xl"
    program.parent.mkdir(parents=True)
    script = Path(__file__).with_name("stand_in_xl.py")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -ES {script} {world} "$@"\n')
    program.chmod(0o755)
