"""The ssconf files: what every node may know without asking the master. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ganeti import constants
from ganeti.base.text import natural_sorted
from ganeti.config.failover_policy import may_start_elsewhere
from ganeti.model import repair_tags
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.network import Network

Item = TypeVar("Item", Instance, Disk, Network)
U = TypeVar("U", bound=str)


def values(
    config: Config, before: Config | None = None, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Content of each ``ssconf_<key>`` file, without the last newline.

    ``known`` are the values of the configuration ``before``; long ones that did not change are
    taken over.
    """
    cluster = config.cluster
    nodes = sorted(config.nodes.values(), key=lambda node: node.name)
    online = [node for node in nodes if not node.offline]
    candidates = [node for node in nodes if node.master_candidate]
    result = {
        "cluster_name": cluster.cluster_name,
        "cluster_tags": _lines(cluster.tags),
        "enabled_user_shutdown": str(cluster.enabled_user_shutdown),
        "file_storage_dir": cluster.file_storage_dir,
        "gluster_storage_dir": cluster.gluster_storage_dir,
        "shared_file_storage_dir": cluster.shared_file_storage_dir,
        "hypervisor_list": _lines(cluster.enabled_hypervisors),
        "instance_list": known["instance_list"]
        if known and before is not None and before.instances is config.instances
        else _lines(natural_sorted(i.name for i in config.instances.values() if i.name)),
        "ha_instances": _list_ended_without_lease(config),
        "maintain_node_health": str(cluster.maintain_node_health),
        "master_candidates": _lines(node.name for node in candidates),
        "master_candidates_certs": _lines(
            f"{uuid}={digest}" for uuid, digest in sorted(cluster.candidate_certs.items())
        ),
        "master_candidates_ips": _lines(node.primary_ip for node in candidates),
        "master_ip": cluster.master_ip,
        "master_netdev": cluster.master_netdev,
        "master_netmask": str(cluster.master_netmask),
        "master_node": config.master.name,
        "networks": _lines(f"{n.uuid} {n.name}" for n in config.networks.values()),
        "node_list": _lines(node.name for node in nodes),
        "node_primary_ips": _lines(f"{node.name} {node.primary_ip}" for node in nodes),
        "node_secondary_ips": _lines(f"{node.name} {node.secondary_ip}" for node in nodes),
        "node_vm_capable": _lines(f"{node.name}={node.vm_capable}" for node in nodes),
        "nodegroups": _lines(f"{g.uuid} {g.name}" for g in config.groups.values()),
        "offline_nodes": _lines(node.name for node in nodes if node.offline),
        "online_nodes": _lines(node.name for node in online),
        "primary_ip_family": str(cluster.primary_ip_family),
        "recovery_paused_until": str(cluster.recovery_paused_until or ""),
        "release_version": constants.RELEASE_VERSION,
        "ssh_ports": _lines(f"{n.name}={config.ndparams(n).get('ssh_port', 22)}" for n in nodes),
        "uid_pool": _lines(f"{low}-{high}" for low, high in cluster.uid_pool),
    }
    for hypervisor, params in cluster.hvparams.items():
        result[f"hvparams_{hypervisor}"] = _params(params)
    return result


def _list_ended_without_lease(config: Config) -> str:
    found = (i.name for i in config.instances.values() if i.name and may_start_elsewhere(config, i))
    return _lines(natural_sorted(found))


def _lines(items: Any) -> str:
    return "\n".join(items)


def _params(params: Mapping[str, object]) -> str:
    return "\n".join(f"{key}={value}" for key, value in sorted(params.items()))


def affects(before: Config, after: Config) -> bool:
    """Whether a change may have altered any of the files (cheap, never wrongly false)."""
    old, new = before.data, after.data
    return (
        old.cluster is not new.cluster
        or old.nodes is not new.nodes
        or old.nodegroups is not new.nodegroups
        or _has_other_facts(old.networks, new.networks)
        or _has_other_facts(old.instances, new.instances)
        or _has_other_facts(old.disks, new.disks)
    )


def _has_other_facts(old: Mapping[U, Item], new: Mapping[U, Item]) -> bool:
    if old is new:
        return False
    if len(old) != len(new):
        return True
    for uuid, item in new.items():
        former = old.get(uuid)
        if former is not item and (former is None or _facts(former) != _facts(item)):
            return True
    return False


def _facts(item: Instance | Disk | Network) -> tuple[object, ...]:
    """The facts of an object that the files have."""
    if isinstance(item, Instance):  # with the node goes the group, which may say something else
        ha = item.beparams.get("ha")
        return (item.name, ha, item.primary_node, item.disks, *repair_tags.select(item.tags))
    if isinstance(item, Disk):
        return (item.dev_type,)
    return (item.name,)
