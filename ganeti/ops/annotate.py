"""Objects as the node side needs them: with every parameter filled in. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.model.params import fill
from ganeti.ops import cloud_init
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic, PlacedDisk, RunNumber
from ganeti.storage.registry import TEMPLATES


def disk(config: Config, item: Disk, group: GroupUuid) -> NodeDisk:
    """A disk with the parameters of its template in a node group.

    A mirrored disk also has what differs between its nodes; each call sends a node its own.
    """
    own, below = _diskparams(config, item, group)
    result = _disk(config, item, group, own, below)
    found = places(config, item)
    if not found:
        return result
    fields = {name: getattr(result, name) for name in NodeDisk.__struct_fields__}
    return PlacedDisk(**fields, places=found)


def places(config: Config, item: Disk) -> dict[str, JsonObject]:
    """Node uuid -> addresses, port and minors of a DRBD disk as that node sees them."""
    if not drbd.has_place(item):
        return {}
    sides = drbd.minors(item)
    if any(node not in config.nodes for node, _minor in sides):
        return {}
    return {
        here: {
            "local-ip": config.nodes[here].secondary_ip,
            "remote-ip": config.nodes[there].secondary_ip,
            "port": drbd.port(item),
            "local-minor": minor,
            "remote-minor": remote_minor,
        }
        for (here, minor), (there, remote_minor) in (sides, sides[::-1])
    }


def _diskparams(
    config: Config, item: Disk, group: GroupUuid
) -> tuple[JsonObject, tuple[JsonObject, ...]]:
    """Parameters for the driver of a disk, and for those of its children."""
    template = item.real_template
    params = config.diskparams(template, group)
    if template not in TEMPLATES:
        return params, ()
    return TEMPLATES.get(template).node_params(params)


def _disk(
    config: Config, item: Disk, group: GroupUuid, own: JsonObject, below: tuple[JsonObject, ...]
) -> NodeDisk:
    given: list[JsonObject | None] = [*below, *[None] * (len(item.children) - len(below))]
    return NodeDisk(
        uuid=item.uuid,
        dev_type=item.real_template,
        logical_id=tuple(item.logical_id),
        children=tuple(
            disk(config, child, group)
            if params is None
            else _disk(config, child, group, params, ())
            for child, params in zip(item.children, given)
        ),
        nodes=tuple(item.nodes),
        iv_name=item.iv_name,
        size=item.size,
        mode=item.mode,
        name=item.name,
        spindles=item.spindles,
        max_iops=item.max_iops,
        max_bandwidth=item.max_bandwidth,
        params={**own, **(item.params or {})},
    )


def nic(config: Config, item: Nic, group: GroupUuid) -> NodeNic:
    """A NIC with its network."""
    network = config.networks.get(item.network) if item.network else None
    return NodeNic(
        uuid=item.uuid,
        mac=item.mac,
        ip=item.ip,
        name=item.name,
        network=item.network,
        nicparams=config.nicparams_for(item.nicparams, item.network, group),
        netinfo=None if network is None else base.to_wire(network),
    )


def instance(
    config: Config,
    item: Instance,
    *,
    hvparams: Mapping[str, object] | None = None,
    beparams: Mapping[str, object] | None = None,
    osparams: Mapping[str, object] | None = None,
    disks: list[Disk] | None = None,
    run_epoch: RunNumber = (0, 0),
) -> NodeInstance:
    """An instance with complete parameters; the keyword arguments override for this call only.

    ``run_epoch`` is for calls that give the right to run it. ``disks`` is for an instance that is
    not (or not in this form) in the configuration.
    """
    group = config.nodes[item.primary_node].group
    return NodeInstance(
        uuid=item.uuid,
        name=item.name,
        primary_node=item.primary_node,
        secondary_nodes=tuple(config.secondary_nodes(item)) if disks is None else (),
        os=item.os,
        hypervisor=item.real_hypervisor,
        hvparams=fill(config.hvparams(item), hvparams or {}),
        beparams=fill(config.beparams(item), beparams or {}),
        osparams=fill(
            config.osparams_for(item.os, item.osparams),
            config.private_osparams_for(item.os, item.osparams_private),
            osparams or {},
        ),
        nics=tuple(nic(config, each, group) for each in item.nics),
        disks_info=tuple(
            disk(config, each, group)
            for each in (config.disks_of(item) if disks is None else disks)
        ),
        admin_state=item.admin_state,
        network_port=item.network_port,
        ctime=item.ctime,
        mtime=item.mtime,
        serial_no=item.serial_no,
        tags=tuple(item.tags),
        run_epoch=run_epoch,
        seed=cloud_init.make_files(config, item),
    )
