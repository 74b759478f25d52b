"""The stand-in for the instance that a detached disk does not have, for node calls. Pure.

Node calls speak of a disk as one of an instance: links, labels of volumes, who writes. For a
detached disk that is an instance which exists nowhere, called like the disk's uuid.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import HypervisorName
from ganeti.model.ids import InstanceUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node

#: Directory, beside those of instances, for new file disks that belong to none.
DIRECTORY = "detached-disks"


def make_bearer(config: Config, disk: Disk) -> Instance:
    """An instance with this one disk, on the first of its nodes; OpPrereqError without a node."""
    return Instance(
        uuid=InstanceUuid(disk.uuid),
        name=disk.uuid,
        primary_node=list_nodes(config, disk)[0].uuid,
        hypervisor=HypervisorName(config.cluster.enabled_hypervisors[0]),
        disks=(disk.uuid,),
    )


def list_nodes(config: Config, disk: Disk) -> Sequence[Node]:
    """The nodes that hold a disk; one that is in use for a disk that every node reaches.

    Raises:
        OpPrereqError: every node reaches it, but none can be asked.
    """
    if disk.nodes:
        return [config.nodes[uuid] for uuid in disk.nodes if uuid in config.nodes]
    return [choose_any_node(config, disk.real_template)]


def choose_any_node(config: Config, template: str) -> Node:
    """A node for work on what all nodes reach: the master node if it can; OpPrereqError."""
    nodes = [config.master, *config.nodes.values()]
    for node in nodes:
        if node.vm_capable and not node.offline:
            return node
    raise errors.make_state_error(
        f"no node is online that could reach a disk of template {template}"
    )


def title(disk: Disk) -> str:
    """How a disk is called in texts."""
    return f"{disk.name} ({disk.uuid})" if disk.name else disk.uuid
