"""Objects as the node side needs them: with every parameter filled in. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import DiskTemplate
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.model.params import Params, fill
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

#: Name of a parameter of a DRBD disk -> its name on the node side; others keep theirs.
_DRBD_NAMES = {
    "metavg": "default-metavg",
    "disk-barriers": "disabled-barriers",
    "meta-barriers": "disable-meta-flush",
}
#: Parameters of a DRBD disk that belong to its volumes, in the order of the children.
_DRBD_STRIPES = ("data-stripes", "meta-stripes")


def disk(config: Config, item: Disk, node: Node) -> NodeDisk:
    """A disk for one of its nodes: complete logical parameters, and what only holds there.

    The dynamic parameters of a DRBD disk are ``local-ip``, ``remote-ip``, ``local-minor`` and
    ``remote-minor``; a node that is none of its two gets none.
    """
    assert item.dev_type is not None
    params = config.diskparams(DiskTemplate(item.dev_type), node.group)
    children = tuple(disk(config, child, node) for child in item.children)
    dynamic: Params = {}
    if item.dev_type is DiskTemplate.DRBD:
        children = tuple(
            msgspec.structs.replace(child, params={**child.params, "stripes": params[stripes]})
            for child, stripes in zip(children, _DRBD_STRIPES)
        )
        params = {
            _DRBD_NAMES.get(key, key): value
            for key, value in params.items()
            if key not in _DRBD_STRIPES
        }
        dynamic = _drbd_ends(config, item, node)
    return NodeDisk(
        uuid=item.uuid,
        dev_type=item.dev_type,
        logical_id=tuple(item.logical_id),
        children=children,
        nodes=tuple(item.nodes),
        iv_name=item.iv_name,
        size=item.size,
        mode=item.mode,
        name=item.name,
        spindles=item.spindles,
        params={**params, **(item.params or {})},
        dynamic_params=dynamic,
    )


def _drbd_ends(config: Config, item: Disk, node: Node) -> Params:
    """Addresses and minors of a DRBD disk ``(node, node, port, minor, minor, secret)``."""
    first, second, _port, first_minor, second_minor, _secret = item.logical_id
    ends = {first: (second, first_minor, second_minor), second: (first, second_minor, first_minor)}
    if node.uuid not in ends:
        return {}
    peer, local_minor, remote_minor = ends[node.uuid]
    return {
        "local-ip": node.secondary_ip,
        "remote-ip": config.nodes[peer].secondary_ip,
        "local-minor": local_minor,
        "remote-minor": remote_minor,
    }


def nic(config: Config, item: Nic, group: str) -> NodeNic:
    """A network card with its network."""
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
    hvparams: Mapping[str, Any] | None = None,
    beparams: Mapping[str, Any] | None = None,
    osparams: Mapping[str, Any] | None = None,
    disks: Sequence[Disk] | None = None,
    node: Node | None = None,
) -> NodeInstance:
    """An instance with complete parameters; the keyword arguments override for this call only.

    ``disks`` is for an instance that is not (or not in this form) in the configuration. The disks
    are as its primary node needs them, or ``node``.
    """
    assert item.hypervisor is not None
    place = node or config.nodes[item.primary_node]
    group = config.nodes[item.primary_node].group
    return NodeInstance(
        uuid=item.uuid,
        name=item.name,
        primary_node=item.primary_node,
        secondary_nodes=tuple(config.secondary_nodes(item)) if disks is None else (),
        os=item.os,
        hypervisor=item.hypervisor,
        hvparams=fill(config.hvparams(item), hvparams or {}),
        beparams=fill(config.beparams(item), beparams or {}),
        osparams=fill(
            config.osparams_for(item.os, item.osparams), item.osparams_private, osparams or {}
        ),
        nics=tuple(nic(config, card, group) for card in item.nics),
        disks_info=tuple(
            disk(config, each, place)
            for each in (config.disks_of(item) if disks is None else disks)
        ),
        admin_state=item.admin_state,
        network_port=item.network_port,
        ctime=item.ctime,
        mtime=item.mtime,
        serial_no=item.serial_no,
        tags=tuple(item.tags),
    )
