"""A cluster in namespaces whose nodes have leases, devices that switch them off, and guests."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path

import power
from lease_plan import Plan
from net_cluster import NetCluster

NODES = 5
#: Seconds without an answer after which the master is replaced, and after which a node is fenced.
FAILOVER_AFTER = 15
FENCE_AFTER = 30
#: Instances, and what happens to each when its node is dead.
GUESTS = {
    "web1.example.com": "failover",
    "web2.example.com": "failover",
    "web3.example.com": "failover",
    "files1.example.com": "restart",
    "test1.example.com": "none",
}
#: What a device is called in the configuration.
_PARAMETERS = {"agent": "fence_agent=fence_stub", "helper": "oob_program={directory}/helper"}


def make_cluster(directory: Path, plan: Plan) -> NetCluster:
    """A cluster with leases, devices and guests on a shared directory."""
    cluster = NetCluster(directory / "nodes", NODES)
    try:
        _write_devices(cluster, plan)
        shared = directory / "shared"
        shared.mkdir()
        for node in cluster.nodes.values():
            there = node.root / "srv/ganeti/shared-file-storage"
            if there.is_dir() and not there.is_symlink():
                there.rmdir()
            there.symlink_to(shared)
        place = cluster.directory
        devices = ",".join(_PARAMETERS[kind].format(directory=place) for kind in plan.devices)
        _do(
            cluster,
            f"cluster modify --auto-failover-after={FAILOVER_AFTER}"
            f" --auto-fence-after={FENCE_AFTER} --node-parameters {devices}",
        )
        for number, (name, ha) in enumerate(GUESTS.items()):
            _do(
                cluster,
                f"instance add -n node{number % NODES + 1} -o noop -t sharedfile --disk 0:size=1M"
                f" --no-nics -B ha={ha},memory=128 --no-name-check --no-ip-check {name}",
            )
    except BaseException:
        destroy(cluster)
        raise
    return cluster


def destroy(cluster: NetCluster) -> None:
    """End all, also what is frozen and what is no daemon."""
    for node in cluster.nodes.values():
        with contextlib.suppress(FileNotFoundError):
            power.switch_off(cluster.directory, node.short)
    cluster.destroy()


def _do(cluster: NetCluster, line: str) -> None:
    done = cluster.nodes[1].gnt(line, timeout=120)
    assert done.code == 0, done.err + done.out


def _write_devices(cluster: NetCluster, plan: Plan) -> None:
    """The two programs, and for each agent the file that says which node it switches."""
    place = cluster.directory
    words = shlex.join([sys.executable, power.__file__, str(place)])
    programs = [place / "helper"]
    _write_program(programs[0], f'exec {words} helper "$@"')
    for node in cluster.nodes.values():
        agent = node.paths.fence_agent_search_path[0] / "fence_stub"
        agent.parent.mkdir(parents=True, exist_ok=True)
        _write_program(agent, f"exec {words} agent")
        for other in cluster.nodes.values():
            parameters = node.paths.fence_parameters / other.name
            parameters.parent.mkdir(parents=True, exist_ok=True)
            parameters.write_text(f"plug={other.short}\n")
            parameters.chmod(0o600)
    for (kind, number), mode in plan.modes.items():
        power.mode_file(place, kind, f"node{number}").write_text(mode)


def _write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
