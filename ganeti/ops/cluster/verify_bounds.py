"""Verify the lists of nodes that say where the cluster may keep file disks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.model.config import Config
from ganeti.model.names import DiskTemplate
from ganeti.model.node import Node
from ganeti.ops.cluster.report import Report

_CHECK = "file-storage-bounds"
_UNUSABLE = {
    DiskTemplate.FILE: "ENODEFILESTORAGEPATHUNUSABLE",
    DiskTemplate.SHAREDFILE: "ENODESHAREDFILESTORAGEPATHUNUSABLE",
}


def checks(config: Config) -> dict[str, Any]:
    """What to ask the nodes; nothing when the cluster keeps no disks in files."""
    wanted = _directories(config)
    return {_CHECK: list(wanted.values())} if wanted else {}


def nodes(
    report: Report, config: Config, online: Iterable[Node], found: Mapping[str, Mapping[str, Any]]
) -> None:
    """Report nodes that refuse a directory of the cluster, and lists that differ."""
    lists: dict[str, tuple[str, ...] | None] = {}
    for node in online:
        answer = found.get(node.uuid, {}).get(_CHECK)
        if answer is None:
            continue
        if not isinstance(answer, list):
            report.error("ENODEFILESTORAGEPATHS", "node", node.name, str(answer))
            continue
        listed, refused = answer
        lists[node.name] = None if listed is None else tuple(listed)
        why: dict[str, str] = dict(refused)
        for kind, directory in _directories(config).items():
            if directory in why:
                report.error(_UNUSABLE[kind], "node", node.name, why.pop(directory))
        for text in why.values():
            report.error("ENODEFILESTORAGEPATHS", "node", node.name, text)
    _differing(report, lists)


def _differing(report: Report, lists: Mapping[str, tuple[str, ...] | None]) -> None:
    """Warn of nodes whose list is not that of most nodes of the group."""
    if not lists:
        return
    [(usual, _count)] = Counter(lists.values()).most_common(1)
    for name, listed in lists.items():
        if listed != usual:
            report.warning(
                "ENODEFILESTORAGEPATHS",
                "node",
                name,
                f"its file-storage-paths allows {_text(listed)}, that of most nodes {_text(usual)};"
                " only the administrator of the node can change it",
            )


def _text(listed: tuple[str, ...] | None) -> str:
    if listed is None:
        return "what the cluster wants (it is missing)"
    return ", ".join(listed) or "nothing"


def _directories(config: Config) -> dict[DiskTemplate, str]:
    """The directories of the cluster that are in use."""
    cluster = config.cluster
    found = {
        DiskTemplate.FILE: cluster.file_storage_dir,
        DiskTemplate.SHAREDFILE: cluster.shared_file_storage_dir,
    }
    return {kind: path for kind, path in found.items() if kind in cluster.enabled_disk_templates}
