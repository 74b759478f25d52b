"""A cluster that recovers by itself: watchdogs, management controllers, and a guest that counts.

The guest keeps its count on a mirrored disk, and says each number only when the disk has it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab import mirror
from lab.beats import LOGS, Beat, Ear
from lab.bmc import Controller
from lab.channel import Monitor, wait_for
from lab.cluster import LAYERS, MASTER_IP, MODULES, OUTSIDE, Cluster, Node, running
from lab.place import LabError

VM = "vm1"
#: Seconds of silence until the master is replaced, and a node is fenced. With 30 each call must be
#: answered within 2.5 s, which emulated hosts do only on a machine that does nothing else.
FAILOVER_AFTER, FENCE_AFTER = 15, int(os.environ.get("FENCE_AFTER", "30"))
WATCHDOG, AGENT = "/dev/watchdog", "fence_ipmilan"
_GUEST = (
    "kvm:kernel_path=/opt/tiny/vmlinux,initrd_path=/opt/tiny/initrd,root_path=/dev/vda,"
    "kernel_args=console=ttyS0 quiet panic=-1 mitigations=off tiny.keep tiny.beat=0.5,"
    "serial_console=true,vhost_net=false"
)
#: MiB of its disk.
DISK_MIB = 16
#: A command of ours takes seconds to start in an emulated machine.
_ASK = """\
import socket
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(5)
    sock.connect("/var/run/ganeti/socket/ganeti-query")
    sock.sendall(b'{"method": "QueryClusterInfo", "args": []}\\3')
    data = b""
    while not data.endswith(b"\\3"):
        data += sock.recv(65536) or b"\\3"
