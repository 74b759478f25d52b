"""A named change of the configuration: what is put and deleted, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.config.candidates import OLD_CERTIFICATE
from ganeti.model import address_pool, base
from ganeti.model.base import ConfigObject, Stamped
from ganeti.model.cluster import Cluster
from ganeti.model.config import CONTAINERS, Config
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid, InstanceUuid
from ganeti.model.instance import Instance
from ganeti.model.limits import Limits
from ganeti.model.network import Network
from ganeti.model.node import Node

#: Keys that every change of an object changes; the record has them anyway.
STAMPS = frozenset(("serial_no", "mtime"))


class Author(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of a change: a job, a user, and the reason."""

    job: int = 0
    user: str = ""
    reason: str = ""
    #: of a quota in them the store lets no change go beyond
    limits: Limits | None = None


class Draft:
    """Collects one change on top of a snapshot.

    It lives only inside :meth:`ganeti.config.store.Store.change`.

    Objects that are put get the next serial number and the time of the change. The address pools
    of networks follow the NICs of the instances that are put and deleted.
    """

    def __init__(self, config: Config, now: float) -> None:
        self.config = config
        self.now = now
        self._puts: dict[tuple[str, str], ConfigObject] = {}
        self._deletes: dict[tuple[str, str], None] = {}
        self._cluster: Cluster | None = None

    def put(self, obj: ConfigObject) -> None:
        """Add or replace an object of any container."""
        container = container_of(obj)
        uuid: str = getattr(obj, "uuid")  # noqa: B009 - every contained object has one
        old = getattr(self.config.data, container).get(uuid)
        if isinstance(obj, Stamped):
            if old is None:
                obj = base.replace(obj, ctime=obj.ctime or self.now, mtime=self.now, serial_no=1)
            else:
                obj = base.replace(obj, mtime=self.now, serial_no=old.serial_no + 1)
        if isinstance(obj, Instance):
            self._follow_addresses(obj.uuid, obj)
        self._deletes.pop((container, uuid), None)
        self._puts[container, uuid] = obj

    def update(self, obj: ConfigObject, **values: object) -> None:
        """Put a copy of the object's *current* version with other values.

        Raises:
            ConfigurationError: the object is gone.
        """
        current = self._current(obj)
        if current is None:
            what = f"{container_of(obj)} {getattr(obj, 'uuid')}"  # noqa: B009
            raise errors.ConfigurationError(f"{what} was removed meanwhile")
        self.put(base.replace(current, **values))

    def mention(self, obj: ConfigObject) -> None:
        """Let the history show the change at an object that stays as it is, its stamps included.

        Raises:
            ConfigurationError: the object is gone.
        """
        container, uuid = container_of(obj), str(getattr(obj, "uuid"))  # noqa: B009
        current = self._current(obj)
        if current is None:
            raise errors.ConfigurationError(f"{container} {uuid} was removed meanwhile")
        self._puts[container, uuid] = current

    def _follow_addresses(self, instance: InstanceUuid, after: Instance | None) -> None:
        """Take and free addresses of networks as an instance comes, changes or goes.

        Raises:
            ConfigurationError: a NIC belongs to a network that was removed.
        """
        before = self._object("instances", instance)
        assert before is None or isinstance(before, Instance)
        had, has = address_pool.find_used_addresses(before), address_pool.find_used_addresses(after)
        for uuid in {network for network, _ip in had ^ has}:
            network = self._object("networks", uuid)
            if not isinstance(network, Network):
                if any(item[0] == uuid for item in has):
                    raise errors.ConfigurationError(f"network {uuid} was removed meanwhile")
                continue
            free, take = (
                [ip for key, ip in found if key == uuid and address_pool.contains(network, ip)]
                for found in (had - has, has - had)
            )
            self.put(address_pool.with_own(network, take=take, free=free))

    def delete(self, obj: ConfigObject) -> None:
        key = (container_of(obj), str(getattr(obj, "uuid")))  # noqa: B009
        if isinstance(obj, Instance):
            self._follow_addresses(obj.uuid, None)
        self._puts.pop(key, None)
        self._deletes[key] = None

    @property
    def cluster(self) -> Cluster:
        """The cluster object as this change has left it."""
        return self._cluster or self.config.cluster

    def update_cluster(self, **values: object) -> None:
        serial = self.config.cluster.serial_no + 1
        self._cluster = base.replace(self.cluster, mtime=self.now, serial_no=serial, **values)

    # common changes of more than one object ----------------------------------------------

    def add_instance(self, instance: Instance, disks: list[Disk]) -> None:
        """A new instance with its disks.

        Raises:
            ConfigurationError: name or uuid are taken.
        """
        if self.config.has_instance_name(instance.name) or instance.uuid in self.config.instances:
            raise errors.ConfigurationError(f"instance {instance.name} exists already")
        for disk in disks:
            self.put(disk)
        self.put(instance)

    def remove_instance(self, instance: Instance) -> None:
        """Forget an instance, its disks and its ports."""
        self.delete(instance)
        for uuid in instance.disks:
            disk = self.config.disks.get(uuid)
            if disk is not None:
                self.remove_disk(disk)
        if instance.network_port is not None:
            self.release_port(instance.network_port)

    def add_disk(self, disk: Disk) -> None:
        """A new disk that belongs to no instance yet.

        Raises:
            ConfigurationError: the uuid is taken.
        """
        if self._current(disk) is not None:
            raise errors.ConfigurationError(f"disk {disk.uuid} exists already")
        self.put(disk)

    def remove_disk(self, disk: Disk) -> None:
        """Forget a disk that belongs to no instance (any more); a DRBD disk's port is free again.

        Raises:
            ConfigurationError: it is attached.
        """
        owner = self.owner(disk.uuid)
        if owner is not None:
            raise errors.ConfigurationError(
                f"disk {disk.uuid} is attached to instance {owner.name} and cannot be removed"
            )
        port = drbd.port(disk)
        if port is not None:
            self.release_port(port)
        self.delete(disk)

    def set_disks(self, instance: Instance, uuids: Iterable[DiskUuid]) -> None:
        """Set the disks of an instance, in this order, and number them.

        Raises:
            ConfigurationError: one is not there, is named twice, or belongs to another instance.
        """
        wanted = list(uuids)
        if len(set(wanted)) < len(wanted):
            raise errors.ConfigurationError(f"instance {instance.name} would have a disk twice")
        for index, uuid in enumerate(wanted):
            owner = self.owner(uuid)
            if owner is not None and owner.uuid != instance.uuid:
                raise errors.ConfigurationError(f"disk {uuid} is attached to instance {owner.name}")
            disk = self._object("disks", uuid)
            if not isinstance(disk, Disk):
                raise errors.ConfigurationError(f"disk {uuid} does not exist")
            if disk.iv_name != f"disk/{index}":
                self.put(base.replace(disk, iv_name=f"disk/{index}"))
        if list(self._instance(instance).disks) != wanted:
            self.update(instance, disks=tuple(wanted))

    def owner(self, disk_uuid: DiskUuid) -> Instance | None:
        """The instance that has a disk as this change has left it; None if there is none."""
        changed = [obj for obj in self._puts.values() if isinstance(obj, Instance)]
        for item in changed:
            if disk_uuid in item.disks:
                return item
        before = self.config.owner(disk_uuid)
        if before is None or ("instances", before.uuid) in self._deletes:
            return None
        return None if any(item.uuid == before.uuid for item in changed) else before

    def _instance(self, instance: Instance) -> Instance:
        found = self._current(instance)
        if not isinstance(found, Instance):
            raise errors.ConfigurationError(f"instance {instance.name} was removed meanwhile")
        return found

    def _current(self, obj: ConfigObject) -> ConfigObject | None:
        """An object as this change has left it; None when it does not exist."""
        return self._object(container_of(obj), str(getattr(obj, "uuid")))  # noqa: B009

    def _object(self, container: str, uuid: str) -> ConfigObject | None:
        key = (container, uuid)
        if key in self._deletes:
            return None
        found: ConfigObject | None = self._puts.get(key)
        return found or getattr(self.config.data, container).get(uuid)

    def number_disk(self, disk: Disk) -> Disk:
        """The disk with a TCP port of its own, if it is a DRBD disk that has none yet."""
        if not drbd.is_drbd(disk) or drbd.port(disk) is not None:
            return disk
        node_a, node_b, _none, *rest = disk.logical_id
        return base.replace(disk, logical_id=(node_a, node_b, self.allocate_port(), *rest))

    def release_port(self, port: int) -> None:
        """Release a TCP port. Idempotent."""
        pool = {*self.cluster.tcpudp_port_pool, port}
        self.update_cluster(tcpudp_port_pool=tuple(sorted(pool)))

    def retake_port(self, port: int) -> None:
        """Undo the release of a TCP port. Idempotent."""
        pool = self.cluster.tcpudp_port_pool
        self.update_cluster(tcpudp_port_pool=tuple(each for each in pool if each != port))

    def allocate_port(self) -> int:
        """A free TCP port for an instance or a DRBD disk; given-back ones first.

        Raises:
            ConfigurationError: all are taken.
        """
        pool = self.cluster.tcpudp_port_pool
        if pool:
            self.update_cluster(tcpudp_port_pool=pool[1:])
            return pool[0]
        port = self.cluster.highest_used_port + 1
        if port > constants.LAST_DRBD_PORT:
            raise errors.ConfigurationError(
                "no TCP port is left for another instance or DRBD disk: all from"
                f" {constants.FIRST_DRBD_PORT} to {constants.LAST_DRBD_PORT} are taken"
            )
        self.update_cluster(highest_used_port=port)
        return port

    def remove_node(self, node: Node) -> None:
        gone = (node.uuid, node.uuid + OLD_CERTIFICATE)
        certs = {k: v for k, v in self.cluster.candidate_certs.items() if k not in gone}
        self.update_cluster(candidate_certs=certs)
        self.delete(node)

    # result ------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        return not (self._puts or self._deletes or self._cluster)

    def result(self) -> Config:
        """The next state."""
        puts = [(container, uuid, obj) for (container, uuid), obj in self._puts.items()]
        return self.config.apply(puts, self._deletes, self._cluster, mtime=self.now)

    def wire(self) -> JsonObject:
        """The change as data: ``put``, ``delete``, ``cluster`` and ``old``, each only if used.

        ``old`` is what the history needs, so that nobody has to replay anything: for an object
        that was replaced the former values of the keys that differ (null: there was none), for a
        deleted one all of it. An object that is put and not in ``old`` is new.
        """
        value: JsonObject = {}
        old: JsonObject = {}
        for (container, uuid), obj in self._puts.items():
            value.setdefault("put", {}).setdefault(container, {})[uuid] = base.to_wire(obj)
            before = getattr(self.config.data, container).get(uuid)
            if before is not None:
                old.setdefault(container, {})[uuid] = _find_former_values(before, obj)
        for container, uuid in self._deletes:
            value.setdefault("delete", {}).setdefault(container, []).append(uuid)
            before = getattr(self.config.data, container).get(uuid)
            if before is not None:
                old.setdefault(container, {})[uuid] = base.to_wire(before)
        if self._cluster is not None:
            value["cluster"] = base.to_wire(self._cluster)
            old["cluster"] = _find_former_values(self.config.cluster, self._cluster)
        if old:
            value["old"] = old
        return value


