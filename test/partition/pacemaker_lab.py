"""A cluster whose nodes run corosync and Pacemaker (Debian's packages), on one machine.

Each node has its own network, mounts and host name, and its own state of Pacemaker in memory. The
fence device ``fence_lab`` kills all that runs in the namespaces of a node, and forgets what a
reboot forgets.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from net_cluster import DOMAIN, NETWORK, REPOSITORY, Namespace, NetCluster, NetNode
from waiting import wait_for

from ganeti import constants

#: What Pacemaker and corosync keep on a server.
_OWN = ("/run", "/dev/shm", "/var/lib/corosync", "/var/lib/pacemaker", "/var/log/pacemaker")
_PACEMAKER = ("blackbox", "cib", "cores", "pengine")
_COROSYNC = """\
totem {{
    version: 2
    cluster_name: lab
    transport: knet
}}
nodelist {{
{nodes}}}
quorum {{
    provider: corosync_votequorum
}}
system {{
    sched_rr: no
    move_to_root_cgroup: no
}}
logging {{
    to_stderr: no
    to_syslog: no
    to_logfile: yes
    logfile: {log}
    timestamp: on
}}
"""
_FENCE = '''\
#!/usr/bin/python3
"""Fence device of the lab: kills what runs in the namespaces of a node."""
import json, os, signal, shutil, sys, time
from pathlib import Path

given = dict(line.strip().split("=", 1) for line in sys.stdin if "=" in line)
for word in sys.argv[1:]:
    if word.startswith("--action="):
        given["action"] = word.partition("=")[2]
action = given.get("action", "reboot")
if action in ("metadata", "meta-data"):
    print("""<?xml version="1.0"?>
