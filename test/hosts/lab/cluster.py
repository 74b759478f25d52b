"""A cluster of lab machines: this project's own daemons, ssh between the nodes, LVM below them."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab import initramfs, project, xen
from lab.channel import Ran
from lab.kernel import kernel
from lab.machine import Machine, Spec, boot, check_host
from lab.network import Network
from lab.place import REPOSITORY, LabError, lock, run_directory

DOMAIN = "example.com"
CLUSTER = f"cluster.{DOMAIN}"
SUBNET = "10.123.7"
#: Addresses of the machine that runs the tests, and of the master.
OUTSIDE, MASTER_IP = f"{SUBNET}.254", f"{SUBNET}.250"
VG = "xenvg"
#: The variable with the directory where processes of one run keep the disks of a made cluster:
#: one makes it, the others start copies.
MADE = "GANETI_LAB_MADE"
LAYERS = ("storage", "node", "qemu")
MODULES = ("dm_mod", "drbd", "tun", "kvm-amd", "kvm-intel")
#: Python in an emulated machine is this much slower; see ganeti/base/patience.py.
TIME_FACTOR = "3"
_SSHD = (
    "/usr/sbin/sshd -f /dev/null -o HostKey=/root/.ssh/host -o UsePAM=no -o StrictModes=no"
    f" -o PidFile=none -o SetEnv=GANETI_TIME_FACTOR={TIME_FACTOR}"
)
_BOUNDS = (
    "min:cpu-count=1,disk-count=0,disk-size=1,memory-size=1,nic-count=0,spindle-use=1/"
    "max:cpu-count=8,disk-count=16,disk-size=1048576,memory-size=65536,nic-count=8,spindle-use=12"
)
_STANDARD = "cpu-count=1,disk-count=1,disk-size=128,memory-size=64,nic-count=0,spindle-use=1"


class Node:
    """One machine of the cluster."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.name = machine.spec.name
        self.run = machine.run
        self.ok = machine.ok
        self.sh = machine.sh

    def __repr__(self) -> str:
        return self.name

    def set_up(self) -> None:
        """What a machine needs after each boot: programs in the path, ssh, links of the OS."""
        programs = project.VENV / "bin"
        self.sh(f"""
            ln -sf {programs}/gnt-* {programs}/ganeti-* /usr/local/sbin/
            ln -sfn {REPOSITORY}/os /srv/ganeti/os
            {_SSHD}
        """)

    def prepare(self, key: str, public: str) -> None:
        """What a machine needs once: keys of ssh, a volume group."""
        self.ok("tee", "/root/.ssh/id_ed25519", stdin=key)
        self.ok("tee", "/root/.ssh/authorized_keys", stdin=public)
        self.sh(f"""
            chmod 600 /root/.ssh/*
            ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/host
            pvcreate -q /dev/vda; vgcreate -q {VG} /dev/vda
        """)

    def power_cut(self) -> None:
        self.machine.power_cut()

    def power_on(self) -> None:
        """Boot again after a cut and start the node daemon."""
        self.machine.power_on()
        self.serve()

    def serve(self) -> None:
        """After a boot of what is a node already."""
        self.set_up()
        self.start("ganeti-noded")

    def boot_into_xen(self) -> None:
        """Begin a boot into Xen; the state disk and so the cluster stay what they were."""
        self.machine.power_off()
        layers = (*LAYERS, xen.LAYER)
        more = {"xen": True, "layers": layers, "modules": xen.MODULES}
        self.machine.spec = replace(self.machine.spec, **more)
        self.machine.begin_boot()

    def finish_xen(self) -> None:
        self.machine.finish_boot()
        self.sh(xen.SERVICES)
        self.serve()

    def start(self, daemon: str) -> None:
        self.ok(daemon, env={"GANETI_TIME_FACTOR": TIME_FACTOR})

    def volumes(self) -> dict[str, int]:
        """Sizes in MiB of the logical volumes in the group, by path."""
        listed = self.sh(f"lvs --noheadings --nosuffix --units m -o lv_path,lv_size {VG}")
        rows = [line.split() for line in listed.splitlines()]
        return {path: round(float(size)) for path, size in rows}

    def log(self, daemon: str, lines: int = 40) -> str:
        return self.sh(f"tail -n {lines} /var/log/ganeti/{daemon}*.log 2>&1 || true")


