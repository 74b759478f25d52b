"""Which instances may start elsewhere by themselves after the death of their node. Pure.

Two sides ask: the master, when it recovers the instances of a dead node, and the file that tells
nodes which guests to end when they have no lease. So a node ends no guest that stays with it, and
each that the master may start a second time.
"""

from __future__ import annotations

import math

from ganeti.model import repair_tags
from ganeti.model.config import Config
from ganeti.model.enums import HaPolicy
from ganeti.model.instance import Instance
from ganeti.model.repair_tags import PREFIX, Type
from ganeti.storage.registry import traits_of


def may_start_elsewhere(config: Config, instance: Instance) -> bool:
    """Whether this holds now, or will when a suspension that has an end is over."""
    return not explain_staying(config, instance, math.inf)


def explain_staying(
    config: Config, instance: Instance, now: float, *, everything: bool = False
) -> str:
    """Why an instance stays on its node; empty when it may start elsewhere.

    ``everything``: an administrator wants all moved that can be, whatever parameters and tags say.
    """
    policy = config.beparams(instance).get("ha", HaPolicy.TAGS)
    if policy in (HaPolicy.NONE, HaPolicy.RESTART) and not everything:
        back = ", so it starts when the node is back" if policy == HaPolicy.RESTART else ""
        return f"its backend parameter ha is {policy}{back}"
    bound = _list_bound_templates(config, instance)
    if bound:
        return f"its disks ({', '.join(bound)}) are only on that node"
    if everything or policy == HaPolicy.FAILOVER:
        return ""
    return _explain_tags(config, instance, now)


def _list_bound_templates(config: Config, instance: Instance) -> list[str]:
    """Templates of disks that no other node has or reaches."""
    disks = (config.disks[uuid] for uuid in instance.disks if uuid in config.disks)
    found = {str(disk.dev_type) for disk in disks}
    traits = {template: traits_of(template) for template in found}
    return sorted(name for name, one in traits.items() if not (one.mirrored or one.shared))


def _explain_tags(config: Config, instance: Instance, now: float) -> str:
    node = config.nodes.get(instance.primary_node)
    group = None if node is None else config.groups.get(node.group)
    levels = [instance.tags, () if group is None else group.tags, config.cluster.tags]
    if any(repair_tags.is_suspended(tags, now) for tags in levels):
        return f"tag {PREFIX}suspend stops automatic repairs"
    allowed = repair_tags.find_allowed(levels)
    if allowed is None or allowed < Type.FAILOVER:
        return f"tag {PREFIX}{Type.FAILOVER.word} is missing on it, its group and the cluster"
    return ""
