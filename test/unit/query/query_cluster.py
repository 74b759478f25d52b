"""A made-up cluster and stub sources for tests of queries."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, AdminStateSource, DiskTemplate, HypervisorName
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.query.live import (
    Answers,
    ClusterFacts,
    ExtStorageInfo,
    JobView,
    LockView,
    NodeAnswer,
    NodeInfo,
    NodeRequest,
    NodeState,
)
from ganeti.rpc.objects import Console, InstanceInfo, OsInfo

HVPARAMS = {
    "kvm": {
        "acpi": True,
        "kernel_path": "",
        "migration_mode": "live",
        "migration_port": 8102,
        "root_path": None,
        "serial_speed": 38400,
        "user_shutdown": False,
    },
    "fake": {"migration_mode": "live"},
}
BEPARAMS = {
    "always_failover": False,
    "auto_balance": True,
    "maxmem": 128,
    "minmem": 128,
    "spindle_use": 1,
    "ha": "tags",
    "ha_attempts": 3,
    "vcpus": 1,
}
NDPARAMS = {
    "cpu_speed": 1.0,
    "exclusive_storage": False,
    "oob_program": "",
    "fence_agent": "",
    "watchdog": "",
    "witness": False,
    "ovs": False,
    "ovs_link": "",
    "ovs_name": "switch1",
    "spindle_count": 1,
    "ssh_port": 22,
}


def cluster(**changes: Any) -> Cluster:
    values: dict[str, Any] = {
        "uuid": "cluster-uuid",
        "ctime": 1000.5,
        "mtime": 2000.25,
        "master_node": "n1",
        "master_ip": "192.0.2.1",
        "master_netdev": "lo",
        "master_netmask": 32,
        "cluster_name": "cluster.example.com",
        "volume_group_name": "xenvg",
        "file_storage_dir": "/srv/file",
        "enabled_hypervisors": ("kvm", "fake"),
        "enabled_disk_templates": ("drbd", "plain", "file", "diskless", "sharedfile"),
        "hvparams": HVPARAMS,
        "beparams": {"default": BEPARAMS},
        "nicparams": {"default": {"mode": "bridged", "link": "br0", "vlan": ""}},
        "ndparams": NDPARAMS,
        "diskparams": {"drbd": {"metavg": "xenvg", "protocol": "C"}, "plain": {"stripes": 1}},
        "ipolicy": {"vcpu-ratio": 4.0, "spindle-ratio": 32.0},
        "tags": ("a", "b"),
    }
    return Cluster(**(values | changes))


def node(number: int, **changes: Any) -> Node:
    values: dict[str, Any] = {
        "uuid": f"n{number}",
        "name": f"node{number}.example.com",
        "primary_ip": f"192.0.2.{number}",
        "secondary_ip": f"198.51.100.{number}",
        "group": "g1",
        "master_candidate": number == 1,
        "ctime": 1000.0 + number,
    }
    return Node(**(values | changes))


def instance(number: int, **changes: Any) -> Instance:
    values: dict[str, Any] = {
        "uuid": f"i{number}",
        "name": f"inst{number}.example.com",
        "primary_node": "n1",
        "os": "debian+minimal",
        "hypervisor": HypervisorName.KVM,
        "admin_state": AdminState.UP,
    }
    return Instance(**(values | changes))


def config(
    nodes: Sequence[Node] = (),
    instances: Sequence[Instance] = (),
    *,
    groups: Sequence[NodeGroup] = (),
    disks: Sequence[Disk] = (),
    networks: Sequence[Network] = (),
    filters: Sequence[Any] = (),
    **changes: Any,
) -> Config:
    """A snapshot; ``changes`` are those of the cluster object."""

    def keyed(objects: Sequence[Any]) -> dict[str, Any]:
        return {obj.uuid: obj for obj in objects}

    return Config(
        ConfigData(
            version=3020000,
            cluster=cluster(**changes),
            nodes=keyed(nodes or [node(1)]),
            nodegroups=keyed(groups or [NodeGroup(uuid="g1", name="default")]),
            instances=keyed(instances),
            networks=keyed(networks),
            disks=keyed(disks),
            filters=keyed(filters),
        )
    )


def large(count: int, nodes: int = 20, seed: int = 1) -> Config:
    """A cluster with ``count`` instances of all sorts."""
    rng = random.Random(seed)
    node_list = [
        node(
            number,
            offline=rng.random() < 0.05,
            drained=rng.random() < 0.1,
            group=f"g{number % 3}",
        )
        for number in range(1, nodes + 1)
    ]
    instances, disks = [], []
    for number in range(1, count + 1):
        primary, secondary = rng.sample(node_list, 2)
        template = rng.choice([DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.FILE])
        own = [
            Disk(
                uuid=f"d{number}.{index}",
                dev_type=template,
                nodes=(primary.uuid, secondary.uuid)
                if template is DiskTemplate.DRBD
                else (primary.uuid,),
                iv_name=f"disk/{index}",
                size=rng.choice([1024, 10240]),
            )
            for index in range(rng.randint(0, 3))
        ]
        disks += own
        instances.append(
            instance(
                number,
                primary_node=primary.uuid,
                hypervisor=rng.choice([HypervisorName.KVM, HypervisorName.FAKE]),
                os=rng.choice(["debian+minimal", "debian", "noop"]),
                admin_state=rng.choice(list(AdminState)),
                admin_state_source=rng.choice(list(AdminStateSource)),
                beparams=rng.choice([{}, {"maxmem": 512}, {"vcpus": 4}]),
                hvparams=rng.choice([{}, {"acpi": False}]),
                disks=tuple(disk.uuid for disk in own),
                nics=tuple(
                    Nic(
                        uuid=f"c{number}.{index}",
                        mac=f"aa:00:00:{index:02x}:{number // 256:02x}:{number % 256:02x}",
                        ip=rng.choice([None, f"10.0.{number // 250}.{number % 250}"]),
                    )
                    for index in range(rng.randint(0, 2))
                ),
                tags=tuple(rng.sample(["prod", "test", "web", "db"], rng.randint(0, 2))),
                ctime=1000.0 + number,
            )
        )
    groups = [NodeGroup(uuid=f"g{number}", name=f"group{number}") for number in range(3)]
    return config(node_list, instances, groups=groups, disks=disks)


class StubSources:
    """Sources with canned answers; ``calls`` has what was asked, and of whom."""

    def __init__(self, snapshot: Config) -> None:
        self.config = snapshot
        self.calls: list[tuple[str, Any]] = []
        #: uuids of nodes that do not answer
        self.down: set[str] = set()
        #: node uuid -> node_info payload
        self.nodes: dict[str, NodeInfo] = {}
        #: node uuid -> what runs there
        self.running: dict[str, dict[str, InstanceInfo]] = {}
        self.console_of: dict[str, Console] = {}
        self.exported: dict[str, list[str]] = {}
        self.os: dict[str, list[OsInfo]] = {}
        self.providers: dict[str, list[ExtStorageInfo]] = {}
        self.queue: dict[int, JobView] = {}
        self.lock_list: list[LockView] = []
        self.facts = ClusterFacts(architecture=("64bits", "x86_64"))

    def _answers(self, uuids: Sequence[str], table: Mapping[str, Any], empty: Any) -> Any:
        return {
            uuid: NodeAnswer(NodeState.FAILED)
            if uuid in self.down
            else NodeAnswer.ok(table.get(uuid, empty))
            for uuid in uuids
        }

    def node_info(self, requests: Mapping[str, NodeRequest]) -> Answers[NodeInfo]:
        self.calls.append(("node_info", dict(requests)))
        return self._answers(list(requests), self.nodes, ("boot", None, None))

    def instances_info(
        self, nodes: Sequence[Node], hypervisors: Sequence[str]
    ) -> Answers[Mapping[str, InstanceInfo]]:
        self.calls.append(("instances_info", [node.uuid for node in nodes]))
        return self._answers([node.uuid for node in nodes], self.running, {})

    def consoles(self, instances: Sequence[Instance]) -> Mapping[str, NodeAnswer[Console]]:
        self.calls.append(("consoles", [instance.uuid for instance in instances]))
        return {uuid: NodeAnswer.ok(console) for uuid, console in self.console_of.items()}

    def exports(self, nodes: Sequence[Node]) -> Answers[Sequence[str]]:
        self.calls.append(("exports", [node.uuid for node in nodes]))
        return self._answers([node.uuid for node in nodes], self.exported, [])

    def os_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[OsInfo]]:
        self.calls.append(("os_diagnose", [node.uuid for node in nodes]))
        return self._answers([node.uuid for node in nodes], self.os, [])

    def extstorage_diagnose(self, nodes: Sequence[Node]) -> Answers[Sequence[ExtStorageInfo]]:
        self.calls.append(("extstorage_diagnose", [node.uuid for node in nodes]))
        return self._answers([node.uuid for node in nodes], self.providers, [])

    def job_ids(self, archived: bool) -> Sequence[int]:
        self.calls.append(("job_ids", archived))
        return [job_id for job_id, job in self.queue.items() if archived or not job.archived]

    def jobs(self, ids: Sequence[int]) -> Mapping[int, JobView]:
        self.calls.append(("jobs", list(ids)))
        return {job_id: self.queue[job_id] for job_id in ids if job_id in self.queue}

    def locks(self) -> Sequence[LockView]:
        self.calls.append(("locks", None))
        return self.lock_list

    def cluster_facts(self) -> ClusterFacts:
        self.calls.append(("cluster_facts", None))
        return self.facts
