"""Verify that guests run where they should, with the disks of their instances. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report

_CHECK = "guest-disks"


def disks(
    report: Report,
    config: Config,
    now: Config,
    nodes: Iterable[Node],
    found: Mapping[str, Mapping[str, object]],
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


def state(
    report: Report, config: Config, item: Instance, running: Mapping[NodeUuid, list[str]]
) -> None:
    """An instance that does not run where it should, or runs where it should not.

    ``running`` has the names of the guests by uuid of those nodes that told them.
    """
    primary = config.nodes[item.primary_node]
    wanted = item.admin_state is AdminState.UP
    here = item.name in running.get(primary.uuid, [])
    if primary.offline and wanted:
        text = f"should run, but its primary node {primary.name} is offline"
        report.error("EINSTANCEBADNODE", "instance", item.name, text)
    elif primary.uuid in running and wanted and not here:
        text = (
            f"should run on its primary node {primary.name}, but does not; to start it:"
            f" gnt-instance startup {item.name}"
        )
        report.error("EINSTANCEDOWN", "instance", item.name, text)
    repair = "failover --cleanup --ignore-consistency" if here else "migrate --cleanup"
    for uuid, names in running.items():
        if uuid != primary.uuid and item.name in names:
            text = (
                f"runs on node {config.nodes[uuid].name}{' too' if here else ''}, but belongs"
                f" to {primary.name}; to repair it: gnt-instance {repair} {item.name}"
            )
            report.error("EINSTANCEWRONGNODE", "instance", item.name, text)


def check_unknown(report: Report, config: Config, running: Mapping[NodeUuid, list[str]]) -> None:
    """Guests of no instance."""
    known = {item.name for item in config.instances.values()}
    for uuid, names in running.items():
        for name in sorted(set(names) - known):
            text = f"instance {name} runs here but is not in the configuration"
            report.error("ENODEORPHANINSTANCE", "node", config.nodes[uuid].name, text)
