"""The part of a cluster that a question about placement is about, and what it supposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ganeti.model.config import Config
from ganeti.placement.facts import Cluster, Group

if TYPE_CHECKING:
    from ganeti.placement.what_if import Supposed


def groups(config: Config, cluster: Cluster, wanted: str | None) -> list[Group]:
    """The node group that is named, or all by name; OpPrereqError when there is none."""
    if wanted is None:
        return sorted(cluster.groups, key=lambda group: group.name)
    uuid = config.group(wanted).uuid
    return [group for group in cluster.groups if group.uuid == uuid]


def suppose(cluster: Cluster, changes: Sequence[str]) -> Supposed:
    """The cluster with changes; OpPrereqError for one that makes no sense."""
    from ganeti.placement import what_if  # it loads numpy

    return what_if.suppose(cluster, changes)


def about(changes: Sequence[str], supposed: Supposed, silent: Sequence[str]) -> dict[str, Any]:
    """What every answer to such a question tells beside the answer."""
    return {
        "what_if": list(changes),
        "notes": list(supposed.notes),
        "lost": list(supposed.lost),
        "silent": list(silent),
    }
