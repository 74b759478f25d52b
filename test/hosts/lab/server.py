"""Bare Debian servers: machines with systemd and a disk of their own, which boot by themselves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lab import image, initramfs
from lab.channel import Ran, wait_for
from lab.cluster import TIME_FACTOR
from lab.kernel import kernel
from lab.machine import Machine, Spec, check_host
from lab.network import Network
from lab.place import LabError, run_directory

DOMAIN = "example.com"
CLUSTER = f"cluster.{DOMAIN}"
SUBNET = "10.123.9"
#: The share with this machine, as the server sees it.
SHARE = Path("/srv/lab")
#: The variable with a directory where servers are kept after each step. Another run with the same
#: directory continues after the last step that passed.
STATE = "SERVERS_STATE"
#: What a boot is measured by; the first one answers the tests.
_BOOT_UNITS = ("lab-agent", "ganeti-noded", "ganeti-masterd")
_ENV = {"GANETI_TIME_FACTOR": TIME_FACTOR, "DEBIAN_FRONTEND": "noninteractive"}


class Server(Machine):
    """Begins as the installer leaves a server; what is done in it survives a power cut."""

    boot_limit = 600.0
    #: Nothing else runs beside servers, and seconds of theirs are measured.
    niceness = 0

    def __init__(
        self,
        spec: Spec,
        directory: Path,
        network: Network,
        suite: str,
        more: Sequence[str] = (),
    ) -> None:
        """Its disk is as the installer left it; see :meth:`load_disks`."""
        super().__init__(spec, directory, network)
        self.name = spec.name
        self._system = self.directory / "root.qcow2"
        words = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw"]
        words += ["-b", str(image.disk(kernel(), suite, more)), str(self._system)]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise LabError(f"qemu-img: {ran.stderr.strip()}")

    def save_disks(self, directory: Path) -> None:
        """Copy the disks of the running server, with that of its system."""
        super().save_disks(directory / self.name)

    def load_disks(self, directory: Path) -> None:
        """Before the first boot: go on from disks that :meth:`save_disks` has copied."""
        super().load_disks(directory / self.name)

    def _all_disks(self) -> list[Path]:
        return [self._system, *self._disks]

    def _initramfs(self) -> Path:
        return initramfs.make_for_server(kernel())

    def _root(self) -> list[str]:
        drive = f"if=none,id=root,file={self._system},format=qcow2,cache=unsafe,discard=unmap"
        return ["-drive", drive, "-device", "virtio-blk-pci,drive=root,serial=root"]

    def _command_line(self) -> str:
        words = self._words_for_kernel()
        words += ["systemd.show_status=0", "audit=0", "apparmor=0", "selinux=0"]
        return " ".join([*words, "random.trust_cpu=on", self.spec.append]).strip()

    def deliver(self, key: str, public: str) -> None:
        """What an installer asks for: name, address, names of the others, keys of root."""
        spec, short = self.spec, self.spec.name.partition(".")[0]
        network = f"[Match]\nName=br0\n[Network]\nAddress={spec.address}\nLinkLocalAddressing=no\n"
        for path, text in {
            "/etc/hostname": f"{short}\n",
            "/etc/hosts": f"127.0.0.1 localhost\n{spec.hosts}",
            "/etc/systemd/network/30-address.network": network,
            "/root/.ssh/id_ed25519": key,
            "/root/.ssh/authorized_keys": public,
            "/root/.ssh/config": "StrictHostKeyChecking accept-new\n",
            # Emulation is slow: see ganeti/base/patience.py.
            "/etc/systemd/system.conf.d/lab.conf": "[Manager]\nDefaultEnvironment="
            f"GANETI_TIME_FACTOR={TIME_FACTOR}\n",
        }.items():
            self.ok("install", "-D", "-m", "600", "/dev/stdin", path, stdin=text)
        self.sh(f"""
            chmod 644 /etc/hosts /etc/hostname /etc/systemd/network/*
            hostname {short}
            systemctl daemon-reexec
            networkctl reload
            until ip -4 addr show dev br0 | grep -q inet; do sleep 0.2; done
        """)

    def guests(self) -> dict[str, int]:
        """Processes of the guests that run here, by name."""
        ran = self.run("pgrep", "-a", "-f", "^/usr/bin/(kvm|qemu-system-x86_64) -name")
        rows = [line.split() for line in ran.lines]
        return {row[3]: int(row[0]) for row in rows}

    def boot_times(self) -> dict[str, float]:
        """When units became active and guests got their process, in seconds since the boot."""
        times = {}
        for unit in _BOOT_UNITS:
            shown = self.sh(f"systemctl show -P ActiveEnterTimestampMonotonic {unit}")
            times[unit] = int(shown) / 1e6
        for guest, pid in self.guests().items():
            ticks = self.sh(f"cut -d' ' -f22 /proc/{pid}/stat; getconf CLK_TCK").split()
            times[guest] = int(ticks[0]) / int(ticks[1])
        return times

    def is_idle(self) -> bool:
        """Whether processes waited for the processor in less than 2 of the last 10 seconds."""
        shown = self.sh("head -n 1 /proc/pressure/cpu")  # some avg10=1.23 avg60=...
        return float(shown.partition("avg10=")[2].split()[0]) < 20.0

    def kill(self, guest: str) -> tuple[float, float]:
        """Kill the process of a guest; seconds until it has one again, and until it counts.

        Nothing is polled: that would cost the emulated processor more than what is measured.
        """
        said = self.sh(
            f"kill -9 {self.guests()[guest]}; cut -d' ' -f1 /proc/uptime;"
            f" grep -q -m 1 ^beat < <(timeout 600 tail -n 0 -F {_serial_log(guest)} 2>/dev/null);"
            " cut -d' ' -f1 /proc/uptime",
            limit=900.0,
        )
        killed, counted = map(float, said.split())
        return self.boot_times()[guest] - killed, counted - killed

    def beats(self, guest: str) -> list[int]:
        """What a guest has counted on its console since its log begins."""
        # Whole lines only: one that is being written has no end yet.
        said = self.ok("sed", "-n", r"s/^beat \([0-9]*\)\r$/\1/p", _serial_log(guest))
        return [int(line) for line in said.lines]


@dataclass
class Servers:
    """All of them, and what an administrator has typed so far."""

    servers: list[Server]
    typed: list[str] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)
    #: steps that are done; their servers were saved
    done: list[str] = field(default_factory=list)
    #: whether a step failed
    failed: bool = False
    #: where they are kept after each step
    state: Path | None = None

    def save(self, step: str) -> None:
        """A step is done. Keep everything, so that another run can go on after it."""
        self.done.append(step)
        if self.state is None:
            return
        partial = self.state / "new"
        shutil.rmtree(partial, ignore_errors=True)
        for server in self.servers:
            server.save_disks(partial)
        story = {"done": self.done, "typed": self.typed, "guests": sorted(self.guests())}
        story["seconds"] = time.monotonic() - self.begin
        (partial / "story.json").write_text(json.dumps(story), encoding="utf-8")
        shutil.rmtree(self.state / "last", ignore_errors=True)
        partial.rename(self.state / "last")

    def load(self) -> list[str]:
        """Before the first boot: continue from there; the guests that ran."""
        if self.state is None or not (last := self.state / "last").exists():
            return []
        for server in self.servers:
            server.load_disks(last)
        story = json.loads((last / "story.json").read_text(encoding="utf-8"))
        self.done, self.typed = story["done"], story["typed"]
        self.begin = time.monotonic() - story["seconds"]
        return list(story["guests"])

    def type(self, server: Server, line: str, limit: float = 3000.0) -> str:
        """What an administrator types into a shell; it must succeed."""
        ran = self.attempt(server, line, limit)
        if ran.code:
            raise LabError(f"{server.name}# {line}\nexit code {ran.code}\n{ran.out}{ran.err}")
        return ran.out

    def attempt(self, server: Server, line: str, limit: float = 3000.0) -> Ran:
        """The same; it may fail."""
        self.typed.append(f"{server.name}# {line}")
        begin = time.monotonic()
        ran = server.run("bash", "-c", line, limit=limit, env=_ENV)
        say(f"{time.monotonic() - begin:6.1f} s  {server.name.partition('.')[0]}# {line}")
        return ran

    def gnt(self, line: str, limit: float = 600.0) -> str:
        """A look at the cluster that does not count as typed."""
        return self.servers[0].ok("bash", "-c", f"gnt-{line}", limit=limit, env=_ENV).out

    def boot(self) -> None:
        """Switch all on, side by side."""
        for server in self.servers:
            server.begin_boot()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Server.finish_boot, self.servers))

    def cut(self) -> None:
        for server in self.servers:
            server.power_cut()

    def guests(self) -> dict[str, Server]:
        """Where which guest runs."""
        return {name: server for server in self.servers for name in server.guests()}

    def summary(self, what: str) -> None:
        minutes = (time.monotonic() - self.begin) / 60
        say(f"{what}: {len(self.typed)} commands typed, {minutes:.1f} minutes")


def _serial_log(guest: str) -> str:
    return f"/var/log/ganeti/kvm/{guest}-serial.log"


def find_store() -> Path | None:
    """Where servers are kept between runs; None: nowhere."""
    given = os.environ.get(STATE)
    return Path(given).absolute() if given else None


def say(text: str) -> None:
    print(text, flush=True)


def specs(count: int, disks: Sequence[int] = (8192,)) -> list[Spec]:
    names = [f"node{n}.{DOMAIN}" for n in range(1, count + 1)]
    hosts = "".join(
        f"{SUBNET}.{n} {name} {name.partition('.')[0]}\n" for n, name in enumerate(names, 1)
    )
    hosts += f"{SUBNET}.250 {CLUSTER}\n"
    return [
        Spec(name, memory=1024, disks=disks, address=f"{SUBNET}.{n}/24", hosts=hosts)
        for n, name in enumerate(names, 1)
    ]


@contextlib.contextmanager
def running(
    count: int,
    suite: str = image.SUITE,
    state: Path | None = None,
    limit: float = 900.0,
    more: Sequence[str] = (),
    disks: Sequence[int] = (8192,),
) -> Iterator[Servers]:
    """Servers that have booted; they are gone at the end.

    They are bare, or what an earlier run has saved in ``state``. Then those guests run that ran
    when they were saved; ``limit`` are the seconds they get for that. ``more`` packages are at hand
    (:func:`image.disk`); ``disks`` are sizes in MiB.
    """
    check_host()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(run_directory())
        network = stack.enter_context(Network(f"{SUBNET}.254/24"))
        servers = [Server(spec, directory, network, suite, more) for spec in specs(count, disks)]
        made = Servers(servers, state=state)
        stack.callback(made.cut)
        guests = made.load()
        made.boot()
        if made.done:
            wait_for("guests as before", lambda: set(guests) <= set(made.guests()), limit, 2.0)
            yield made
            return
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f"]
        key = directory / "key"
        subprocess.run([*words, str(key)], check=True)
        for server in servers:
            server.deliver(key.read_text(), key.with_suffix(".pub").read_text())
        yield made
