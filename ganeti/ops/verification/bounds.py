"""Compare the lists of nodes that say where the cluster may keep file disks. Pure.

A node's own checks (``hosts``) report the directories that it refuses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report
from ganeti.storage.registry import traits_of

_CHECK = "file-storage-bounds"


def checks(config: Config) -> JsonObject:
    """Return the checks for the nodes; none when the cluster keeps no disks in files."""
    enabled = config.cluster.enabled_disk_templates
    return {_CHECK: None} if any(traits_of(name).file_based for name in enabled) else {}


def nodes(report: Report, online: Iterable[Node], found: Mapping[str, Mapping[str, Any]]) -> None:
    """Warn of nodes whose list is not that of most nodes of the group."""
    lists: dict[str, tuple[str, ...] | None] = {}
    for node in online:
        answers = found.get(node.uuid, {})
        listed = answers.get(_CHECK)
        if _CHECK in answers and not isinstance(listed, str):
            lists[node.name] = None if listed is None else tuple(listed)
    if not lists:
        return
    [(usual, _count)] = Counter(lists.values()).most_common(1)
    for name, own in lists.items():
        if own != usual:
            report.warning(
                "ENODEFILESTORAGEPATHS",
                "node",
                name,
                f"its file-storage-paths allows {_text(own)}, that of most nodes {_text(usual)};"
                " only the administrator of the node can change it",
            )


def _text(listed: tuple[str, ...] | None) -> str:
    if listed is None:
        return "what the cluster wants (it is missing)"
    return ", ".join(listed) or "nothing"
