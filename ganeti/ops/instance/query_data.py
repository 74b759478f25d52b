"""Everything about instances, as ``gnt-instance info`` shows it."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.config.redaction import redact
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.hidden import REDACTED
from ganeti.opcodes.instance import OpInstanceQueryData
from ganeti.ops import annotate
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import disk_settings
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo
from ganeti.storage.registry import traits_of


class InstanceQueryData(PlannedOperation[OpInstanceQueryData, list[Instance], JsonObject]):
    """Name -> facts; ``static`` asks no node."""

    def decide(self) -> list[Instance]:
        config = self.ctx.config
        if self.op.instances:
            return [config.instance(name) for name in self.op.instances]
        return list(config.instances.values())

    def run(self) -> JsonObject:
        config = self.ctx.config
        states = {} if self.op.static else self._states(config)
        return {
            item.handle: {**self._facts(config, item, states), **_reservation(item)}
            for item in self.plan
        }

    def _states(self, config: Config) -> dict[str, Mapping[str, InstanceInfo] | None]:
        """Node uuid -> what runs there; None for a node without answer."""
        hypervisors = [str(name) for name in config.cluster.enabled_hypervisors]
        params = {name: config.cluster.hvparams.get(name, {}) for name in hypervisors}
        uuids = {item.primary_node for item in self.plan if not item.forthcoming}
        nodes = [config.nodes[uuid] for uuid in uuids if uuid in config.nodes]
        answers = self.ctx.rpc.call_many(nodes, NodeCalls.all_instances_info, hypervisors, params)
        return {uuid: answer.value if answer.ok else None for uuid, answer in answers.items()}

    def _facts(
        self,
        config: Config,
        item: Instance,
        states: Mapping[str, Mapping[str, InstanceInfo] | None],
    ) -> JsonObject:
        primary = config.nodes.get(item.primary_node)
        group = config.groups.get(primary.group) if primary else None
        secondaries = [config.nodes[uuid] for uuid in config.secondary_nodes(item)]
        on_node = states.get(item.primary_node)
        run_state = None
        if on_node is not None:
            run_state = "up" if item.name in on_node else "down"
        return {
            "name": item.name,
            "config_state": str(item.admin_state),
            "run_state": run_state,
            "pnode": primary.name if primary else None,
            "pnode_group_uuid": group.uuid if group else None,
            "pnode_group_name": group.name if group else None,
            "snodes": [node.name for node in secondaries],
            "snodes_group_uuids": [node.group for node in secondaries],
            "snodes_group_names": [config.groups[node.group].name for node in secondaries],
            "os": item.os,
            "nics": [self._nic(config, item, index) for index in range(len(item.nics))],
            "disk_template": config.disk_template(item),
            "disks": [
                self._disk(config, item, config.disks[uuid])
                for uuid in item.disks
                if uuid in config.disks
            ],
            "hypervisor": None if item.hypervisor is None else str(item.hypervisor),
            "network_port": item.network_port,
            "hv_instance": item.hvparams,
            "hv_actual": {} if item.hypervisor is None else config.hvparams(item),
            "be_instance": item.beparams,
            "be_actual": config.beparams(item),
            "os_instance": {**item.osparams, **dict.fromkeys(item.osparams_private, REDACTED)},
            "os_actual": {
                **config.osparams_for(item.os, item.osparams),
                **dict.fromkeys(
                    config.private_osparams_for(item.os, item.osparams_private), REDACTED
                ),
            },
            "serial_no": item.serial_no,
            "mtime": item.mtime,
            "ctime": item.ctime,
            "uuid": item.uuid,
        }

    @staticmethod
    def _nic(config: Config, item: Instance, index: int) -> list[object]:
        nic = item.nics[index]
        node = config.nodes.get(item.primary_node)
        params = config.nicparams_for(nic.nicparams, nic.network, node.group if node else None)
        network = config.networks.get(nic.network) if nic.network else None
        return [
            nic.name,
            nic.uuid,
            nic.ip,
            nic.mac,
            params["mode"],
            params["link"],
            params["vlan"],
            nic.network,
            None if network is None else base.to_wire(network),
        ]

    def _disk(
        self, config: Config, item: Instance, disk: Disk, below: Disk | None = None
    ) -> JsonObject:
        """A disk, or a part of the disk that it is ``below``."""
        return {
            "iv_name": disk.iv_name,
            "dev_type": str(disk.dev_type),
            "logical_id": redact(list(disk.logical_id), ("logical_id",)),
            "drbd_info": _ends(config, disk),
            "pstatus": self._status(config, item, disk, item.primary_node),
            "sstatus": self._secondary_status(config, item, disk, below),
            "children": [self._disk(config, item, child, disk) for child in disk.children],
            "mode": str(disk.mode),
            "size": disk.size,
            "spindles": disk.spindles,
            **{key: value for key in disk_settings.LIMITS if (value := getattr(disk, key))},
            "name": disk.name,
            "uuid": disk.uuid,
        }

    def _secondary_status(
        self, config: Config, item: Instance, disk: Disk, below: Disk | None
    ) -> list[object] | None:
        """State of a mirrored disk, or of a part of one, on its other node."""
        whole = below or disk
        if not traits_of(whole.dev_type).mirrored:
            return None
        other = next((uuid for uuid in whole.nodes if uuid != item.primary_node), None)
        return None if other is None else self._status(config, item, disk, other)

    def _status(
        self, config: Config, item: Instance, disk: Disk, where: NodeUuid
    ) -> list[object] | None:
        """State of a disk on a node in the order of BlockDevStatus, None if unknown."""
        node = config.nodes.get(where)
        if self.op.static or node is None or disk.dev_type is None:
            return None
        if disk.forthcoming:
            return None
        try:
            wire = annotate.disk(config, disk, node.group)
            status = self.ctx.rpc.call_one(node, NodeCalls.blockdev_find, wire)
        except errors.GanetiError as err:
            self.ctx.warn(f"state of disk {disk.iv_name} of {item.name}: {errors.text(err)}")
            return None
        if status is None:
            return None
        return [
            status.dev_path,
            status.major,
            status.minor,
            status.sync_percent,
            status.estimated_time,
            status.is_degraded,
            status.ldisk_status,
        ]


def _reservation(item: Instance) -> JsonObject:
    """Members that only a forthcoming instance has."""
    if not item.forthcoming:
        return {}
    kept = item.reservation
    return {"reservation": {} if kept is None else base.to_wire(kept)}


def _ends(config: Config, disk: Disk) -> JsonObject | None:
    """Nodes, minors and port of a DRBD disk; None for others."""
    if not drbd.has_place(disk):
        return None
    (first, first_minor), (second, second_minor) = drbd.minors(disk)
    names = {uuid: config.nodes[uuid].name for uuid in (first, second) if uuid in config.nodes}
    return {
        "primary_node": names.get(first, first),
        "primary_minor": first_minor,
        "secondary_node": names.get(second, second),
        "secondary_minor": second_minor,
        "port": drbd.port(disk),
    }
