"""Random clusters, written as ``config.data`` of the versions 2.7 to 3.1.

A cluster is first made in the neutral form :class:`Facts`, with nothing but what a user would miss.
:func:`render` then writes it as a version did. Both know nothing of the code under test.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

VERSIONS = (
    2_070_000, 2_080_000, 2_090_000, 2_100_000, 2_110_000, 2_120_000, 2_130_000, 2_140_000,
    2_150_000, 2_160_000, 3_000_000, 3_010_000,
)  # fmt: skip

Raw = dict[str, Any]


@dataclass
class FactDisk:
    uuid: str
    size: int
    place: list[Any]
    name: str | None = None
    #: volumes below a mirror: (uuid, group, volume, size)
    parts: list[tuple[str, str, str, int]] = field(default_factory=list)


@dataclass
class FactInstance:
    uuid: str
    name: str
    template: str
    primary: str
    secondary: str | None
    disks: list[FactDisk]
    nics: list[Raw]
    tags: list[str]
    up: bool
    memory: int
    port: int | None


@dataclass
class Facts:
    """A cluster; nodes and networks are referred to by uuid."""

    uuid: str
    nodes: dict[str, Raw]
    groups: dict[str, Raw]
    networks: dict[str, Raw]
    instances: list[FactInstance]
    tags: list[str]
    templates: list[str]


class Maker:
    """Makes one cluster out of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._ports = iter(range(11000, 14999))
        self._minors: dict[str, int] = {}
        self._macs = 0

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def tags(self) -> list[str]:
        words = ["prod", "web", "db:1", "a+b", "x/y"]
        return sorted(self.random.sample(words, self.random.randint(0, 3)))

    def facts(self) -> Facts:
        rnd = self.random
        groups = {
            self.uuid(): {"name": f"group{i}", "tags": self.tags()}
            for i in range(rnd.randint(1, 3))
        }
        networks = {
            self.uuid(): {"name": f"net{i}", "network": f"10.{i}.0.0/28", "tags": self.tags()}
            for i in range(rnd.randint(0, 2))
        }
        nodes = {}
        for number in range(rnd.randint(2, 5)):
            nodes[self.uuid()] = {
                "name": f"node{number}.example.com", "primary_ip": f"192.0.2.{number + 1}",
                "secondary_ip": f"198.51.100.{number + 1}", "group": rnd.choice(list(groups)),
                "master_candidate": number < 2, "offline": number > 3, "tags": self.tags(),
            }  # fmt: skip
        templates = ["plain", "drbd", "file", "sharedfile", "diskless", "rbd", "ext", "blockdev"]
        instances = [
            self.instance(number, nodes, networks, rnd.choice(templates))
            for number in range(rnd.randint(0, 8))
        ]
        return Facts(self.uuid(), nodes, groups, networks, instances, self.tags(), templates)

    def instance(
        self, number: int, nodes: dict[str, Raw], networks: dict[str, Raw], template: str
    ) -> FactInstance:
        rnd = self.random
        primary, secondary = rnd.sample(list(nodes), 2)
        name = f"web{number}.example.com"
        count = 0 if template == "diskless" else rnd.randint(1, 3)
        return FactInstance(
            uuid=self.uuid(), name=name, template=template, primary=primary,
            secondary=secondary if template == "drbd" else None,
            disks=[self.disk(template, primary, secondary, name, i) for i in range(count)],
            nics=[self.nic(networks) for _ in range(rnd.randint(0, 2))],
            tags=self.tags(), up=rnd.random() < 0.5, memory=rnd.choice([128, 512, 4096]),
            port=next(self._ports) if rnd.random() < 0.5 else None,
        )  # fmt: skip

    def nic(self, networks: dict[str, Raw]) -> Raw:
        self._macs += 1
        nic: Raw = {
            "mac": f"aa:00:00:00:00:{self._macs:02x}", "uuid": self.uuid(),
            "nicparams": self.random.choice([{}, {"mode": "bridged", "link": "br1"}]),
        }  # fmt: skip
        if networks and self.random.random() < 0.5:
            nic["network"] = self.random.choice(list(networks))
        return nic

    def minor(self, node: str) -> int:
        self._minors[node] = self._minors.get(node, -1) + 1
        return self._minors[node]

    def disk(self, template: str, primary: str, secondary: str, name: str, index: int) -> FactDisk:
        own, size = self.uuid(), self.random.choice([128, 1024, 20480])
        label = self.random.choice([None, f"data{index}"])
        volume = f"{own}.disk{index}"
        places: dict[str, list[Any]] = {
            "plain": ["xenvg", volume],
            "drbd": [
                primary, secondary, next(self._ports), self.minor(primary), self.minor(secondary),
                f"secret-{own}",
            ],
            "file": ["loop", f"/srv/ganeti/file-storage/{name}/{own}.file.disk{index}"],
            "sharedfile": ["loop", f"/srv/ganeti/shared-file-storage/{name}/{own}.disk{index}"],
            "rbd": ["rbd", f"{own}.rbd.disk{index}"],
            "ext": ["provider", f"{own}.ext.disk{index}"],
            "blockdev": ["manual", f"/dev/disk/by-id/{own}"],
        }  # fmt: skip
        parts = (
            [
                (self.uuid(), "xenvg", f"{volume}_data", size),
                (self.uuid(), "xenvg", f"{volume}_meta", 128),
            ]
            if template == "drbd"
            else []
        )
        return FactDisk(own, size, places[template], label, parts)


