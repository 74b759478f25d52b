"""Verify the DRBD module of nodes, and its devices, against the configuration. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import LocalDisk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report
from ganeti.rpc.objects import BlockDevStatus
from ganeti.storage.registry import traits_of

#: Answers of a node to its checks, by name.
Answers = Mapping[str, Any]

#: Words for ``BlockDevStatus.ldisk_status``.
_LOCAL_STATES: Mapping[int, str] = {
    LocalDisk.OKAY: "ok",
    LocalDisk.UNKNOWN: "unknown",
    LocalDisk.FAULTY: "faulty",
    LocalDisk.SYNCHRONISING: "syncing",
}


def checks(config: Config) -> JsonObject:
    """Return the checks for nodes; none when the cluster does not use DRBD."""
    used = drbd.is_enabled(config.cluster.enabled_disk_templates)
    if not used and not any(drbd.disks(config)):
        return {}
    return {"drbd-helper": None, "drbd-list": None, "drbd-version": None}


def node(report: Report, config: Config, now: Config, item: Node, answers: Answers) -> None:
    """Helper and devices of one node.

    ``config`` is from before the nodes were asked and ``now`` from after it: what a job makes or
    removes meanwhile is not reported.
    """
    if "drbd-list" not in answers or not item.vm_capable:
        return
    _helper(report, config, item, answers.get("drbd-helper"))
    found = answers["drbd-list"]
    if not isinstance(found, list):
        report.error("ENODEDRBD", "node", item.name, f"DRBD devices: {found}")
        return
    before, after = (drbd.minor_map(each).get(item.uuid, {}) for each in (config, now))
    owners = {str(uuid): i for i in now.instances.values() for uuid in i.disks}
    for minor in sorted(set(before) & set(after) - set(found)):
        for uuid in after[minor]:
            owner = owners.get(uuid)
            if owner is not None and owner.disks_active and not owner.forthcoming:
                text = f"drbd minor {minor} of disk {uuid} of {owner.name} is not active"
                report.error("ENODEDRBD", "node", item.name, text)
    for minor in sorted(set(found) - set(before) - set(after)):
        text = (
            f"unallocated drbd minor {minor} is in use; if nothing needs it: drbdsetup secondary"
            f" {minor} && drbdsetup down resource{minor}"
        )
        report.error("ENODEDRBD", "node", item.name, text)


def _helper(report: Report, config: Config, item: Node, answer: object) -> None:
    wanted = config.cluster.drbd_usermode_helper
    if not isinstance(answer, list | tuple) or len(answer) != 2 or not wanted:
        return
    ok, found = answer
    if not ok:
        report.error("ENODEDRBDHELPER", "node", item.name, f"drbd usermode helper: {found}")
    elif found != wanted:
        text = f"wrong drbd usermode helper: {found} instead of {wanted}"
        report.error("ENODEDRBDHELPER", "node", item.name, text)


def versions(report: Report, nodes: Iterable[Node], answers: Mapping[str, Answers]) -> None:
    """Two nodes of a group can only mirror a disk when their modules understand each other."""
    found = {
        item.name: str(answers[item.uuid]["drbd-version"])
        for item in nodes
        if item.vm_capable and "drbd-version" in answers.get(item.uuid, {})
    }
    known = {name: text for name, text in found.items() if text[:1].isdigit()}
    if len(set(known.values())) < 2:
        return
    usual = Counter(known.values()).most_common(1)[0][0]
    for name, text in known.items():
        if text != usual:
            report.error("ENODEDRBDVERSION", "node", name, f"DRBD {text}, most nodes have {usual}")


def is_looked_at(instance: Instance | None, disk: Disk) -> bool:
    """Whether the state of a disk's copies is of interest."""
    active = instance is not None and instance.disks_active
    return traits_of(disk.dev_type).mirrored and active


def find_apart(answers: Iterable[tuple[Disk, tuple[bool, BlockDevStatus | str]]]) -> set[str]:
    """Uuids of disks with two complete copies that are not connected."""
    complete = Counter(
        disk.uuid
        for disk, (good, found) in answers
        if good
        and not isinstance(found, str)
        and found.is_degraded
        and found.ldisk_status == LocalDisk.OKAY
        and found.sync_percent is None
    )
    return {uuid for uuid, count in complete.items() if count > 1}


def state(
    report: Report,
    item: Node,
    instance: Instance,
    disk: Disk,
    answer: tuple[bool, BlockDevStatus | str],
    *,
    apart: bool = False,
) -> None:
    """A disk that misses a copy on a node, as the node's answer tells.

    ``apart`` means that the copy on the other node is complete, too.
    """
    good, found = answer
    where = f"{disk.iv_name} on node {item.name}"
    if not good or isinstance(found, str):
        text = f"{where}: no state: {found}"
        report.error("EINSTANCEFAULTYDISK", "instance", instance.name, text)
        return
    if not found.is_degraded:
        return
    local = _LOCAL_STATES.get(found.ldisk_status, "unknown")
    text = f"{where} is degraded; local disk state is '{local}'"
    if apart:
        text += (
            ": the copies on both nodes are complete but not connected; gnt-instance activate-disks"
            f" {instance.name} connects them. If it does not, both were written to (split brain):"
            f" gnt-instance replace-disks -s {instance.name} keeps what the primary node has"
        )
    else:
        text += _meaning(item, instance, found)
    if found.sync_percent is None:
        report.error("EINSTANCEFAULTYDISK", "instance", instance.name, text)
    else:
        text += f", {found.sync_percent:.1f}% are synchronised"
        report.warning("EINSTANCEFAULTYDISK", "instance", instance.name, text)


def _meaning(item: Node, instance: Instance, found: BlockDevStatus) -> str:
    """Which of the two copies is the bad one, and what recreates it."""
    if found.ldisk_status == LocalDisk.FAULTY:
        option = "-p" if item.uuid == instance.primary_node else "-s"
        return (
            ": the copy on this node failed or is out of date; gnt-instance replace-disks"
            f" {option} {instance.name} recreates it"
        )
    if found.ldisk_status == LocalDisk.OKAY:
        return ": this copy is complete, the one on the other node is away or is not"
    return ""
