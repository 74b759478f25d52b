"""The problems of a configuration that can be found in it alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ganeti.config import drbd
from ganeti.config.candidates import OLD_CERTIFICATE
from ganeti.model import address_pool
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.storage.registry import traits_of


def problems(config: Config) -> list[str]:
    """One sentence for each defect; an empty list for a sound configuration."""
    return [
        *defects(config),
        *(
            f"node {node} belongs to the missing node group {group}"
            for node, group in find_lost_nodes(config).items()
        ),
        *(
            f"instance {instance} has the missing primary node {node}"
            for instance, node in find_lost_instances(config).items()
        ),
    ]


def find_lost_nodes(config: Config) -> dict[str, str]:
    """Names of nodes whose node group does not exist, with its uuid."""
    nodes = config.nodes.values()
    return {node.name: node.group for node in nodes if node.group not in config.groups}


def find_lost_instances(config: Config) -> dict[str, str]:
    """Instances whose primary node does not exist, with its uuid; a reservation may have none."""
    return {
        instance.handle: instance.primary_node or "(none)"
        for instance in config.instances.values()
        if instance.primary_node not in config.nodes
        and (instance.primary_node or not instance.forthcoming)
    }


def defects(config: Config) -> list[str]:
    """The problems besides lost nodes and instances, one sentence each."""
    return [
        *_cluster(config),
        *_nodes(config),
        *_instances(config),
        *_disks(config),
        *_mirrors(config),
        *_networks(config),
        *_pools(config),
        *_unique(config),
    ]


def _cluster(config: Config) -> Iterator[str]:
    cluster = config.cluster
    if cluster.master_node not in config.nodes:
        yield f"master node {cluster.master_node} is not in the list of nodes"
    elif not config.master.master_candidate:
        yield f"master node {config.master.name} is not a master candidate"
    if not cluster.enabled_hypervisors:
        yield "no hypervisor is enabled"
    for hypervisor in cluster.enabled_hypervisors:
        if hypervisor not in cluster.hvparams:
            yield f"hypervisor {hypervisor} is enabled but has no parameters"
    if not cluster.enabled_disk_templates:
        yield "no disk template is enabled"
    for uuid in cluster.candidate_certs:
        if uuid.removesuffix(OLD_CERTIFICATE) not in config.nodes:
            yield f"certificate of node {uuid}, which does not exist, is accepted"


def _nodes(config: Config) -> Iterator[str]:
    if not config.groups:
        yield "there is no node group"
    for node in config.nodes.values():
        if sum((node.master_candidate, node.drained, node.offline)) > 1:
            yield (f"node {node.name} is more than one of master candidate, drained and offline")
        if node.master_candidate and node.uuid not in config.cluster.candidate_certs:
            yield f"master candidate {node.name} has no accepted certificate"


def _instances(config: Config) -> Iterator[str]:
    for instance in config.instances.values():
        what = f"instance {instance.name or instance.uuid}"
        if not instance.forthcoming:
            yield from _check_real_instance(config, instance, what)
        seen: set[str] = set()
        for uuid in instance.disks:
            if uuid not in config.disks:
                yield f"{what} has the missing disk {uuid}"
            if uuid in seen:
                yield f"{what} has disk {uuid} twice"
            seen.add(uuid)


def _check_real_instance(config: Config, instance: Instance, what: str) -> Iterator[str]:
    if not instance.name:
        yield f"{what} has no name"
    if instance.hypervisor is None:
        yield f"{what} has no hypervisor"
    elif instance.hypervisor not in config.cluster.enabled_hypervisors:
        yield f"{what} uses hypervisor {instance.hypervisor}, which is not enabled"
    for index, uuid in enumerate(instance.disks):
        disk = config.disks.get(uuid)
        if disk is not None and disk.iv_name != f"disk/{index}":
            yield f"{what}: disk {uuid} is number {index} but is called {disk.iv_name}"


def _disks(config: Config) -> Iterator[str]:
    owners: Counter[str] = Counter()
    for instance in config.instances.values():
        owners.update(set(instance.disks))
    for uuid, count in owners.items():
        if count > 1:
            names = (item.name for item in config.instances.values() if uuid in item.disks)
            yield f"disk {uuid} is attached to {count} instances: {', '.join(sorted(names))}"
    places: Counter[tuple[object, ...]] = Counter()
    for key, disk in config.disks.items():
        if key != disk.uuid:
            yield f"disk {disk.uuid} is listed under the uuid {key}"
        if disk.forthcoming:
            continue
        if disk.dev_type is None or not disk.logical_id:
            yield f"disk {disk.uuid} has no type or no logical id"
            continue
        if not _has_place(disk):
            yield f"disk {disk.uuid} has a logical id that is not a place of a {disk.dev_type} disk"
            continue
        for node in disk.nodes:
            if node not in config.nodes:
                yield f"disk {disk.uuid} lies on the missing node {node}"
        owner = config.owner(disk.uuid)
        if owner is not None and disk.nodes and owner.primary_node not in disk.nodes:
            yield f"disk {disk.uuid} does not lie on the primary node of {owner.name}"
        places.update(_places(disk))
    for (kind, logical_id, _where), count in places.items():
        if count > 1:
            yield f"{count} disks of type {kind} use the same place {logical_id}"


def _has_place(disk: Disk) -> bool:
    """Whether its logical id, and those of its parts, are made of names and numbers."""
    if drbd.is_drbd(disk) and not drbd.has_place(disk):
        return False
    plain = all(isinstance(part, str | int) for part in disk.logical_id)
    return plain and all(map(_has_place, disk.children))


def _places(disk: Disk) -> Iterator[tuple[object, ...]]:
    """Yield the places of the data of a disk; those of a mirrored one are in its parts."""
    traits = traits_of(disk.dev_type)
    if not traits.mirrored:
        where = disk.nodes if traits.file_based and not traits.shared else ()
        yield (disk.dev_type, tuple(disk.logical_id), where)
    for child in disk.children:
        yield from _places(child)


def _mirrors(config: Config) -> Iterator[str]:
    """A minor or secret that two disks share would write one disk's data into the other."""
    for node, minors in drbd.minor_map(config).items():
        name = config.nodes[node].name if node in config.nodes else node
        for minor, disks in minors.items():
            if len(disks) > 1:
                yield f"DRBD minor {minor} of node {name} belongs to disks {', '.join(disks)}"
    secrets = Counter(str(disk.logical_id[5]) for disk in drbd.disks(config))
    for disk in drbd.disks(config):
        if disk.logical_id[0] == disk.logical_id[1]:
            yield f"both sides of disk {disk.uuid} are on one node"
        if secrets[str(disk.logical_id[5])] > 1:
            yield f"disk {disk.uuid} has the same DRBD secret as another disk"


