"""A lab machine: a QEMU guest on this machine's root, with disks that survive a power cut."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import zlib
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab import initramfs, xen
from lab.accel import accelerator
from lab.channel import Channel, Monitor, Ran
from lab.kernel import kernel
from lab.network import Network
from lab.packages import layer
from lab.place import SOURCES, LabError, Unavailable

QEMU = "qemu-system-x86_64"
#: How often a boot is tried: one in a hundred hangs.
BOOT_TRIES = 2
STATE_MIB = 512
#: An emulated processor. Without AVX and fast string instructions: in emulation they cost more than
#: what programs do where there are none. Without SMAP, which ends Xen's domain 0 on its first
#: instructions. With nested paging, for QEMU in the machine and hardware-assisted guests of Xen.
EMULATED = "qemu64,+npt,+ssse3,+sse4.1,+sse4.2,+aes,+pclmulqdq,+popcnt"
_NINE = "local,security_model=none,multidevs=remap"


@dataclass(frozen=True)
class Spec:
    """What a machine is made of; ``shares`` are more read-only directories: host -> guest."""

    name: str
    memory: int = 1024
    cpus: int = 1
    #: sizes of the data disks in MiB: /dev/vda, /dev/vdb, ...
    disks: Sequence[int] = ()
    layers: Sequence[str] = ("storage",)
    modules: Sequence[str] = ()
    shares: dict[Path, Path] = field(default_factory=dict)
    #: address with its length on the network, and lines for /etc/hosts
    address: str = ""
    hosts: str = ""
    #: a disk for what must survive a power cut (see init.machine)
    state: bool = False
    append: str = ""
    #: boot into Xen, with the machine's own kernel as domain 0 (see xen.py)
    xen: bool = False
    #: a watchdog card (i6300esb), which resets the machine; QEMU ends then
    watchdog: bool = False


class Machine:
    """Started by :meth:`power_on`; ``run`` and ``sh`` work inside once that returned."""

    #: seconds until the agent must answer
    boot_limit = 90.0
    #: how much it gives way to the programs of this machine
    niceness = 10

    def __init__(self, spec: Spec, directory: Path, network: Network | None = None) -> None:
        self.spec = spec
        self.directory = directory / spec.name
        self.share = self.directory / "share"
        self.share.mkdir(parents=True)
        shutil.copy(SOURCES / "agent.py", self.share)
        (self.share / "hosts").write_text(spec.hosts, encoding="ascii")
        self._network = network
        self._tap = network.tap() if network is not None else ""
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._disks = [self._disk(f"disk{n}", size) for n, size in enumerate(spec.disks)]
        if spec.state:
            self._disks.append(self._disk("state", STATE_MIB))

    def _disk(self, serial: str, mebibytes: int) -> Path:
        path = self.directory / f"{serial}.raw"
        with path.open("wb") as file:
            file.truncate(mebibytes << 20)
        return path

    def save_disks(self, directory: Path) -> None:
        """Copy the disks of the running machine as they are; it is paused meanwhile."""
        self.sh("sync")
        monitor = Monitor(self.directory / "qmp")
        try:
            monitor.command("stop")
            _copy(self._all_disks(), directory)
            monitor.command("cont")
        finally:
            monitor.close()

    def load_disks(self, directory: Path) -> None:
        """Before the first boot: have the disks that another one saved."""
        _copy([directory / path.name for path in self._all_disks()], self.directory)

    def _all_disks(self) -> list[Path]:
        return self._disks

    # power -------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Boot; blocks until the agent answers.

        Raises:
            LabError: it did not boot, twice; the text holds its console.
        """
        for left in reversed(range(BOOT_TRIES)):
            self.begin_boot()
            try:
                self.finish_boot()
                return
            except LabError:
                self.power_cut()
                if not left:
                    raise

    def begin_boot(self) -> None:
        """Start QEMU and return; several machines boot side by side this way."""
        argv = ["nice", "-n", str(self.niceness), "setpriv", "--pdeathsig", "KILL"]
        argv += [QEMU, *self._options()]
        if self._network is not None:
            argv = self._network.wrap(argv)
        with (self.directory / "qemu.log").open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            except FileNotFoundError as err:
                raise Unavailable(f"{err.filename} is missing") from err
        (self.directory / "pid").write_text(str(self._process.pid))

    def finish_boot(self) -> None:
        try:
            self._channel = Channel(self.directory / "agent", 10.0)
            self._channel.hello.result(self.boot_limit)
        except (LabError, FutureTimeoutError) as err:
            raise LabError(f"{self.spec.name} did not boot: {err}\n{self.console()}") from err

    def power_cut(self) -> None:
        """Pull the cord: what QEMU had not written is lost to the machine."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def power_off(self, limit: float = 20.0) -> None:
        """An orderly end; a cut after ``limit`` seconds."""
        if self._process is not None and self._channel is not None:
            try:
                self._channel.power_off()
                self._process.wait(limit)
            except (LabError, subprocess.TimeoutExpired):
                pass  # the cut below ends it
        self.power_cut()

    @property
    def is_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """All of it stands still, its watchdog too, until :meth:`thaw`; its clocks go on."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise LabError(f"{self.spec.name} is off")
        self._process.send_signal(number)

    def switch_port(self, up: bool) -> None:
        """Whether the switch passes frames to and from the machine, whose own end stays up."""
        if self._network is not None:
            self._network.plug(self._tap, up)

    def link(self, up: bool) -> None:
        """Plug the network cable in, or pull it out."""
        monitor = Monitor(self.directory / "qmp")
        try:
            monitor.command("set_link", name="n0", up=up)
        finally:
            monitor.close()

    # work inside -------------------------------------------------------------------------

    def run(
        self, *argv: str, limit: float = 120.0, stdin: str = "", env: dict[str, str] | None = None
    ) -> Ran:
        """Run a program inside, for at most ``limit`` seconds (exit code 124 then)."""
        return self._agent().run(list(argv), limit, stdin, env)

    def start(self, *argv: str, limit: float = 120.0) -> Future[dict[str, Any]]:
        """Like :meth:`run`, but does not wait."""
        return self._agent().start(list(argv), limit)

    def ok(
        self, *argv: str, limit: float = 120.0, stdin: str = "", env: dict[str, str] | None = None
    ) -> Ran:
        """Like :meth:`run`; the program must succeed."""
        ran = self.run(*argv, limit=limit, stdin=stdin, env=env)
        if ran.code:
            text = (ran.err + ran.out).strip()
            raise LabError(f"{self.spec.name}: {shlex.join(argv)}: exit code {ran.code}: {text}")
        return ran

    def sh(self, script: str, limit: float = 120.0) -> str:
        """Run lines of bash inside, which must succeed; their output without the last line end."""
        return self.ok("bash", "-euc", script, limit=limit).out.rstrip("\n")

    def _agent(self) -> Channel:
        if self._channel is None:
            raise LabError(f"{self.spec.name} is off")
        return self._channel

    def console(self, length: int = 3000) -> str:
        """The end of what QEMU and the machine's console said."""
        texts = []
        for name in ("qemu.log", "console.log"):
            path = self.directory / name
            if path.exists():
                texts.append(f"--- {name}\n{path.read_text(errors='replace')[-length:]}")
        return "\n".join(texts)

    # QEMU --------------------------------------------------------------------------------

    def _options(self) -> list[str]:
        made, spec, at = kernel(), self.spec, self.directory
        accel = accelerator()
        cpu = "host" if accel == "kvm" else EMULATED
        options = ["-name", spec.name, "-machine", "q35", "-accel", accel, "-cpu", cpu]
        options += ["-m", str(spec.memory), "-smp", str(spec.cpus), "-nodefaults"]
        options += ["-no-user-config", "-display", "none", "-no-reboot"]
        options += ["-chardev", f"file,id=console,path={at}/console.log"]
        options += ["-serial", "chardev:console"]
        options += ["-qmp", f"unix:{at}/qmp,server=on,wait=off", "-device", "virtio-serial-pci"]
        options += ["-chardev", f"socket,id=agent,path={at}/agent,server=on,wait=off"]
        options += ["-device", "virtserialport,chardev=agent,name=lab.agent"]
        options += ["-object", "rng-random,id=rng0,filename=/dev/urandom"]
        options += ["-device", "virtio-rng-pci,rng=rng0"]
        options += self._root() + self._share("lab", self.share, writable=True)
        for number, path in enumerate(self._disks):
            drive = f"if=none,id=d{number},file={path},format=raw,cache=unsafe,discard=unmap"
            options += ["-drive", drive]
            options += ["-device", f"virtio-blk-pci,drive=d{number},serial={path.stem}"]
        if self._tap:
            netdev = f"tap,id=n0,ifname={self._tap},script=no,downscript=no"
            device = f"virtio-net-pci,netdev=n0,mac={self.mac},romfile="
            options += ["-netdev", netdev, "-device", device]
        if spec.watchdog:
            # With -no-reboot the reset ends QEMU.
            options += ["-device", "i6300esb", "-action", "watchdog=reset"]
            options += ["-qmp", f"unix:{at}/events,server=on,wait=off"]
        if spec.xen:
            return options + xen.options(made, self._command_line())
        options += ["-kernel", str(made.image), "-initrd", str(self._initramfs())]
        return [*options, "-append", self._command_line()]

    def _initramfs(self) -> Path:
        return initramfs.make_for_machine(kernel())

    def _root(self) -> list[str]:
        """What the root is made of."""
        options = self._share("root", Path("/")) + self._share("modules", kernel().modules)
        for tag, path in self._more_shares():
            options += self._share(tag, path)
        return options

    def _more_shares(self) -> list[tuple[str, Path]]:
        layers = [(f"layer{n}", layer(name)) for n, name in enumerate(self.spec.layers)]
        return layers + [(f"share{n}", path) for n, path in enumerate(self.spec.shares)]

    @staticmethod
    def _share(tag: str, path: Path, writable: bool = False) -> list[str]:
        rights = "" if writable else ",readonly=on"
        fsdev = f"{_NINE},id={tag}{rights},path={path}"
        return ["-fsdev", fsdev, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

    def _words_for_kernel(self) -> list[str]:
        words = ["console=hvc0" if self.spec.xen else "console=ttyS0", "quiet", "loglevel=4"]
        # The kernel counts timer ticks while it starts; an emulated processor may be too slow.
        words += ["panic=-1", "no_timer_check"]
        # At other addresses each process would be translated anew.
        return [*words, "mitigations=off", "norandmaps", "net.ifnames=0"]

    def _command_line(self) -> str:
        spec, words = self.spec, self._words_for_kernel()
        words += [f"lab.name={spec.name}", f"lab.layers={len(spec.layers)}"]
        mounts = [f"share{n}:{inside}" for n, inside in enumerate(spec.shares.values())]
        words.append(f"lab.mount={','.join(mounts)}")
        words.append(f"lab.mods={','.join(spec.modules)}")
        if self._tap:
            words += ["lab.bridge=xen-br0:eth0", f"lab.ip=xen-br0:{spec.address}"]
        if spec.state:
            words.append("lab.state")
        return " ".join([*words, spec.append]).strip()

    @property
    def mac(self) -> str:
        number = zlib.crc32(self.spec.name.encode()) & 0xFFFFFF
        return "52:54:00:" + ":".join(f"{byte:02x}" for byte in number.to_bytes(3, "big"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.power_off()


def boot(machines: Sequence[Machine]) -> None:
    """Boot machines side by side; one that hangs is tried once more."""
    for machine in machines:
        machine.begin_boot()
    for machine in machines:
        try:
            machine.finish_boot()
        except LabError:
            machine.power_cut()
            machine.power_on()


def _copy(paths: Sequence[Path], directory: Path) -> None:
    """Copy files that are mostly holes."""
    directory.mkdir(parents=True, exist_ok=True)
    words = ["cp", "--sparse=always", "--reflink=auto", "--", *map(str, paths), str(directory)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(f"disks cannot be copied: {ran.stderr.strip()}")


def check_host() -> None:
    """Raises Unavailable if this machine cannot run a lab at all."""
    if os.geteuid() != 0:
        raise Unavailable("the lab needs root (9p shares of the whole root, network name spaces)")
    for program in (QEMU, "ip", "setpriv", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is missing")
