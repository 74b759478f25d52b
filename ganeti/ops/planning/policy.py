"""Which instances break the instance policy of their node group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ganeti.model import base, ipolicy
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance


def shape(
    config: Config,
    instance: Instance,
    disks: Sequence[Disk] | None = None,
    template: str | None = None,
) -> ipolicy.Shape:
    """Shape of an instance for a policy, with other disks than it has if they are given.

    ``template`` is the one that all disks are going to have.
    """
    be = config.beparams(instance)
    disks = config.disks_of(instance) if disks is None else disks
    kinds = {str(disk.dev_type) for disk in disks if disk.dev_type is not None}
    without = config.disk_template(base.replace(instance, disks=()))
    return ipolicy.Shape(
        memory=be["maxmem"],
        vcpus=be["vcpus"],
        spindle_use=be["spindle_use"],
        disks=[disk.size for disk in disks],
        nics=len(instance.nics),
        templates=(template,) if template else tuple(sorted(kinds)) or (without,),
    )


def violations(config: Config, instance: Instance) -> list[str]:
    """Violations by an instance of the policy of its primary node's group."""
    node = config.nodes.get(instance.primary_node)
    if node is None:
        return []
    return ipolicy.violations(config.ipolicy(node.group), shape(config, instance))


def find_new_violations(
    before: Config, after: Config, instances: Iterable[Instance] | None = None
) -> list[str]:
    """A line for each instance that breaks a policy after a change, but did not before."""
    found: list[str] = []
    for instance in after.instances.values() if instances is None else instances:
        old = before.instances.get(instance.uuid, instance)
        known = violations(before, old)
        fresh = [text for text in violations(after, instance) if text not in known]
        if fresh:
            found.append(
                f"instance {instance.name} violates the instance policy now: {'; '.join(fresh)}"
            )
    return found