class Cluster:
    """The machines and the commands of the master, which is the first node at first."""

    def __init__(self, nodes: list[Node], network: Network) -> None:
        self.nodes = nodes
        self.network = network
        self.master = nodes[0]

    def gnt(self, line: str, *words: str, limit: float = 240.0) -> Ran:
        """Run a command on the master: ``gnt("instance add -t plain", "name")``."""
        program, *rest = line.split()
        env = {"GANETI_TIME_FACTOR": TIME_FACTOR}
        ran = self.master.run(f"gnt-{program}", *rest, *words, limit=limit, env=env)
        if "Traceback" in ran.err + ran.out:
            raise LabError(f"gnt-{line}: {ran.err}{ran.out}")
        return ran

    def ok(self, line: str, *words: str, limit: float = 240.0) -> Ran:
        """Like :meth:`gnt`; the command must succeed."""
        ran = self.gnt(line, *words, limit=limit)
        if ran.code:
            raise LabError(f"gnt-{line} {' '.join(words)}: exit {ran.code}: {ran.err}{ran.out}")
        return ran

    def cells(self, line: str, *words: str) -> list[list[str]]:
        """Rows of a list command without titles."""
        ran = self.ok(f"{line} --no-headers --separator=|", *words)
        return [row.split("|") for row in ran.lines]

    def try_add(
        self, name: str, template: str, node: Node, *words: str, second: Node | None = None
    ) -> Ran:
        """Add an instance of the fake hypervisor on a node; ``words`` tell its disks."""
        nodes = node.name if second is None else f"{node.name}:{second.name}"
        line = f"instance add -t {template} -H fake -o noop --no-nics -n {nodes}"
        return self.gnt(line, *words, name)

    def add(
        self, name: str, template: str, node: Node, *words: str, second: Node | None = None
    ) -> None:
        """Like :meth:`try_add`; it must succeed."""
        ran = self.try_add(name, template, node, *words, second=second)
        if ran.code:
            raise LabError(f"{name} was not added: {ran.err}{ran.out}")

    def boot_into_xen(self, nodes: Sequence[Node]) -> None:
        """Boot nodes without instances anew, with Xen below their kernel."""
        for node in nodes:
            node.boot_into_xen()
        for node in nodes:
            node.finish_xen()

    def make(self) -> None:
        """Keys, volume groups, gnt-cluster init, gnt-node add."""
        self.master.sh("ssh-keygen -q -t ed25519 -N '' -C lab -f /tmp/key")
        key, public = self.master.sh("cat /tmp/key") + "\n", self.master.sh("cat /tmp/key.pub")
        for node in self.nodes:
            node.prepare(key, public + "\n")
            node.set_up()
        self.ok("cluster init", *self._init_words())
        for node in self.nodes[1:]:
            self.ok("node add --no-ssh-key-check", node.name)

    def save(self, directory: Path) -> None:
        """Keep the disks of the idle cluster, one node after the other, for copies of it."""
        for node in self.nodes:
            node.machine.save_disks(directory / node.name)

    def load(self, directory: Path) -> None:
        """Become a copy of the cluster that was saved; to be called before the first boot."""
        for node in self.nodes:
            node.machine.load_disks(directory / node.name)

    def serve(self) -> None:
        """After a boot of all nodes: their daemons."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(Node.serve, self.nodes))
        self.master.start("ganeti-masterd")

    @staticmethod
    def _init_words() -> list[str]:
        words = ["--no-ssh-init", "--no-etc-hosts", "--master-netdev", "xen-br0"]
        words += ["--enabled-hypervisors", "fake,kvm"]
        words += ["--enabled-disk-templates", "plain,drbd,file,diskless"]
        words += ["--vg-name", VG, "--ipolicy-bounds-specs", _BOUNDS]
        words += ["--ipolicy-std-specs", _STANDARD]
        return [*words, "-B", "minmem=64,maxmem=64", CLUSTER]


def tiny(directory: Path) -> dict[Path, Path]:
    """Kernel and initramfs of the tiny instance (see ``init.instance``), below ``/opt/tiny``."""
    made, target = kernel(), directory / "tiny"
    target.mkdir()
    shutil.copy(made.image, target / "vmlinux")
    shutil.copy(made.packed, target / "vmlinuz")
    shutil.copy(initramfs.make_for_instance(made), target / "initrd")
    return {target: Path("/opt/tiny")}


def specs(count: int, shares: dict[Path, Path]) -> list[Spec]:
    names = [f"node{n}.{DOMAIN}" for n in range(1, count + 1)]
    hosts = "".join(
        f"{SUBNET}.{n} {name} {name.partition('.')[0]}\n" for n, name in enumerate(names, 1)
    )
    hosts += f"{MASTER_IP} {CLUSTER}\n"
    return [
        Spec(
            name,
            memory=1536,
            disks=[2048, 1024],
            layers=LAYERS,
            modules=MODULES,
            shares=shares,
            address=f"{SUBNET}.{n}/24",
            hosts=hosts,
            state=True,
            append="drbd.usermode_helper=/bin/true drbd.minor_count=128",
        )
        for n, name in enumerate(names, 1)
    ]


@contextlib.contextmanager
def running(count: int = 3, **changes: Any) -> Iterator[Cluster]:
    """A new cluster; its machines, network and directory are gone at the end.

    ``changes``: what differs in the :class:`Spec` of each machine.
    """
    check_host()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(run_directory())
        network = stack.enter_context(Network(f"{OUTSIDE}/24"))
        shares = {**project.shares(directory), **tiny(directory)}
        wanted = [replace(spec, **changes) for spec in specs(count, shares)]
        machines = [Machine(spec, directory, network) for spec in wanted]
        for machine in machines:
            stack.callback(machine.power_off, 5.0)
        begin = time.monotonic()
        cluster = Cluster([Node(machine) for machine in machines], network)
        how = bring_up(cluster, Path(os.environ.get(MADE) or directory))
        print(f"cluster is up after {time.monotonic() - begin:.1f} s ({how})", flush=True)
        yield cluster


def bring_up(cluster: Cluster, directory: Path) -> str:
    """Start what was saved in the directory, or make it and save it; tells which."""
    machines, saved = [node.machine for node in cluster.nodes], directory / "made"
    with lock("made", directory):
        if not saved.exists():
            boot(machines)
            cluster.make()
            cluster.save(directory / "making")
            (directory / "making").rename(saved)
            return "made"
    cluster.load(saved)
    boot(machines)
    cluster.serve()
    return "a copy"
