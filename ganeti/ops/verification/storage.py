"""Verify the volume groups and logical volumes of nodes against the configuration. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.config import volumes
from ganeti.config.volumes import Expected
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification import files
from ganeti.ops.verification.report import Report
from ganeti.storage.registry import volume_templates

#: Share by which physical volumes may differ where disks get whole ones.
_PV_TOLERANCE = 0.02

#: Answers of a node to its checks, by name.
Answers = Mapping[str, Any]


def checks(config: Config, nodes: Iterable[Node]) -> JsonObject:
    """Return the checks for the nodes of a group; none when the cluster does not use LVM."""
    enabled = set(config.cluster.enabled_disk_templates)
    groups = sorted(volumes.groups(config))
    if not groups or not (enabled & volume_templates() or _has_volumes(config)):
        return {}
    asked: JsonObject = {"vglist": None, "lvlist": groups, "pvlist": groups}
    if any(_exclusive(config, node) for node in nodes):
        asked["exclusive-pvs"] = groups
    return asked


def node(report: Report, config: Config, item: Node, answers: Answers) -> None:
    """Volume groups and physical volumes of one node."""
    if "vglist" not in answers:
        return
    for text in _problems(config, item, answers):
        report.error("ENODELVM", "node", item.name, text)


def _problems(config: Config, item: Node, answers: Answers) -> Iterator[str]:
    found = answers["vglist"]
    if not isinstance(found, dict):
        yield f"volume groups: {found}"
        return
    default = config.cluster.volume_group_name
    if default and default not in found:
        yield f"there is no volume group '{default}'"
    physicals = answers.get("pvlist")
    if not isinstance(physicals, list):
        yield f"physical volumes: {physicals}"
        return
    for each in physicals:
        if ":" in each["name"]:
            group = each["vg_name"]
            yield f"physical volume {each['name']} of {group}: LVM takes no ':' in names of disks"
    lost = Counter(each["vg_name"] for each in physicals if _is_lost(each))
    for group, count in lost.items():
        yield (
            f"volume group {group} lost {plural(count, 'physical volume')}; see gnt-node"
            f" repair-storage {item.name} lvm-vg {group}"
        )
    if _exclusive(config, item):
        shared = answers.get("exclusive-pvs")
        for name, names in shared if isinstance(shared, list) else []:
            yield f"physical volume {name} is shared by the volumes {', '.join(names)}"


def group_sizes(
    report: Report, config: Config, name: str, nodes: Iterable[Node], answers: Mapping[str, Answers]
) -> None:
    """With exclusive storage all physical volumes of a node group must be alike."""
    sizes = [
        physical["size"]
        for node in nodes
        if _exclusive(config, node) and isinstance(answers.get(node.uuid, {}).get("pvlist"), list)
        for physical in answers[node.uuid]["pvlist"]
        if not _is_lost(physical)
    ]
    if sizes and min(sizes) < max(sizes) * (1 - _PV_TOLERANCE):
        text = (
            f"physical volumes have from {min(sizes)} to {max(sizes)} MiB; exclusive storage"
            " needs them alike"
        )
        report.error("EGROUPDIFFERENTPVSIZE", "group", name, text)


def logical(
    report: Report,
    config: Config,
    now: Config,
    nodes: Iterable[Node],
    answers: Mapping[str, Answers],
    busy: Container[str] = (),
) -> None:
    """Volumes that are missing, too small or inactive, and those that are not known.

    ``config`` is from before the nodes were asked and ``now`` from after it: what a job makes or
    removes meanwhile is not reported. On nodes (uuids) that are ``busy`` nothing is called unknown.
    """
    should = volumes.list_expected(config)
    later = volumes.list_expected(now)
    reserved = [re.compile(text) for text in config.cluster.reserved_lvs]
    for item in nodes:
        found = answers.get(item.uuid, {}).get("lvlist")
        if found is None:
            continue
        if not isinstance(found, dict):
            report.error("ENODELVM", "node", item.name, f"logical volumes: {found}")
            continue
        expected, expected_later = should.get(item.uuid, {}), later.get(item.uuid, {})
        for name, wanted in expected.items():
            if not wanted.forthcoming and name in expected_later:
                _volume(report, item, name, wanted, found.get(name))
        unknown = set() if item.uuid in busy else set(found) - set(expected) - set(expected_later)
        for name in sorted(unknown):
            if not any(pattern.fullmatch(name) for pattern in reserved):
                text = f"volume {name} is unknown; if its content is not needed: lvremove {name}"
                report.error("ENODEORPHANLV", "node", item.name, text)


def _volume(report: Report, item: Node, name: str, wanted: Expected, found: Any) -> None:
    owner = wanted.instance
    kind, subject = ("disk", wanted.disk.uuid) if owner is None else ("instance", owner.name)
    where = f"volume {name} of {wanted.disk.iv_name or 'it'} on node {item.name}"
    if found is None:
        remedy = files.remedy(wanted.disk, owner, {})
        report.error("EINSTANCEMISSINGDISK", kind, subject, f"{where} is missing: {remedy}")
        return
    size, inactive, _online = found
    if float(size) < wanted.size:
        text = f"{where} has {float(size):.0f} MiB instead of {wanted.size} MiB"
        report.error("EINSTANCEFAULTYDISK", kind, subject, text)
    elif inactive and owner is not None and owner.disks_active:
        report.error("EINSTANCEFAULTYDISK", kind, subject, f"{where} is not active")


def _has_volumes(config: Config) -> bool:
    return any(volumes.list_volumes(disk) for disk in config.disks.values())


def _is_lost(physical: Mapping[str, object]) -> bool:
    return str(physical["attributes"]).endswith("m")


def _exclusive(config: Config, item: Node) -> bool:
    return bool(config.ndparams(item).get("exclusive_storage"))
