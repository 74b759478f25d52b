"""The part of a cluster that a question about placement is about, and what it supposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.placement import OpClusterCapacity, OpClusterPlace
from ganeti.placement.facts import Cluster, Group
from ganeti.storage.registry import TEMPLATES

if TYPE_CHECKING:
    from ganeti.placement.headroom import Wanted
    from ganeti.placement.what_if import Supposed


def groups(config: Config, cluster: Cluster, wanted: str | None) -> list[Group]:
    """The node group that is named, or all by name; OpPrereqError when there is none."""
    if wanted is None:
        return sorted(cluster.groups, key=lambda group: group.name)
    uuid = config.group(wanted).uuid
    return [group for group in cluster.groups if group.uuid == uuid]


def template(config: Config, given: DiskTemplate | None) -> str:
    """The disk template that is asked about; OpPrereqError when it is not enabled."""
    enabled = [str(name) for name in config.cluster.enabled_disk_templates]
    wanted = enabled[0] if given is None else str(given)
    if wanted not in enabled:
        raise errors.make_invalid_error(
            f"disk template {wanted} is not enabled; enabled are {', '.join(enabled)}"
        )
    return wanted


def make_wanted(op: OpClusterCapacity | OpClusterPlace, template: str) -> Wanted:
    """The size that is asked about."""
    from ganeti.placement.headroom import Wanted  # it loads numpy

    return Wanted(
        template,
        None if op.memory is None else int(op.memory),
        None if op.disk is None else int(op.disk),
        op.vcpus,
        TEMPLATES.get(template).traits.overhead,
    )


def suppose(cluster: Cluster, changes: Sequence[str]) -> Supposed:
    """The cluster with changes; OpPrereqError for one that makes no sense."""
    from ganeti.placement import what_if  # it loads numpy

    return what_if.suppose(cluster, changes)


def describe_assumptions(
    changes: Sequence[str], supposed: Supposed, silent: Sequence[str]
) -> JsonObject:
    """The assumptions that every answer to such a question has beside it."""
    return {
        "what_if": list(changes),
        "notes": list(supposed.notes),
        "lost": list(supposed.lost),
        "silent": list(silent),
    }
