"""Verify the files of disks on nodes against the configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report
from ganeti.storage.registry import TEMPLATES

#: Answers of a node to its checks, by name.
Answers = Mapping[str, Any]

_CHECK = "file-disks"


def checks(config: Config) -> JsonObject:
    """Return the checks for the nodes; none when the cluster keeps no disks in files."""
    kinds = {str(disk.dev_type) for disk in config.disks.values()}
    kinds.update(config.cluster.enabled_disk_templates)
    used = any(kind in TEMPLATES and TEMPLATES.get(kind).traits.file_based for kind in kinds)
    return {_CHECK: None} if used else {}


def orphans(
    report: Report, config: Config, now: Config, nodes: Iterable[Node], found: Mapping[str, Answers]
) -> None:
    """Report files with the name of a disk that no disk has; one that all nodes see once.

    ``config`` is from before the nodes were asked and ``now`` from after it: what a job makes or
    removes meanwhile is not reported.
    """
    reported: set[str] = set()
    shared = f"{config.cluster.shared_file_storage_dir}/"
    for node in nodes:
        answer = found.get(node.uuid, {}).get(_CHECK)
        if answer is not None and not isinstance(answer, list):
            report.error("ENODEFILESTORAGEPATHS", "node", node.name, f"files of disks: {answer}")
            continue
        known = _paths(config, node) | _paths(now, node)
        for path in answer or ():
            if path in known or path in reported:
                continue
            if path.startswith(shared):
                reported.add(path)
            report.error(
                "ENODEORPHANFILE",
                "node",
                node.name,
                f"file {path} belongs to no disk; if its content is not needed: rm {path}",
            )


def remedy(disk: Disk, owner: Instance | None, answers: Answers) -> str:
    """Advice for a disk that is missing on the node with these answers."""
    forget = (
        f"gnt-disk remove {disk.uuid} forgets it"
        if owner is None
        else f"gnt-instance recreate-disks {owner.name} recreates it, empty"
    )
    path = _path(disk)
    if path is None:
        return forget
    listed = answers.get(_CHECK)
    for twin in listed if isinstance(listed, list) else ():
        if twin != path and Path(twin).name == Path(path).name:
            return (
                f"its file was being moved, and is {twin}; to move it back:"
                f" mkdir -p {Path(path).parent} && mv {twin} {path}"
            )
    return f"there is no file {path}; {forget}"


def _path(disk: Disk) -> str | None:
    """The file of a disk, if it is kept in one."""
    kind = str(disk.dev_type)
    if kind not in TEMPLATES or not TEMPLATES.get(kind).traits.file_based or not disk.logical_id:
        return None
    return str(disk.logical_id[1])


def _paths(config: Config, node: Node) -> set[str]:
    """Files that are right on a node."""
    return {
        path
        for disk in config.disks.values()
        if not disk.nodes or node.uuid in disk.nodes
        if (path := _path(disk)) is not None
    }