<resource-agent name="fence_lab" shortdesc="lab"><longdesc>lab</longdesc>
<parameters><parameter name="plug" unique="0" required="1"><getopt mixed="-n"/>
<content type="string"/><shortdesc lang="en">node</shortdesc></parameter></parameters>
<actions><action name="on"/><action name="off"/><action name="reboot"/><action name="status"/>
<action name="monitor"/><action name="metadata"/></actions></resource-agent>""")
    sys.exit(0)
place = Path({place!r})
if action in ("monitor", "on"):
    sys.exit(0)
node = json.loads((place / given["plug"]).read_text())

def find():
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != node["holder"]:
            try:
                if os.readlink("/proc/" + entry + "/ns/mnt") == node["mnt"]:
                    found.append(int(entry))
            except OSError:
                pass
    return found

if action == "status":
    sys.exit(0 if find() else 2)
while pids := find():
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    time.sleep(0.02)
shutil.rmtree(node["run"], ignore_errors=True)
with (place / "log").open("a") as log:
    log.write("%s %.3f\\n" % (given["plug"], time.time()))
'''


def _set_up(directory: Path, number: int) -> str:
    """Commands that make the mounts of a node."""
    lines = [f"mount -t tmpfs tmpfs {place}" for place in _OWN]
    lines += [f"mkdir -p {' '.join(f'/var/lib/pacemaker/{name}' for name in _PACEMAKER)}"]
    lines += ["chown -R hacluster:haclient /var/lib/pacemaker /var/log/pacemaker"]
    lines += [
        f"mount --bind {directory}/corosync{number} /etc/corosync",
        f"mount --bind {directory}/agents /usr/lib/ocf/resource.d",
        f"mount -t overlay overlay -o lowerdir={directory}/sbin:/usr/sbin /usr/sbin",
        f"hostname node{number}.{DOMAIN}",
    ]
    return "\n".join(lines)


class Lab:
    """Nodes 1 to ``count``; ``nodes`` are those of the cluster."""

    def __init__(self, directory: Path, count: int = 3) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self._place = directory / "power"
        self._place.mkdir()
        self._children: list[subprocess.Popen[bytes]] = []
        self._write_programs()
        for number in range(1, count + 1):
            self._write_corosync(number, count)
        self.cluster = NetCluster(
            directory / "nodes",
            count,
            make_space=lambda number: Namespace(
                ("net", "mount", "uts"), _set_up(directory, number)
            ),
        )
        self.nodes = self.cluster.nodes
        for node in self.nodes.values():
            self._write_power(node)

    def _write_programs(self) -> None:
        """The agents as they are installed, for the Python that runs this; the fence device."""
        agents = self.directory / "agents" / "ganeti"
        agents.mkdir(parents=True)
        for source in (REPOSITORY / "ocf").iterdir():
            text = source.read_text()
            begin = "python=/usr/lib/ganeti/default/venv/bin/python\n"
            assert begin in text
            (agents / source.name).write_text(text.replace(begin, f"python={sys.executable}\n"))
            (agents / source.name).chmod(0o755)
        for provider in ("heartbeat", "pacemaker"):
            shutil.copytree(f"/usr/lib/ocf/resource.d/{provider}", agents.parent / provider)
        fence = self.directory / "sbin" / "fence_lab"
        fence.parent.mkdir()
        fence.write_text(_FENCE.replace("{place!r}", repr(str(self._place))))
        fence.chmod(0o755)

    def _write_corosync(self, number: int, count: int) -> None:
        place = self.directory / f"corosync{number}"
        place.mkdir()
        nodes = "".join(
            f"    node {{\n        ring0_addr: {NETWORK}.{n}\n        nodeid: {n}\n"
            f"        name: node{n}.{DOMAIN}\n    }}\n"
            for n in range(1, count + 1)
        )
        log = self.directory / f"corosync{number}.log"
        (place / "corosync.conf").write_text(_COROSYNC.format(nodes=nodes, log=log))

    def _write_power(self, node: NetNode) -> None:
        facts = {
            "holder": node.space.pid,
            "mnt": os.readlink(f"/proc/{node.space.pid}/ns/mnt"),
            "run": str(node.paths.run),
        }
        (self._place / node.name).write_text(json.dumps(facts))

    # Pacemaker -----------------------------------------------------------------------------

    def power_on(self, number: int) -> bool:
        """Start what a server starts when it boots: corosync, Pacemaker, the node daemon.

        False when it was fenced meanwhile.
        """
        node = self.nodes[number]
        self._spawn(node, "corosync", "-f")
        try:
            wait_for(
                lambda: node.run(["corosync-quorumtool", "-s"]).code in (0, 1, 2),
                "corosync",
                30,
                0.2,
            )
        except AssertionError:
            return False
        self._spawn(node, "pacemakerd")
        return node.start(constants.NODED).code == 0

    def _spawn(self, node: NetNode, *argv: str) -> None:
        with (self.directory / f"{argv[0]}{node.number}.out").open("ab") as log:
            env = node.env | {"PCMK_logfile": str(self.directory / f"pacemaker{node.number}.log")}
            self._children.append(
                subprocess.Popen(
                    node.space.enter(list(argv)),
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def cut_power(self, number: int) -> None:
        """Kill all that runs on a node, as its fence device does."""
        program = str(self.directory / "sbin" / "fence_lab")
        text = f"action=off\nplug={self.nodes[number].name}\n"
        subprocess.run([program], input=text.encode(), check=True, timeout=60)

    def list_fenced(self) -> list[str]:
        """Names of nodes that were fenced, in this order."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split()[0] for line in (self._place / "log").read_text().splitlines()]
        return []

    def do(self, line: str, number: int = 1) -> str:
        """Run a command on a node, which must succeed; its output."""
        ran = self.nodes[number].run(["sh", "-c", line], 120)
        assert ran.code == 0, f"{line}: {ran.err}{ran.out}"
        return ran.out

    def find_masters(self) -> list[int]:
        """Nodes with a master daemon."""
        return [n for n, node in self.nodes.items() if node.pid(constants.MASTERD) is not None]

    def destroy(self) -> None:
        """Kill everything, and remove the directory."""
        for number in self.nodes:
            with contextlib.suppress(subprocess.SubprocessError, OSError):
                self.cut_power(number)
        self.cluster.destroy()
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
            child.wait(30)
