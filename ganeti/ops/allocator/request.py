"""The request to an allocator: the cluster, its instances, and the question. Pure.

Sizes are MiB. The memory of instances that are marked as running but use less than they may is
counted as used, so that nobody is promised what they can take back. Forthcoming instances are
told as if they were running: what they will need is not free. The same holds for places that the
built-in allocator has just chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState, DiskTemplate
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.board.node_answers import SPINDLES, Answers, NodeFacts
from ganeti.placement import facts
from ganeti.storage import held
from ganeti.storage.registry import TEMPLATES, traits_of

VERSION = 2


def disk_space(template: str, sizes: Iterable[int]) -> int:
    """MiB that disks take on each of their nodes."""
    if template == DiskTemplate.DISKLESS:
        return 0
    overhead = traits_of(template).overhead if template in TEMPLATES else 0
    return sum(size + overhead for size in sizes)


def space_of(disks: Iterable[Disk]) -> int:
    """MiB that existing disks, each of its own template, take on each of their nodes."""
    return sum(disk_space(str(disk.dev_type), [disk.size]) for disk in disks)


def cluster(config: Config, answers: Answers, claimed: Iterable[facts.Instance] = ()) -> JsonObject:
    """Everything but the question; of nodes that did not answer only what does not change.

    ``claimed`` is what other jobs were given and the configuration does not have yet.
    """
    own = config.cluster
    found: JsonObject = {
        "version": VERSION,
        "cluster_name": own.cluster_name,
        "cluster_tags": list(own.tags),
        "enabled_hypervisors": list(own.enabled_hypervisors),
        "ipolicy": dict(own.ipolicy),
        "nodegroups": {
            group.uuid: {
                "name": group.name,
                "alloc_policy": str(group.alloc_policy),
                "networks": list(group.networks),
                "ipolicy": config.ipolicy(group.uuid),
                "tags": list(group.tags),
            }
            for group in config.groups.values()
        },
        "nodes": {node.name: _node(config, node, answers) for node in config.nodes.values()},
        "instances": {
            item.handle: instance(config, item)
            for item in config.instances.values()
            if item.primary_node in config.nodes and (item.hypervisor or item.forthcoming)
        },
    }
    for item in claimed:
        _take(found, item, str(own.enabled_hypervisors[0]))
    return found


def _take(amounts: JsonObject, item: facts.Instance, hypervisor: str) -> None:
    """Tell of a claimed place as of an instance that runs there."""
    places = [name for name in (item.primary, item.secondary) if name in amounts["nodes"]]
    if not places or item.name in amounts["instances"]:
        return
    for name in places:
        node = amounts["nodes"][name]
        if "free_memory" not in node:
            continue
        if name == item.primary:
            node["free_memory"] = max(0, node["free_memory"] - item.memory)
            node["i_pri_memory"] += item.memory
            node["i_pri_up_memory"] += item.memory
        if item.template in facts.LOCAL:
            node["free_disk"] = max(0, node["free_disk"] - item.disk)
    amounts["instances"][item.name] = {
        "tags": list(item.tags),
        "admin_state": str(AdminState.UP),
        "vcpus": item.vcpus,
        "memory": item.memory,
        "spindle_use": item.spindle_use,
        "os": "",
        "nodes": places,
        "nics": [],
        "disks": [
            {"dev_type": item.template, "size": size, "mode": "rw", "spindles": None}
            for size in item.disks
        ],
        "disk_template": item.template,
        "disks_active": True,
        "hypervisor": hypervisor,
        "disk_space_total": item.disk,
    }


def _node(config: Config, node: Node, answers: Answers) -> JsonObject:
    result: JsonObject = {
        "tags": list(node.tags),
        "primary_ip": node.primary_ip,
        "secondary_ip": node.secondary_ip,
        "offline": node.offline,
        "drained": node.drained,
        "master_candidate": node.master_candidate,
        "group": node.group,
        "master_capable": node.master_capable,
        "vm_capable": node.vm_capable,
        "ndparams": config.ndparams(node),
    }
    known = answers.nodes.get(node.uuid)
    if known is None or node.offline or not node.vm_capable:
        return result
    return {**_resources(config, node, known, answers.unit), **result}


def _resources(config: Config, node: Node, known: NodeFacts, unit: tuple[str, str]) -> JsonObject:
    free = known.number("memory_free")
    space = held.space(config, node.uuid, unit).amount
    spindles = held.space(config, node.uuid, (SPINDLES, unit[1])).amount
    primary_memory = up_memory = 0
    for item in config.primaries.get(node.uuid, []):
        memory = config.beparams(item)["maxmem"]
        primary_memory += memory
        if item.forthcoming or item.admin_state is AdminState.UP:
            up_memory += memory
            info = known.running.get(item.name)
            free -= max(0, memory - (info.memory if info else 0))
    return {
        "total_memory": known.number("memory_total"),
        "reserved_memory": known.number("memory_dom0"),
        "free_memory": max(0, free),
        "total_disk": known.room[0],
        "free_disk": max(0, known.room[1] - space),
        "total_spindles": known.spindles[0],
        "free_spindles": max(0, known.spindles[1] - spindles),
        "total_cpus": known.number("cpu_total"),
        "reserved_cpus": known.number("cpu_dom0"),
        "i_pri_memory": primary_memory,
        "i_pri_up_memory": up_memory,
    }


def instance(config: Config, item: Instance) -> JsonObject:
    """An existing instance."""
    be = config.beparams(item)
    template = config.disk_template(item)
    disks = config.disks_of(item)
    group = config.nodes[item.primary_node].group
    state = AdminState.UP if item.forthcoming else item.admin_state
    hypervisor = item.hypervisor or config.cluster.enabled_hypervisors[0]
    return {
        "tags": list(item.tags),
        "admin_state": str(state),
        "vcpus": be["vcpus"],
        "memory": be["maxmem"],
        "spindle_use": be["spindle_use"],
        "os": item.os,
        "nodes": [config.nodes[uuid].name for uuid in config.instance_nodes(item)],
        "nics": [
            _nic(nic.mac, nic.ip, config.nicparams_for(nic.nicparams, nic.network, group))
            for nic in item.nics
        ],
        "disks": [_disk(disk) for disk in disks],
        "disk_template": template,
        "disks_active": item.disks_active,
        "hypervisor": str(hypervisor),
        "disk_space_total": space_of(disks),
    }


def _nic(mac: str, ip: str | None, params: Mapping[str, object]) -> JsonObject:
    result: JsonObject = {"mac": mac, "ip": ip, "mode": params["mode"], "link": params["link"]}
    if params["mode"] == "bridged":
        result["bridge"] = params["link"]
    return result


def _disk(disk: Disk) -> JsonObject:
    return {
        "dev_type": disk.dev_type,
        "size": disk.size,
        "mode": disk.mode,
        "spindles": disk.spindles,
    }


# questions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewInstance:
    """An instance that does not exist yet."""

    name: str
    template: str
    memory: int
    vcpus: int
    disks: Sequence[Mapping[str, Any]]
    nics: Sequence[Mapping[str, object]]
    hypervisor: str
    os: str = ""
    tags: Sequence[str] = ()
    spindle_use: int = 1
    group_name: str | None = None
    #: how many nodes it needs
    nodes: int = 1
    #: not told to programs: whether a group may take it whose policy forbids its size
    ignore_policy: bool = False

    def question(self) -> JsonObject:
        return {
            "name": self.name,
            "disk_template": self.template,
            "group_name": self.group_name,
            "tags": list(self.tags),
            "os": self.os,
            "vcpus": self.vcpus,
            "memory": self.memory,
            "spindle_use": self.spindle_use,
            "disks": [dict(disk) for disk in self.disks],
            "disk_space_total": disk_space(self.template, [d["size"] for d in self.disks]),
            "nics": [dict(nic) for nic in self.nics],
            "required_nodes": self.nodes,
            "hypervisor": self.hypervisor,
        }

    def place_on(self, nodes: Sequence[str]) -> facts.Instance:
        """The instance as the placement model sees it: running, on nodes or on none yet."""
        sizes = [int(disk["size"]) for disk in self.disks]
        spindles = [int(disk.get("spindles") or 0) for disk in self.disks]
        primary, secondary = (*nodes, "", "")[:2]
        return facts.Instance(
            name=self.name,
            memory=self.memory,
            disk=disk_space(self.template, sizes),
            vcpus=self.vcpus,
            status="running",
            auto_balance=True,
            primary=primary,
            secondary=secondary,
            template=self.template,
            tags=tuple(self.tags),
            spindle_use=self.spindle_use,
            spindles=sum(spindles) if any(spindles) else None,
            disks=tuple(sizes),
            nics=len(self.nics),
        )


def allocate(new: NewInstance, restrict_to: Sequence[str] | None = None) -> JsonObject:
    """A place for one new instance; ``restrict_to`` names the only nodes it may choose."""
    return {"type": "allocate", **new.question(), **_restrict(restrict_to)}


def multi_allocate(
    new: Sequence[NewInstance], restrict_to: Sequence[str] | None = None
) -> JsonObject:
    """Places for several new instances at once."""
    questions = [{**item.question(), **_restrict(restrict_to)} for item in new]
    return {"type": "multi-allocate", "instances": questions}


def _restrict(nodes: Sequence[str] | None) -> JsonObject:
    return {} if nodes is None else {"restrict-to-nodes": list(nodes)}


def relocate(config: Config, item: Instance, leave: Sequence[str]) -> JsonObject:
    """Another node for an instance instead of the nodes named by ``leave``.

    Of mirrored disks beside others only the mirrored ones need room there.
    """
    disks = config.disks_of(item)
    mirrored = [disk for disk in disks if traits_of(disk.dev_type).mirrored]
    return {
        "type": "relocate",
        "name": item.handle,
        "disk_space_total": space_of(mirrored or disks),
        "required_nodes": 1,
        "relocate_from": list(leave),
    }


def allocate_secondary(item: Instance) -> JsonObject:
    """A secondary node for an instance that has none."""
    return {"type": "allocate-secondary", "name": item.handle}


def node_evacuate(names: Sequence[str], mode: str) -> JsonObject:
    """Moves of instances off the nodes that they have now."""
    return {"type": "node-evacuate", "instances": list(names), "evac_mode": mode}


def change_group(names: Sequence[str], groups: Sequence[str]) -> JsonObject:
    """Moves of instances to other groups (uuids); without groups to any other one."""
    return {"type": "change-group", "instances": list(names), "target_groups": list(groups)}