def facts(seed: int) -> Facts:
    """The cluster of a seed."""
    return Maker(seed).facts()


# how versions wrote it -----------------------------------------------------------------------


def render(known: Facts, version: int, seed: int = 0) -> Raw:
    """The content of ``config.data`` as a version wrote it."""
    return Writer(known, version, random.Random(seed)).config()


class Writer:
    """One cluster in the shape of one version."""

    def __init__(self, known: Facts, version: int, rnd: random.Random) -> None:
        self.known = known
        self.version = version
        self.random = rnd
        self.by_name = version < 2_100_000

    def since(self, minor: int) -> bool:
        """Whether the version is 2.minor or later."""
        return self.version >= 2_000_000 + minor * 10_000

    def node(self, uuid_: str) -> str:
        return str(self.known.nodes[uuid_]["name"]) if self.by_name else uuid_

    def stamps(self) -> Raw:
        serial = self.random.randint(1, 50)
        return {"ctime": 1_400_000_000.5, "mtime": 1_500_000_000.25, "serial_no": serial}

    def config(self) -> Raw:
        known = self.known
        raw: Raw = {"version": self.version, "cluster": self.cluster(), **self.stamps()}
        raw["nodes"] = {
            self.node(key): {
                **node, **self.stamps(), "uuid": key, "drained": False, "master_capable": True,
                "vm_capable": True, "powered": True,
                "ndparams": self.random.choice([{}, {"spindle_count": 4}]),
            }
            for key, node in known.nodes.items()
        }  # fmt: skip
        raw["nodegroups"] = {key: self.group(key, group) for key, group in known.groups.items()}
        raw["networks"] = {key: self.network(key, net) for key, net in known.networks.items()}
        if self.since(14):
            raw["disks"] = {}
        if self.since(13):
            raw["filters"] = {}
        raw["instances"] = {
            (one.name if self.by_name else one.uuid): self.instance(one, raw)
            for one in known.instances
        }
        return raw

    def cluster(self) -> Raw:
        known = self.known
        result: Raw = {
            "cluster_name": "cluster.example.com", "uuid": known.uuid, "tags": known.tags,
            "master_node": self.node(next(iter(known.nodes))), "master_ip": "192.0.2.100",
            "master_netdev": "eth0", "master_netmask": 24, "use_external_mip_script": False,
            "rsahostkeypub": "AAAA", "highest_used_port": 14000, "tcpudp_port_pool": [14500],
            "mac_prefix": "aa:00:00", "volume_group_name": "xenvg", "reserved_lvs": ["xenvg/root"],
            "drbd_usermode_helper": "/bin/true", "file_storage_dir": "/srv/ganeti/file-storage",
            "shared_file_storage_dir": "/srv/ganeti/shared-file-storage",
            "enabled_hypervisors": ["kvm", "fake"], "os_hvp": {"debian": {"kvm": {"acpi": False}}},
            "hvparams": {"kvm": self.kvm(), "fake": {}, "lxc": {"cpu_mask": ""}},
            "beparams": {"default": {"minmem": 128, "maxmem": 256, "vcpus": 2, "auto_balance": True,
                                     "spindle_use": 1, "always_failover": False}},
            "nicparams": {"default": {"mode": "bridged", "link": "br0"}},
            "osparams": {"debian": {"size": "small"}},
            "diskparams": {"drbd": {"resync-rate": 1024}},
            "ndparams": {"oob_program": "", "spindle_count": 1}, "ipolicy": self.policy(),
            "candidate_pool_size": 5, "modify_etc_hosts": True, "modify_ssh_setup": True,
            "maintain_node_health": False, "uid_pool": [[1000, 1010]], "default_iallocator": "hail",
            "hidden_os": ["old"], "blacklisted_os": [], "primary_ip_family": 2,
            "prealloc_wipe_disks": False, "hv_state_static": {}, "disk_state_static": {},
            **self.stamps(),
        }  # fmt: skip
        result |= self.render_newer()
        if self.version == 2_080_000:
            result["enabled_storage_types"] = ["lvm-vg"]
        return result

    def render_newer(self) -> Raw:
        """What came after 2.7."""
        keys: list[tuple[int, Raw]] = [
            (9, {"enabled_disk_templates": self.known.templates}),
            (10, {"default_iallocator_params": {}}),
            (11, {"candidate_certs": self.certificates(), "gluster_storage_dir": "/run/gluster"}),
            (12, {"osparams_private_cluster": {"debian": {"key": "hidden"}}, "install_image": "",
                  "instance_communication_network": "", "zeroing_image": "", "max_running_jobs": 7,
                  "compression_tools": ["gzip"], "enabled_user_shutdown": True}),
            (13, {"max_tracked_jobs": 9,
                  "data_collectors": {"lv": {"active": False, "interval": 1000000}}}),
            (16, {"ssh_key_type": "rsa", "ssh_key_bits": 4096}),
        ]  # fmt: skip
        found: Raw = {}
        for minor, values in keys:
            if self.since(minor):
                found |= values
        return found

    def certificates(self) -> Raw:
        return {key: "AA:BB" for key, node in self.known.nodes.items() if node["master_candidate"]}

    def kvm(self) -> Raw:
        found: Raw = {"acpi": True, "kernel_path": "", "vhost_net": False}
        if self.version < 3_010_000:
            found["disk_discard"] = "default"
        return found

    def policy(self) -> Raw:
        low = {
            "memory-size": 64,
            "cpu-count": 1,
            "disk-count": 0,
            "disk-size": 4,
            "nic-count": 0,
            "spindle-use": 1,
        }
        high = {
            **low,
            "memory-size": 8192,
            "cpu-count": 8,
            "disk-count": 16,
            "disk-size": 1048576,
            "nic-count": 8,
            "spindle-use": 12,
        }
        rest: Raw = {
            "std": dict(low),
            "vcpu-ratio": 4.0,
            "spindle-ratio": 32.0,
            "disk-templates": self.known.templates,
        }
        return {
            **rest,
            **(
                {"minmax": [{"min": low, "max": high}]}
                if self.since(8)
                else {"min": low, "max": high}
            ),
        }

    def group(self, key: str, group: Raw) -> Raw:
        own: Raw = {}
        if self.random.random() < 0.5:
            own = {"vcpu-ratio": 2.0}
            if not self.since(8):
                own |= {"min": {"memory-size": 96}, "max": {}, "std": {}}
        result: Raw = {
            **group, **self.stamps(), "uuid": key, "alloc_policy": "preferred", "ndparams": {},
            "ipolicy": own, "diskparams": {}, "networks": {},
        }  # fmt: skip
        for net in self.known.networks:
            result["networks"][net] = {"mode": "bridged", "link": "br0"}
            if self.since(12):
                result["networks"][net]["vlan"] = "10"
        if self.since(11):
            result["members"] = []
        return result

    def network(self, key: str, net: Raw) -> Raw:
        result: Raw = {
            **net, **self.stamps(), "uuid": key, "reservations": "0" * 16,
            "ext_reservations": "1" + "0" * 14 + "1",
        }  # fmt: skip
        if not self.since(8):
            result |= {"network_type": None, "family": 4}
        return result

    def instance(self, one: FactInstance, raw: Raw) -> Raw:
        result: Raw = {
            "name": one.name, "uuid": one.uuid, "primary_node": self.node(one.primary),
            "os": "debian+minimal", "hypervisor": "kvm", "hvparams": {"acpi": True},
            "beparams": {"minmem": one.memory, "maxmem": one.memory}, "osparams": {"size": "big"},
            "admin_state": "up" if one.up else "down", "tags": one.tags,
            "nics": [self.nic(nic) for nic in one.nics], **self.stamps(),
        }  # fmt: skip
        if one.port is not None:
            result["network_port"] = one.port
        if self.since(8):
            result["disks_active"] = one.up
        if self.since(12):
            result |= {"osparams_private": {"key": "private"}, "admin_state_source": "admin"}
        if self.version < 3_000_000:
            result["disk_template"] = one.template
        disks = [self.disk(one, disk, index) for index, disk in enumerate(one.disks)]
        if self.since(14):
            for disk in disks:
                raw["disks"][disk["uuid"]] = {**disk, **self.stamps()}
            result["disks"] = [disk["uuid"] for disk in disks]
        else:
            result["disks"] = disks
        return result

    def nic(self, nic: Raw) -> Raw:
        result = dict(nic)
        if not self.since(8):
            del result["uuid"]
            if "network" in result:
                result["network"] = self.known.networks[result["network"]]["name"]
        return result

    def disk(self, one: FactInstance, disk: FactDisk, index: int) -> Raw:
        place = list(disk.place)
        if one.template == "drbd":
            place[:2] = [self.node(place[0]), self.node(place[1])]
        result: Raw = {
            "dev_type": self.kind(one.template), "logical_id": place, "size": disk.size,
            "iv_name": f"disk/{index}", "mode": "rw", "params": {}, "uuid": disk.uuid,
            "children": [self.part(part, one) for part in disk.parts],
        }  # fmt: skip
        if self.since(8) and disk.name is not None:
            result["name"] = disk.name
        if not self.since(11):
            result["physical_id"] = list(place)
        if self.since(9):
            result["spindles"] = 2
        if self.since(14):
            result["nodes"] = self.disk_nodes(one)
        return result

    def disk_nodes(self, one: FactInstance) -> list[str]:
        if one.template in ("plain", "file", "drbd"):
            return [node for node in (one.primary, one.secondary) if node]
        return []

    def part(self, part: tuple[str, str, str, int], one: FactInstance) -> Raw:
        own, group, volume, size = part
        result: Raw = {
            "dev_type": self.kind("plain"), "logical_id": [group, volume], "size": size,
            "uuid": own, "params": {}, "children": [],
        }  # fmt: skip
        if not self.since(11):
            result["physical_id"] = [group, volume]
        if self.since(14):
            result["nodes"] = self.disk_nodes(one)
        return result

    def kind(self, template: str) -> str:
        if self.since(11):
            return template
        return {"plain": "lvm", "drbd": "drbd8", "sharedfile": "file"}.get(template, template)
