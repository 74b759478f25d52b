"""Verify that running guests have the disks that their instances have. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.cluster.report import Report

_CHECK = "guest-disks"


def disks(
    report: Report,
    config: Config,
    now: Config,
    nodes: Iterable[Node],
    found: Mapping[str, Mapping[str, Any]],
    busy: Container[str],
) -> None:
    """A disk that waits for the next start of the guest, or that the guest should not have.

    ``config`` is from before the nodes were asked and ``now`` from after it; what changed
    meanwhile is left out, and so are instances whose names are ``busy``.
    """
    for node in nodes:
        answer = found.get(node.uuid, {}).get(_CHECK)
        if not isinstance(answer, dict):
            continue
        for instance in config.primaries.get(node.uuid, []):
            after = now.instances.get(instance.uuid)
            if instance.name not in answer or instance.name in busy or after is None:
                continue
            if after.disks != instance.disks or after.primary_node != node.uuid:
                continue
            plugged = answer[instance.name]
            repair = f"gnt-instance reboot --type=full {instance.name}"
            for index, uuid in enumerate(instance.disks):
                if uuid not in plugged:
                    text = f"its guest runs without disk/{index} ({uuid}); to give it: {repair}"
                    report.warning("EINSTANCELAYOUT", "instance", instance.name, text)
            for uuid in plugged:
                if uuid not in instance.disks:
                    text = f"its guest has disk {uuid}, which is not its own; to end that: {repair}"
                    report.error("EINSTANCELAYOUT", "instance", instance.name, text)