print(data.replace(b" ", b"").count(b'"success":true'))
"""
_PID = f"/var/run/ganeti/kvm-hypervisor/pid/{VM}"
#: Seconds for what takes a while, and for a guest to count again: a boot in some tens hangs.
PATIENCE, BOOT_LIMIT = 180.0, 90.0


@dataclass
class Site:
    """The cluster with what belongs to it."""

    cluster: Cluster
    controllers: dict[str, Controller]
    ear: Ear
    #: events of QEMU, by node
    monitors: dict[str, Monitor] = field(default_factory=dict)

    def find(self, name: str) -> Node:
        return next(node for node in self.cluster.nodes if node.name == name)

    def sides(self) -> tuple[Node, Node]:
        """Primary and secondary node of the guest."""
        ((first, second),) = self.cluster.cells("instance list -o pnode,snodes", VM)
        return self.find(first), self.find(second)

    # life ----------------------------------------------------------------------------------

    def set_up(self) -> None:
        """From a cluster without guests to one that recovers by itself, with the guest."""
        cluster, nodes = self.cluster, self.cluster.nodes
        for node in nodes:
            node.sh("mkdir -p -m 700 /etc/ganeti/fence")
            for name, controller in self.controllers.items():
                path = f"/etc/ganeti/fence/{name}"
                node.ok("tee", path, stdin=controller.parameters)
                node.sh(f"chmod 600 {path}")
            self.attend(node)
        cluster.ok(
            f"cluster modify --node-parameters fence_agent={AGENT},watchdog={WATCHDOG}"
            f" --auto-failover-after={FAILOVER_AFTER} --auto-fence-after={FENCE_AFTER}"
        )
        second, third = nodes[1:3]
        cluster.ok(
            f"instance add -t drbd -o noop --no-nics --disk 0:size={DISK_MIB}M",
            *("-B", "minmem=160,maxmem=160,ha=failover", "-H", _GUEST),
            *("-n", f"{second.name}:{third.name}", VM),
        )
        self.wait_until_ready()

    def attend(self, node: Node) -> None:
        """After each boot of a node."""
        self.ear.attach(node)
        if (old := self.monitors.pop(node.name, None)) is not None:
            old.close()
        self.monitors[node.name] = Monitor(node.machine.directory / "events")

    def close(self) -> None:
        for monitor in self.monitors.values():
            monitor.close()

    def set_node(self, node: Node, parameters: str) -> None:
        self.cluster.ok("node modify --node-parameters", parameters, node.name)

    def bring_back(self, node: Node, *, split: bool = False) -> None:
        """Power, the node daemon, and the place in the cluster.

        ``split``: the guest may have written to both sides of its mirror.
        """
        self.controllers[node.name].stop_lying()
        if not node.machine.is_on:
            node.machine.power_cut()
            node.power_on()
            self.attend(node)
        node.machine.switch_port(up=True)
        self.set_online(node)
        self._join_mirror(split=split)
        self.wait_until_ready()

    def _join_mirror(self, *, split: bool) -> None:
        ran = self.cluster.gnt("instance activate-disks", VM)
        here, _ = self.sides()
        if split:
            ended = ("StandAlone", "Connected", "SyncSource")
            wait_for("DRBD", lambda: mirror.state(here).get("cs") in ended, PATIENCE)
            if mirror.state(here)["cs"] == "StandAlone":
                say("its mirror has a split brain; gnt-instance replace-disks -s repairs it")
                self.cluster.ok("instance replace-disks -s", VM, limit=600.0)
                return
        if ran.code:
            raise LabError(f"the mirror is not joined: {ran.err}")

    def set_online(self, node: Node) -> None:
        def attempt() -> bool:
            return self.cluster.gnt("node modify --offline=no", node.name).code == 0

        wait_for(f"{node} as a node again", attempt, PATIENCE, 2.0)

    def wait_until_ready(self) -> None:
        """The guest counts, its disk is whole on both sides, and all watchdogs are on."""
        here, _ = self.sides()
        self.ear.wait(time.monotonic(), PATIENCE)
        mirror.await_state(here, PATIENCE, **mirror.WHOLE)
        wait_for("watchdogs that are on", self._is_guarded, PATIENCE, 2.0)

    def _is_guarded(self) -> bool:
        lines = self.cluster.ok("cluster recovery status").lines
        armed = [line for line in lines if "end of its lease and watchdog" in line]
        return len(armed) == len(self.cluster.nodes)

    def keep_off(self, node: Node) -> None:
        """Have the guest run elsewhere."""
        here, _ = self.sides()
        if here is node:
            self.cluster.ok("instance failover -f", VM)
            self.wait_until_ready()

    def wait_until_unguarded(self, node: Node) -> None:
        """Wait until the master does not count on the watchdog of a node."""

        def is_off() -> bool:
            lines = self.cluster.ok("cluster recovery status").lines
            return not any(line.startswith(node.name) and "watchdog" in line for line in lines)

        wait_for(f"the end of the watchdog of {node}", is_off, PATIENCE, 2.0)

    # what is seen --------------------------------------------------------------------------

    def runs_on(self, node: Node) -> bool:
        return node.run("bash", "-c", f"kill -0 $(cat {_PID})").code == 0

    def wait_for_reset(self, node: Node, limit: float) -> float:
        """Wait until the watchdog resets a node; the moment."""
        wait_for(f"a reset of {node}", lambda: not node.machine.is_on, limit, 0.02)
        now = time.monotonic()
        assert "WATCHDOG" in self.monitors[node.name].read_events()
        return now

    def wait_elsewhere(self, since: float, here: Node, limit: float) -> Beat:
        """The first beat on another node than this one; prints what took how long."""
        clock = time.time() - time.monotonic()
        try:
            beat = self.ear.wait(since, limit, but=here.name)
        except LabError:
            if self.sides()[0] is here:
                raise
            say("the guest hangs in its boot, as one in some tens does here; one more try")
            self.cluster.ok("instance reboot -t hard", VM)
            beat = self.ear.wait(since, BOOT_LIMIT, but=here.name)
        load = os.getloadavg()[0]
        say(f"counts on {beat.node} after {beat.at - since:.1f} s, at load {load:.1f}")
        for row in self._list_jobs():
            received, begin, end = (_read_moment(cell) - clock - since for cell in row[3:6])
            if received > 0:
                say(f"job {row[0]} {row[1]} {row[2]}: from {begin:.1f} to {end:.1f} s")
        return beat

    def _list_jobs(self) -> list[list[str]]:
        """Those of the recovery; moments are of the master's clock."""
        found = self.cluster.cells("job list -o id,summary,status,received_ts,start_ts,end_ts")
        return [row for row in found if re.search("FENCE|FAILOVER|SET_PARAMS", row[1])]

    def find_end(self, here: Node, elsewhere: Beat) -> Beat:
        """The last beat here; it was before the first one elsewhere."""
        last = [beat for beat in self.ear.beats if beat.node == here.name][-1]
        assert last.at < elsewhere.at, f"{last} after {elsewhere}"
        return last

    def find_disk(self, node: Node) -> int:
        """Where the data of the guest's disk begin on the disk of a node, in bytes."""
        table = node.sh("dmsetup table | grep _data:").split()
        assert table[3] == "linear", table
        return int(table[-1]) * 512

    def checksum(self, node: Node, start: int) -> str:
        """What the guest has written to the disk of a node, seen from outside."""
        with (node.machine.directory / "disk0.raw").open("rb") as file:
            file.seek(start)
            return hashlib.sha256(file.read(DISK_MIB << 20)).hexdigest()

    def read_count(self, node: Node) -> int:
        """The number that the guest's disk holds, read on the node where it runs."""
        return int(mirror.read(node, 24).split()[1])

    def rapi_answers(self) -> bool:
        """At the address of the master, asked from outside."""
        words = ["curl", "-sk", "-m", "2", f"https://{MASTER_IP}:5080/version"]
        ran = subprocess.run(
            self.cluster.network.wrap(words), capture_output=True, text=True, check=False
        )
        return ran.returncode == 0 and ran.stdout.strip() == "2"

    def find_master(self, *, but: Node) -> Node | None:
        """The node where a master daemon answers over LUXI."""
        for node in self.cluster.nodes:
            if node is not but and node.run("python3", "-ISc", _ASK).out == "1\n":
                return node
        return None

    def print_logs(self) -> None:
        """What daemons have logged; a reset takes what was not on the disk yet."""
        for node in self.cluster.nodes:
            log = node.machine.share / LOGS
            text = log.read_text(errors="replace") if log.exists() else ""
            print(f"--- {node}\n{text[-6000:]}", flush=True)


def _read_moment(cell: str) -> float:
    """Seconds and microseconds; 0 for a moment that has not come."""
    words = re.findall(r"\d+", cell)
    return int(words[0]) + int(words[1]) / 1e6 if len(words) == 2 else 0.0


def say(text: str) -> None:
    print(f"    {text}", flush=True)


@contextlib.contextmanager
def site() -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            running(watchdog=True, layers=(*LAYERS, "fence"), modules=(*MODULES, "i6300esb"))
        )
        controllers = {}
        for number, node in enumerate(cluster.nodes):
            made = Controller(node.machine, cluster.network, OUTSIDE, number)
            controllers[node.name] = stack.enter_context(made)
        ear = stack.enter_context(Ear(cluster.nodes, VM))
        made_site = Site(cluster, controllers, ear)
        stack.callback(made_site.close)
        made_site.set_up()
        yield made_site
