"""Look-up tables over one configuration snapshot, each built when a query first needs it.

They are kept for the two latest snapshots, so queries between two changes share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from ganeti.base.text import natural_key
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.filter_rule import FilterRule
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.node import Node

O = TypeVar("O")  # noqa: E741
U = TypeVar("U", bound=str)

#: Natural sort key of a name, remembered: names hardly change while queries come all the time.
sort_key = lru_cache(maxsize=65_536)(natural_key)


def sort_by_name(objects: Iterable[O], name: Callable[[O], str]) -> list[O]:
    """The objects in natural order of their names."""
    return sorted(objects, key=lambda obj: sort_key(name(obj)))


class Names:
    """Finds objects by full name, by uuid, or by what a name begins with up to a dot."""

    def __init__(self, objects: Iterable[Any], *, short: bool) -> None:
        self._found: dict[str, list[Any]] = {}
        for obj in objects:
            self._add(obj.uuid, obj)
            if obj.name:
                self._add(obj.name, obj)
            if short:
                end = obj.name.find(".")
                while end > 0:
                    self._add(obj.name[:end], obj)
                    end = obj.name.find(".", end + 1)

    def _add(self, key: str, obj: object) -> None:
        self._found.setdefault(key, []).append(obj)

    def find_one(self, value: Any) -> Any | None:
        """The object that the value means; None when it means nothing or several."""
        found = self._found.get(value, ())
        return found[0] if len(found) == 1 else None

    def find(self, values: Iterable[Any]) -> list[Any]:
        """All objects that one of the values may mean, each once, in natural order."""
        found = {obj.uuid: obj for value in values for obj in self._found.get(value, ())}
        return sort_by_name(found.values(), lambda obj: obj.name)


class Tables:
    """Derived data of one snapshot; nothing here may be changed by who gets it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        #: columns over all rows of a kind that are made of the configuration alone
        self.columns: dict[tuple[str, str, str], list[object]] = {}

    # objects in natural order ------------------------------------------------------------

    @cached_property
    def nodes(self) -> list[Node]:
        return sort_by_name(self.config.nodes.values(), lambda node: node.name)

    @cached_property
    def instances(self) -> list[Instance]:
        return sort_by_name(self.config.instances.values(), lambda instance: instance.handle)

    @cached_property
    def groups(self) -> list[NodeGroup]:
        return sort_by_name(self.config.groups.values(), lambda group: group.name)

    @cached_property
    def networks(self) -> list[Network]:
        return sort_by_name(self.config.networks.values(), lambda network: network.name)

    @cached_property
    def images(self) -> list[Image]:
        return sort_by_name(self.config.images.values(), lambda image: image.name)

    @cached_property
    def disk_places(self) -> dict[str, tuple[Instance, int]]:
        """Disk uuid -> its instance and its place there; detached disks have none."""
        return {
            uuid: (instance, index)
            for instance in self.config.instances.values()
            for index, uuid in enumerate(instance.disks)
        }

    @cached_property
    def disks(self) -> list[Disk]:
        """By instance and place, then detached ones by name and uuid."""
        places = self.disk_places

        def order(disk: Disk) -> tuple[object, ...]:
            place = places.get(disk.uuid)
            if place is None:
                return (1, sort_key(disk.name or ""), disk.name is None, disk.uuid)
            return (0, sort_key(place[0].name), False, str(place[1]).zfill(3))

        return sorted(self.config.disks.values(), key=order)

    @cached_property
    def filters(self) -> list[FilterRule]:
        return sort_by_name(self.config.data.filters.values(), lambda rule: rule.uuid)

    # names -------------------------------------------------------------------------------

    @cached_property
    def node_index(self) -> Names:
        return Names(self.config.nodes.values(), short=True)

    @cached_property
    def instance_index(self) -> Names:
        return Names(self.config.instances.values(), short=True)

    @cached_property
    def group_index(self) -> Names:
        return Names(self.config.groups.values(), short=False)

    @cached_property
    def network_index(self) -> Names:
        return Names(self.config.networks.values(), short=False)

    @cached_property
    def image_index(self) -> Names:
        return Names(self.config.images.values(), short=False)

    @cached_property
    def node_names(self) -> dict[str, str]:
        return {uuid: node.name for uuid, node in self.config.nodes.items()}

    @cached_property
    def group_names(self) -> dict[GroupUuid, str]:
        return {uuid: group.name for uuid, group in self.config.groups.items()}

    @cached_property
    def network_names(self) -> dict[str, str]:
        return {uuid: network.name for uuid, network in self.config.networks.items()}

    # relations ---------------------------------------------------------------------------

    @cached_property
    def secondary_nodes(self) -> dict[str, list[NodeUuid]]:
        """Instance uuid -> uuids of its secondary nodes; disks that are missing are left out."""
        mirrored = {
            uuid: disk.nodes for uuid, disk in self.config.disks.items() if len(disk.nodes) > 1
        }
        found: dict[str, list[NodeUuid]] = {}
        for uuid, instance in self.config.instances.items():
            nodes = [node for disk in instance.disks for node in mirrored.get(disk, ())]
            found[uuid] = [node for node in dict.fromkeys(nodes) if node != instance.primary_node]
        return found

    @cached_property
    def primary_instances(self) -> dict[NodeUuid, list[str]]:
        """Node uuid -> names of the instances that have it as primary node."""
        return _sorted_names(self.config.primaries)

    @cached_property
    def secondary_instances(self) -> dict[NodeUuid, list[str]]:
        """Node uuid -> names of the instances that have it as secondary node."""
        found: dict[NodeUuid, list[Instance]] = {uuid: [] for uuid in self.config.nodes}
        for instance in self.instances:
            for uuid in self.secondary_nodes[instance.uuid]:
                found.setdefault(uuid, []).append(instance)
        return _sorted_names(found)

    @cached_property
    def group_members(self) -> dict[GroupUuid, list[Node]]:
        """Group uuid -> its nodes in natural order."""
        found: dict[GroupUuid, list[Node]] = {uuid: [] for uuid in self.config.groups}
        for node in self.nodes:
            found.setdefault(node.group, []).append(node)
        return found

    @cached_property
    def network_instances(self) -> dict[str, list[str]]:
        """Network uuid -> names of the instances with a NIC in it, in natural order."""
        found: dict[str, list[str]] = {uuid: [] for uuid in self.config.networks}
        for instance in self.instances:
            for network in {nic.network for nic in instance.nics if nic.network}:
                found.setdefault(network, []).append(instance.handle)
        return found


def _sorted_names(instances: Mapping[U, list[Instance]]) -> dict[U, list[str]]:
    return {
        uuid: sorted((instance.handle for instance in members), key=sort_key)
        for uuid, members in instances.items()
    }


@lru_cache(maxsize=2)
def tables_of(config: Config) -> Tables:
    """The tables of a snapshot."""
    return Tables(config)