def _find_former_values(old: ConfigObject, new: ConfigObject) -> JsonObject:
    """Former values of what differs. Most values are the very same objects, so this is cheap."""
    found: JsonObject = {}
    for key in old.__struct_fields__:
        before, after = getattr(old, key), getattr(new, key)
        if before is not after and before != after and key not in STAMPS:
            found[key] = msgspec.to_builtins(before)
    return found


def container_of(obj: ConfigObject) -> str:
    """Container of ``config.data`` that holds objects of this class."""
    for name, cls in CONTAINERS.items():
        if type(obj) is cls:
            return name
    raise errors.ProgrammerError(f"{type(obj).__name__} has no container")


def replay(config: Config, value: JsonObject, *, mtime: float) -> Config:
    """The state after a change read from the journal; ConfigurationError if it is damaged."""
    puts: list[tuple[str, str, ConfigObject]] = []
    for container, objects in value.get("put", {}).items():
        cls = _class_of(container)
        for uuid, raw in objects.items():
            puts.append((container, uuid, base.from_wire(cls, raw, f"{container} {uuid}")))
    cluster = None
    if "cluster" in value:
        cluster = base.from_wire(Cluster, value["cluster"], "cluster")
    return config.apply(puts, _find_deleted(value), cluster, mtime=mtime)


def _class_of(container: str) -> type[ConfigObject]:
    found = CONTAINERS.get(container)
    if found is None:
        raise errors.ConfigurationError(
            f"the journal changes '{container}', which this version does not know: it was written"
            " by a newer version"
        )
    return found


def _find_deleted(value: JsonObject) -> Iterator[tuple[str, str]]:
    for container, uuids in value.get("delete", {}).items():
        _class_of(container)
        for uuid in uuids:
            yield container, uuid
