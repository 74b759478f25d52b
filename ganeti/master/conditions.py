"""The present problems of the cluster, for notifications; from memory, no node is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ganeti.base.text import natural_sorted
from ganeti.master import health, recovery_status
from ganeti.model.config import Config
from ganeti.notify.conditions import Condition

if TYPE_CHECKING:
    from ganeti.master.core import Core

#: Intervals of a schedule after which a backup is overdue.
_LATE = 1.5
_DAY = 86400.0


def find_conditions(core: Core) -> Iterator[Condition]:
    """All of them, each once."""
    config, now = core.store.current, core.clock.now()
    for uuid, state in core.survey.nodes.items():
        node = config.nodes.get(uuid)
        if node is not None and not node.offline and not state.reachable:
            text = f"Node {node.name} does not answer: {state.problem}"
            yield Condition("node-unreachable", "node", node.name, text)
    yield from _find_dead(core, config, now)
    yield from _find_mirrors(core, config)
    for known in health.list_findings(core, config):
        found = known.finding
        text = f"{found.code}: {found.kind} {found.object}: {found.text}"
        yield Condition("finding", found.kind, found.object, text, found.code, found.severity)
    for item in health.list_certificates(core, config, now):
        if item["ends"] - now < health.SOON:
            days = int((item["ends"] - now) / _DAY)
            text = f"The certificate {item['certificate']} of node {item['node']} "
            text += f"ends in {days} days" if days >= 0 else "has ended"
            yield Condition("certificate-expiring", "node", item["node"], text, item["certificate"])
    for instance in config.instances.values():
        plan = instance.backup
        if plan is None or plan.every is None or plan.last_time is None:
            continue
        hours = (now - plan.last_time) / 3600
        if hours > _LATE * plan.every:
            text = f"The last good backup of {instance.name} is {hours:.0f} hours old"
            yield Condition(
                "backup-overdue", "instance", instance.name, f"{text}, not {plan.every:g}"
            )


def _find_dead(core: Core, config: Config, now: float) -> Iterator[Condition]:
    """Dead nodes, and their instances that should run."""
    for node in config.nodes.values():
        if node.is_proven_dead and node.fenced is not None:
            text = f"Node {node.name} is dead: {node.fenced.proof}"
            yield Condition("node-fenced", "node", node.name, text)
    for row in recovery_status.find_wanted_instances(core, config, now):
        if row["reason"]:
            text = f"Instance {row['instance']} of the dead node {row['source']} does not run:"
            text = f"{text} {row['reason']}"
            yield Condition("instance-left-down", "instance", row["instance"], text)


def _find_mirrors(core: Core, config: Config) -> Iterator[Condition]:
    """Both sides of a mirror tell the same; it is one condition."""
    nodes: dict[tuple[str, str], set[str]] = {}
    for instance, disk, node, sample in health.list_mirrors(core, config):
        if not health.is_mirrored(sample):
            nodes.setdefault((instance, disk), set()).add(node)
    for (instance, disk), names in nodes.items():
        text = f"Disk {disk} of instance {instance} is not in sync, say"
        text += f" {' and '.join(natural_sorted(names))}"
        yield Condition("disk-degraded", "instance", instance, text, disk)
