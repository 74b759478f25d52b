"""The whole configuration as one immutable value, with the look-ups everybody needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, ClassVar

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.base.typed import doc
from ganeti.model import base
from ganeti.model.base import ConfigObject
from ganeti.model.cluster import Cluster
from ganeti.model.disk import Disk
from ganeti.model.enums import MIXED_TEMPLATE, DiskTemplate
from ganeti.model.filter_rule import FilterRule
from ganeti.model.group import NodeGroup
from ganeti.model.ids import DiskUuid, GroupUuid, ImageUuid, InstanceUuid, NetworkUuid, NodeUuid
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.lookup import find, find_by_name
from ganeti.model.network import Network
from ganeti.model.node import Node
from ganeti.model.node_state import VOLUMES, fill_states
from ganeti.model.params import GLOBAL_NODE_PARAMS, fill

#: Container name in ``config.data`` -> class of its members.
CONTAINERS: Mapping[str, type[ConfigObject]] = {
    "nodes": Node,
    "nodegroups": NodeGroup,
    "instances": Instance,
    "networks": Network,
    "disks": Disk,
    "filters": FilterRule,
    "images": Image,
}


class ConfigData(ConfigObject, frozen=True, kw_only=True):
    """Content of ``config.data``; containers are keyed by uuid and never changed in place."""

    left_out_empty: ClassVar[frozenset[str]] = frozenset({"images"})

    version: Annotated[int, doc("Version of the software that wrote it: 3020000 for 3.2")]
    cluster: Annotated[Cluster, doc("The cluster itself")]
    nodes: Annotated[dict[NodeUuid, Node], doc("All nodes, by UUID")] = {}
    nodegroups: Annotated[dict[GroupUuid, NodeGroup], doc("All node groups, by UUID")] = {}
    instances: Annotated[
        dict[InstanceUuid, Instance], doc("All instances and reservations, by UUID")
    ] = {}
    networks: Annotated[dict[NetworkUuid, Network], doc("All networks, by UUID")] = {}
    disks: Annotated[dict[DiskUuid, Disk], doc("All disks, attached or not, by UUID")] = {}
    filters: Annotated[dict[str, FilterRule], doc("All filter rules for jobs, by UUID")] = {}
    images: Annotated[dict[ImageUuid, Image], doc("All images, by UUID")] = {}
    ctime: Annotated[float, doc("When the file was first written, in seconds since 1970")] = 0.0
    mtime: Annotated[
        float, doc("When the configuration was last changed, in seconds since 1970")
    ] = 0.0
    serial_no: Annotated[int, doc("Number of the last change; each change adds one")] = 1


class Config:
    """An immutable view on one state of the cluster. Look-ups build their index on first use."""

    def __init__(self, data: ConfigData) -> None:
        self.data = data

    @property
    def cluster(self) -> Cluster:
        return self.data.cluster

    @property
    def nodes(self) -> dict[NodeUuid, Node]:
        return self.data.nodes

    @property
    def groups(self) -> dict[GroupUuid, NodeGroup]:
        return self.data.nodegroups

    @property
    def instances(self) -> dict[InstanceUuid, Instance]:
        return self.data.instances

    @property
    def networks(self) -> dict[NetworkUuid, Network]:
        return self.data.networks

    @property
    def disks(self) -> dict[DiskUuid, Disk]:
        return self.data.disks

    @property
    def images(self) -> dict[ImageUuid, Image]:
        return self.data.images

    @property
    def master(self) -> Node:
        return self.data.nodes[self.cluster.master_node]

    # names -------------------------------------------------------------------------------

    @cached_property
    def _instance_names(self) -> dict[str, Instance]:
        return {obj.name: obj for obj in self.instances.values() if obj.name}

    @cached_property
    def _node_names(self) -> dict[str, Node]:
        return {obj.name: obj for obj in self.nodes.values()}

    def node(self, name: str) -> Node:
        """Node by full name, short name (prefix up to a dot) or uuid; OpPrereqError if none.

        Host names are the same in upper and lower case.
        """
        return find("node", name, self.nodes, self._node_names)

    def instance(self, name: str) -> Instance:
        """Instance by full name, short name or uuid, as for nodes; OpPrereqError if none."""
        return find("instance", name, self.instances, self._instance_names)

    def find_instance(self, name: str) -> Instance | None:
        """As :meth:`instance`, but None when the name means nothing, or several."""
        try:
            return find_by_name("instance", name, self.instances, self._instance_names)
        except errors.OpPrereqError:
            return None

    def find_by_handle(self, handle: str) -> Instance | None:
        """The instance that has this name or, while it has none, this uuid; no short names."""
        return self._instance_names.get(handle) or self.instances.get(InstanceUuid(handle))

    def group(self, name: str) -> NodeGroup:
        """Node group by name or uuid (no short forms); OpPrereqError if none."""
        by_name = {group.name: group for group in self.groups.values()}
        return find("node group", name, self.groups, by_name, short=False)

    def network(self, name: str) -> Network:
        by_name = {network.name: network for network in self.networks.values()}
        return find("network", name, self.networks, by_name, short=False)

    def image(self, name: str) -> Image:
        """Image by name or uuid (no short forms); OpPrereqError if none."""
        by_name = {image.name: image for image in self.images.values()}
        return find("image", name, self.images, by_name, short=False)

    def disk(self, name: str) -> Disk:
        """Disk by uuid, by name, or by its place as in ``web1/0``; OpPrereqError if none or many.

        Names of disks need not be unique; the uuid always is.
        """
        found = self.disks.get(DiskUuid(name))
        if found is not None:
            return found
        named = [disk for disk in self.disks.values() if disk.name == name]
        if len(named) == 1:
            return named[0]
        if named:
            raise errors.make_not_unique_error(
                f"{len(named)} disks are called '{name}'; use the uuid:"
                f" {', '.join(sorted(disk.uuid for disk in named))}",
            )
        owner, slash, index = name.rpartition("/")
        if slash and index.isascii() and index.isdigit():
            return self._disk_at(owner, int(index))
        known = [disk.name for disk in self.disks.values() if disk.name]
        raise errors.make_unknown_error(f"disk '{name}' is not known{nearest(name, known)}")

    def _disk_at(self, owner: str, index: int) -> Disk:
        instance = self.instance(owner)
        if index < len(instance.disks) and instance.disks[index] in self.disks:
            return self.disks[instance.disks[index]]
        raise errors.make_unknown_error(
            f"instance {instance.name} has no disk {index}; it has {len(instance.disks)},"
            " counted from 0",
        )

    def has_instance_name(self, name: str) -> bool:
        return name in self._instance_names

    # relations ---------------------------------------------------------------------------

    @cached_property
    def _owners(self) -> dict[str, Instance]:
        return {uuid: item for item in self.instances.values() for uuid in item.disks}

    def owner(self, disk_uuid: DiskUuid) -> Instance | None:
        """The instance that a disk is attached to; None for a detached one."""
        return self._owners.get(disk_uuid)

    def list_detached_disks(self, node_uuid: NodeUuid) -> list[Disk]:
        """Disks without an instance that a node holds."""
        return [
            disk
            for uuid, disk in self.disks.items()
            if node_uuid in disk.nodes and uuid not in self._owners
        ]

    def disks_of(self, instance: Instance) -> list[Disk]:
        """Disks in the order in which the guest sees them."""
        return [self.disks[uuid] for uuid in instance.disks]

    def disk_template(self, instance: Instance) -> str:
        """``diskless``, the one template of all disks, or ``mixed``.

        Of a reservation whose disks have no template yet: the one it is to have.
        """
        kinds = {self.disks[uuid].dev_type for uuid in instance.disks if uuid in self.disks}
        kinds.discard(None)
        if not kinds and instance.reservation is not None:
            kinds.add(instance.reservation.disk_template)
            kinds.discard(None)
        if not kinds:
            return str(DiskTemplate.DISKLESS)
        return MIXED_TEMPLATE if len(kinds) > 1 else str(next(iter(kinds)))

    def secondary_nodes(self, instance: Instance) -> list[NodeUuid]:
        """Uuids of nodes other than the primary that hold data of the instance's disks."""
        found: dict[NodeUuid, None] = {}
        for disk in self.disks_of(instance):
            if len(disk.nodes) > 1:
                found.update(dict.fromkeys(disk.nodes))
        found.pop(instance.primary_node, None)
        return list(found)

    def instance_nodes(self, instance: Instance) -> list[NodeUuid]:
        """Primary node first, then the secondaries; one without a place has none."""
        primary = [instance.primary_node] if instance.primary_node else []
        return [*primary, *self.secondary_nodes(instance)]

    @cached_property
    def forthcoming(self) -> tuple[Instance, ...]:
        """Instances that are reserved, or being made."""
        return tuple(item for item in self.instances.values() if item.forthcoming)

    @cached_property
    def forthcoming_disks(self) -> tuple[Disk, ...]:
        """Disks that are reserved, or being made: no node has them for sure."""
        return tuple(disk for disk in self.disks.values() if disk.forthcoming)

    @cached_property
    def primaries(self) -> dict[NodeUuid, list[Instance]]:
        """Node uuid -> instances that have it as primary node."""
        result: dict[NodeUuid, list[Instance]] = {uuid: [] for uuid in self.nodes}
        for instance in self.instances.values():
            result.setdefault(instance.primary_node, []).append(instance)
        return result

    @cached_property
    def secondaries(self) -> dict[NodeUuid, list[Instance]]:
        """Node uuid -> instances that have it as secondary node."""
        result: dict[NodeUuid, list[Instance]] = {uuid: [] for uuid in self.nodes}
        for instance in self.instances.values():
            for uuid in self.secondary_nodes(instance):
                result.setdefault(uuid, []).append(instance)
        return result

    def group_nodes(self, group_uuid: GroupUuid) -> list[Node]:
        return [node for node in self.nodes.values() if node.group == group_uuid]

    def online_nodes(self) -> list[Node]:
        return [node for node in self.nodes.values() if not node.offline]

    def candidates(self) -> list[Node]:
        """Master candidates, the master included."""
        return [node for node in self.nodes.values() if node.master_candidate]

    # parameters --------------------------------------------------------------------------

    def hvparams(self, instance: Instance) -> JsonObject:
        """Complete hypervisor parameters: cluster, then OS, then instance."""
        return self.hvparams_for(instance.real_hypervisor, instance.os, instance.hvparams)

    def hvparams_for(self, hypervisor: str, os_name: str, own: Mapping[str, object]) -> JsonObject:
        cluster = self.cluster
        base_os = os_name.partition("+")[0]
        return fill(
            cluster.hvparams.get(hypervisor, {}),
            cluster.os_hvp.get(base_os, {}).get(hypervisor, {}),
            cluster.os_hvp.get(os_name, {}).get(hypervisor, {}) if os_name != base_os else {},
            own,
        )

    def beparams(self, instance: Instance) -> JsonObject:
        """Complete backend parameters: cluster, then node group, then instance."""
        return self.beparams_for({**self.group_beparams(instance), **instance.beparams})

    def group_beparams(self, instance: Instance) -> Mapping[str, object]:
        """Backend parameters of the group of the primary node; empty without a node."""
        node = self.nodes.get(instance.primary_node)
        group = None if node is None else self.groups.get(node.group)
        return {} if group is None else group.beparams

    def beparams_for(self, own: Mapping[str, object]) -> JsonObject:
        return fill(self.cluster.beparams.get("default", {}), own)

    def osparams_for(self, os_name: str, own: Mapping[str, object]) -> JsonObject:
        """OS parameters: cluster values of the OS, then of OS with variant, then own."""
        base_os = os_name.partition("+")[0]
        values = self.cluster.osparams
        variant = values.get(os_name, {}) if os_name != base_os else {}
        return fill(values.get(base_os, {}), variant, own)

    def private_osparams_for(self, os_name: str, own: Mapping[str, object]) -> JsonObject:
        """Private OS parameters: cluster values of the OS, then of OS with variant, then own."""
        base_os = os_name.partition("+")[0]
        values = self.cluster.osparams_private_cluster
        variant = values.get(os_name, {}) if os_name != base_os else {}
        return fill(values.get(base_os, {}), variant, own)

    def nicparams_for(
        self,
        own: Mapping[str, object],
        network: NetworkUuid | None = None,
        group: GroupUuid | None = None,
    ) -> JsonObject:
        """NIC parameters: cluster, then the network's connection to the group, then own."""
        connected: Mapping[str, object] = {}
        if network and group and group in self.groups:
            connected = self.groups[group].networks.get(network, {})
        return fill(self.cluster.nicparams.get("default", {}), connected, own)

    def ndparams(self, node: Node) -> JsonObject:
        """Node parameters: cluster, then group, then node (but not those of the whole group)."""
        group = self.groups.get(node.group)
        own = {key: node.ndparams[key] for key in node.ndparams if key not in GLOBAL_NODE_PARAMS}
        return fill(self.cluster.ndparams, group.ndparams if group else {}, own)

    def hv_state(self, node: Node) -> JsonObject:
        """Resources set aside of each hypervisor; a key of the node wins over group and cluster."""
        return fill_states(*(each.hv_state_static for each in self._levels(node)))

    def disk_state(self, node: Node) -> JsonObject:
        """Space set aside in each volume group; a key of the node wins over group and cluster."""
        levels = (each.disk_state_static or {} for each in self._levels(node))
        return fill_states(*(level.get(VOLUMES) for level in levels))

    def _levels(self, node: Node) -> list[Cluster | NodeGroup | Node]:
        """Objects whose settings hold for a node, the most general one first."""
        group = self.groups.get(node.group)
        return [self.cluster, *([group] if group else []), node]

    def diskparams(self, template: str, group_uuid: GroupUuid) -> JsonObject:
        group = self.groups.get(group_uuid)
        own = group.diskparams.get(template, {}) if group else {}
        return fill(self.cluster.diskparams.get(template, {}), own)

    def ipolicy(self, group_uuid: GroupUuid) -> JsonObject:
        group = self.groups.get(group_uuid)
        return fill(self.cluster.ipolicy, group.ipolicy if group else {})

    # changes -----------------------------------------------------------------------------

    def apply(
        self,
        puts: Iterable[tuple[str, str, ConfigObject]],
        deletes: Iterable[tuple[str, str]],
        cluster: Cluster | None,
        *,
        mtime: float,
    ) -> Config:
        """The next state: objects (container, uuid, object) put, (container, uuid) deleted."""
        changed: dict[str, JsonObject] = {}
        for container, uuid, obj in puts:
            self._editable(changed, container)[uuid] = obj
        for container, uuid in deletes:
            self._editable(changed, container).pop(uuid, None)
        if cluster is not None:
            return Config(self._make_next(changed, cluster, mtime))
        return Config(self._make_next(changed, self.cluster, mtime))

    def _editable(self, changed: dict[str, JsonObject], container: str) -> JsonObject:
        if container not in changed:
            changed[container] = dict(getattr(self.data, container))
        return changed[container]

    def _make_next(
        self, changed: Mapping[str, object], cluster: Cluster, mtime: float
    ) -> ConfigData:
        return base.replace(
            self.data,
            cluster=cluster,
            mtime=mtime,
            serial_no=self.data.serial_no + 1,
            **changed,
        )
