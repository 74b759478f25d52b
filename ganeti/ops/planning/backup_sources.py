"""From where the disks of an instance are read for a backup. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.hypervisor.abilities import Freezing
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.planning import snapshots
from ganeti.storage.registry import TEMPLATES


@dataclass(frozen=True)
class Source:
    """How the disks are read."""

    node: Node
    #: the hypervisor freezes what a running guest has, and knows what has changed
    live: bool = False
    #: snapshots of the disks are read, which are made on ``node``
    copied: bool = False
    #: the guest is paused while they are made
    held: bool = False


def freezes(instance: Instance) -> bool:
    """Whether the hypervisor shows the disks of a running guest as they are at one moment."""
    return issubclass(HYPERVISORS.get(instance.real_hypervisor), Freezing)


def may_copy(instance: Instance) -> bool:
    """Whether snapshots may be made, so that room on nodes is taken."""
    return not freezes(instance) or instance.admin_state != AdminState.UP


def choose(config: Config, instance: Instance, primary: Node, *, runs: bool) -> Source:
    """The node that reads, and what.

    The secondary node of mirrored disks has the same data, and no guest that needs its disks.

    Raises:
        OpPrereqError: the guest runs, and its disks cannot be copied meanwhile.
    """
    if runs and freezes(instance):
        return Source(primary, live=True)
    disks = config.disks_of(instance)
    other = find_mirror(config, instance)
    if runs:
        snapshots.check_copyable(instance, disks, runs=True)
        held = snapshots.must_hold(instance, disks)
        return Source(other or primary, copied=True, held=held)
    if other is not None and may_copy(instance):
        return Source(other, copied=True)
    return Source(primary)


def find_mirror(config: Config, instance: Instance) -> Node | None:
    """The secondary node, when it is online and has all disks as volumes that can be copied."""
    for disk in config.disks_of(instance):
        traits = TEMPLATES.get(disk.real_template).traits
        if not (traits.mirrored and disk.children and snapshots.freezes(disk)):
            return None
    others = config.secondary_nodes(instance)
    if len(others) != 1 or config.nodes[others[0]].offline:
        return None
    return config.nodes[others[0]]