def _networks(config: Config) -> Iterator[str]:
    for group in config.groups.values():
        for uuid in group.networks:
            if uuid not in config.networks:
                yield f"node group {group.name} is connected to the missing network {uuid}"
    for instance in config.instances.values():
        node = config.nodes.get(instance.primary_node)
        own_group = None if node is None else config.groups.get(node.group)
        for index, nic in enumerate(instance.nics):
            what = f"NIC {index} of instance {instance.name or instance.uuid}"
            network = config.networks.get(nic.network) if nic.network else None
            if nic.network and network is None:
                yield f"{what} is in the missing network {nic.network}"
            elif network and own_group and network.uuid not in own_group.networks:
                yield (
                    f"{what} is in network {network.name}, which is not connected to node group"
                    f" {own_group.name}"
                )


def _pools(config: Config) -> Iterator[str]:
    """An address that the pool takes for free would be given to a second guest."""
    users: dict[str, Counter[str]] = {uuid: Counter() for uuid in config.networks}
    for instance in config.instances.values():
        for nic in instance.nics:
            if nic.network in users and nic.ip:
                users[nic.network][nic.ip] += 1
    for network in config.networks.values():
        bits = (network.reservations, network.ext_reservations)
        try:
            size = address_pool.size(network)
        except ValueError:
            yield f"network {network.name} has an invalid address: '{network.network[:60]}'"
            continue
        if any(len(text) != size for text in bits if text is not None):
            yield f"the map of addresses of network {network.name} has not one place for each"
            continue
        used = set(address_pool.addresses(network, address_pool.make_own_map(network)))
        for address, count in users[network.uuid].items():
            where = f"address {address} of network {network.name}"
            if count > 1:
                yield f"{where} is used by {count} NICs"
            if not address_pool.contains(network, address):
                yield f"{address} is used in network {network.name} ({network.network})"
            elif address not in used:
                yield f"{where} is used by an instance but free in the pool"
        for address in sorted(used - users[network.uuid].keys()):
            yield f"address {address} of network {network.name} is taken, but no instance uses it"


def _unique(config: Config) -> Iterator[str]:
    names = Counter(i.name for i in config.instances.values() if i.name)
    nodes = Counter(node.name for node in config.nodes.values())
    networks = Counter(network.name for network in config.networks.values())
    macs = Counter(nic.mac for i in config.instances.values() for nic in i.nics)
    ports = Counter(i.network_port for i in config.instances.values() if i.network_port)
    ports.update(port for port in map(drbd.port, config.disks.values()) if port)
    for what, counter in (
        ("instance name", names),
        ("node name", nodes),
        ("network name", networks),
        ("MAC address", macs),
        ("TCP port", ports),
    ):
        for value, count in counter.items():
            if count > 1:
                yield f"{what} {value} is used {count} times"
    for port in set(ports) & set(config.cluster.tcpudp_port_pool):
        yield f"TCP port {port} is used and in the pool of free ports"
